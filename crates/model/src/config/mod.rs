//! `zeno.yaml`: what a repository says about itself. These types are the definition; its JSON Schema is made from them.
//!
//! Only the shape is defined here. That names are known and needs go in no circle is looked at where the file is read.

mod check;
mod either;
mod stage;

pub use check::{Check, Checks, ExitCodes, Expects, Pattern};
pub use stage::{Approval, Promotion, Stage};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a repository says about itself, in `zeno.yaml` at its root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Commands that say whether a state of the repository is good.
    pub checks: Checks,
    /// How a change that was found good goes out.
    pub promotion: Promotion,
}

/// What the file is called.
pub const FILE: &str = "zeno.yaml";

/// The schema of the file, for editors.
#[must_use]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(json: &str) -> Config {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn checks_are_a_list_or_a_map_and_a_command_may_stand_alone() {
        let list =
            read(r#"{"checks":[{"name":"unit","run":"make test"},{"name":"lint","run":"make lint"}]}"#);
        let map = read(r#"{"checks":{"unit":{"run":"make test"},"lint":"make lint"}}"#);
        assert_eq!(list, map);
        assert_eq!(read("{}"), Config::default());
    }

    #[test]
    fn exit_codes_are_one_or_several() {
        let codes = |json: &str| read(json).checks.0[0].expects.exit.clone();
        assert_eq!(codes(r#"{"checks":{"a":"true"}}"#), ExitCodes(vec![0]));
        assert_eq!(codes(r#"{"checks":{"a":{"run":"x","expects":{"exit":3}}}}"#), ExitCodes(vec![3]));
        assert_eq!(codes(r#"{"checks":{"a":{"run":"x","expects":{"exit":[0,2]}}}}"#), ExitCodes(vec![0, 2]));
    }

    #[track_caller]
    fn refused(json: &str, says: &str) {
        let error = serde_json::from_str::<Config>(json).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        refused(r#"{"cheks":[]}"#, "expected `checks` or `promotion`");
        refused(r#"{"checks":[{"name":"a","runn":"x"}]}"#, "expected one of `name`, `run`, `timeout`");
        refused(r#"{"checks":5}"#, "a list of checks, each with a `name`, or a map from names to checks");
        refused(r#"{"checks":{"a":5}}"#, "a command, or a map with `run`");
        refused(
            r#"{"checks":{"a":{"run":"x","name":"b"}}}"#,
            "unknown field `name`, expected one of `run`, `timeout`",
        );
        refused(r#"{"checks":[{"name":"a"}]}"#, "missing field `run`");
        refused(r#"{"checks":{"a":{"run":"x","expects":{"exit":"no"}}}}"#, "an exit code, or a list of them");
        refused(r#"{"checks":{"a":{"run":"x","expects":{"exit":256}}}}"#, "256");
        refused(r#"{"checks":{"a":{"run":"x","timeout":"5"}}}"#, "write for example 90s");
        refused(r#"{"promotion":{"stages":[{"name":"a","approval":"robot"}]}}"#, "expected `human`");
    }
}
