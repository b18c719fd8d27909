//! `zeno doctor`.

use model::problem::Exit;

use crate::failure::{DONE, Failure};
use crate::hooks;
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render;

pub(crate) async fn doctor(invocation: &Invocation) -> Result<u8, Failure> {
    let asked = match invocation.api().await {
        Ok(api) => Waiting::begin("looking at this machine").watch(api.doctor()).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    // A machine on which no daemon starts is the one whose report is needed most.
    let (report, failure) = match asked {
        Ok(report) => (report, None),
        Err(failure) => match hooks::local_doctor() {
            Some(report) => (report, Some(failure)),
            None => return Err(failure),
        },
    };
    invocation.answer(&report, |paint| render::doctor::doctor(&report, paint))?;
    match failure {
        Some(failure) => Err(failure),
        None if report.usable => Ok(DONE),
        None => Ok(Exit::Failed as u8),
    }
}
