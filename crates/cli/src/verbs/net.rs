//! `zeno net`.

use jiff::Timestamp;
use model::request::NetChange;

use crate::args::net::Net;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::render::net as render;
use crate::request;

pub(crate) async fn net(typed: &Net, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let secrets = request::secrets(&typed.secrets, &Caller::read(invocation)?)?;
    let change = NetChange { allow: typed.allow.clone(), deny: typed.deny.clone(), secrets };
    let sandbox = if change == NetChange::default() {
        api.sandbox(&typed.sandbox).await?
    } else {
        api.change_net(&typed.sandbox, &change).await?
    };
    // Whoever only looks wants to know what to allow next. What was denied before a change says nothing of it.
    let denied = match (change == NetChange::default(), invocation.form) {
        (true, Form::People) => {
            api.requests(&format!("sandbox={}&denied&limit={SHOWN}", typed.sandbox)).await?
        }
        (true, Form::Json) | (false, _) => Vec::new(),
    };
    invocation.answer(&sandbox.net, |paint| {
        render::net(&sandbox.net, paint) + &render::denied(&denied, Timestamp::now(), paint)
    })?;
    Ok(DONE)
}

/// Of what was denied, the last.
const SHOWN: usize = 5;
