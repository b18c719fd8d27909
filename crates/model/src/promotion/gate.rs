//! The gate before reality, as far as whoever asks has to know of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Name, VerdictId};
use crate::problem::Problem;

/// What becomes of a state of which no verdict says that its checks passed on exactly that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unjudged {
    /// It is refused: whoever wants it promoted has it judged first.
    #[default]
    Refuse,
    /// The checks are run now, and what passes goes through.
    Verify,
}

/// What the gate would say to what was only looked at. Nothing is run to find out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Foretold {
    /// All checks passed on exactly what would be promoted.
    Open { verdict: VerdictId },
    /// These would be run first, on what would come of it, and have to pass.
    Checks { checks: Vec<Name> },
    /// These would be passed over, and that be recorded.
    Forced { checks: Vec<Name> },
    /// It would be refused.
    Closed { problem: Problem },
}
