//! `zeno requests`.

use jiff::Timestamp;
use model::request::Request;

use crate::api::percent_encoded;
use crate::args::net::{Requests, RequestsAction};
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output::{self, Sink};
use crate::render::net as render;

pub(crate) async fn requests(typed: &Requests, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    if let Some(RequestsAction::Show { id }) = typed.action {
        let request = api.request(id).await?;
        invocation.answer(&request, |paint| render::request(&request, paint))?;
        return Ok(DONE);
    }
    let query = query(typed);
    if typed.follow {
        let mut lines = api.follow_requests(&query).await?;
        while let Some(line) = lines.next().await? {
            let request: Request = serde_json::from_slice(&line).map_err(Failure::Decode)?;
            let line = match invocation.form {
                Form::Json => serde_json::to_string(&request).map_err(Failure::Encode)? + "\n",
                Form::People => render::line(&request, invocation.stdout_paint()),
            };
            output::pass_on(Sink::Stdout, line.as_bytes()).await?;
        }
        return Ok(DONE);
    }
    let requests = api.requests(&query).await?;
    invocation.answer(&requests, |paint| render::list(&requests, Timestamp::now(), paint))?;
    if requests.is_empty() && invocation.form == Form::People {
        output::note(
            "nothing was tried yet: sandboxes made with `--net allow:NAME` or `--net open` are recorded\n",
        );
    }
    Ok(DONE)
}

fn query(typed: &Requests) -> String {
    let mut words = Vec::new();
    words.extend(typed.sandbox.as_ref().map(|which| format!("sandbox={which}")));
    words.extend(typed.denied.then(|| "denied".to_owned()));
    words.extend(typed.host.as_ref().map(|host| format!("host={}", percent_encoded(host.as_bytes()))));
    words.join("&")
}
