//! `zeno extend`.

use jiff::Timestamp;

use crate::args::lifecycle::Extend;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::render::words::{left, name};

pub(crate) async fn extend(typed: &Extend, invocation: &Invocation) -> Result<u8, Failure> {
    let sandbox = invocation.api().await?.extend(&typed.sandbox, typed.ttl).await?;
    invocation.answer(&sandbox, |_| {
        let expires = sandbox.expires.map_or_else(
            || "does not expire".to_owned(),
            |expires| format!("expires in {}", left(expires, Timestamp::now())),
        );
        format!("{}  {expires}\n", name(&sandbox))
    })?;
    Ok(DONE)
}
