//! Which check a check is.

use model::Digest;
use model::config::Check;
use sha2::{Digest as _, Sha256};

/// Stands for all that is declared of a check. Declared differently, it is another check.
#[must_use]
pub fn definition(check: &Check) -> Digest {
    let declared = serde_json::to_vec(check).expect("a check is plain data");
    Digest(Sha256::digest(declared).into())
}
