//! `zeno port` and `zeno ports`.

use std::time::Duration;

use model::port::PortRequest;

use crate::args::port::{PortArgs, Ports};
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;

pub(crate) async fn port(typed: &PortArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let request =
        PortRequest { port: typed.ports.inside, host_port: typed.ports.host, bind: Some(typed.bind) };
    let port = api.open_port(&typed.sandbox, &request).await?;
    invocation.answer(&port, |_| format!("{port}\n"))?;
    if typed.detach {
        return Ok(DONE);
    }
    loop {
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => {
                pressed.map_err(Failure::Runtime)?;
                api.close_port(&typed.sandbox, port.port).await?;
                return Ok(DONE);
            }
            () = tokio::time::sleep(LOOK) => {
                if !api.ports(None).await?.contains(&port) {
                    output::note("the sandbox has ended, and the way to its port with it\n");
                    return Ok(DONE);
                }
            }
        }
    }
}

pub(crate) async fn ports(typed: &Ports, invocation: &Invocation) -> Result<u8, Failure> {
    let ports = invocation.api().await?.ports(typed.sandbox.as_ref()).await?;
    invocation.answer(&ports, |_| ports.iter().map(|port| format!("{port}\n")).collect())?;
    if ports.is_empty() && invocation.form == Form::People {
        output::note("no port is forwarded: `zeno port SANDBOX PORT` does\n");
    }
    Ok(DONE)
}

/// How often it is looked whether the sandbox is there.
const LOOK: Duration = Duration::from_secs(1);
