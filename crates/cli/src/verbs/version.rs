//! `zeno version`.

use serde::Serialize;

use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;

pub(crate) fn version(invocation: &Invocation) -> Result<u8, Failure> {
    let version = Version { version: env!("CARGO_PKG_VERSION") };
    invocation.answer(&version, |_| format!("zeno {}\n", version.version))?;
    Ok(DONE)
}

/// The answer of `zeno version --json`.
#[derive(Serialize)]
struct Version {
    version: &'static str,
}
