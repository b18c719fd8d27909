//! `zeno doctor`.

use model::Problem;
use model::problem::Exit;

use crate::failure::{DONE, Failure};
use crate::hooks;
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render;

pub(crate) async fn doctor(invocation: &Invocation) -> Result<u8, Failure> {
    let home = invocation.home()?;
    let asked = match invocation.api().await {
        Ok(api) => Waiting::begin("looking at this machine").watch(api.doctor()).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    // A machine on which no daemon starts is the one whose report is needed most.
    let (report, failure) = match asked {
        Ok(report) => (report, None),
        Err(failure) => (hooks::local_doctor(&home), Some(failure)),
    };
    invocation.answer(&report, |paint| render::doctor::doctor(&report, paint))?;
    if let Some(failure) = &failure {
        // Its hint would be to ask the doctor.
        invocation.complain(&Problem { hints: Vec::new(), ..failure.problem() });
    }
    Ok(match failure {
        _ if !report.usable => Exit::Failed as u8,
        None => DONE,
        // The machine is fine, zeno is not.
        Some(failure) => failure.exit(),
    })
}
