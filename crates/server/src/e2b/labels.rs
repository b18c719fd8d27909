//! What E2B wants remembered of a sandbox, among its labels. Metadata stands there under its own names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One label holds it all, so that metadata can have any other name.
pub(super) const LABEL: &str = "zeno.e2b";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Noted {
    /// The template it was made of.
    pub(super) template: String,
    /// What happens at its end.
    #[serde(default)]
    pub(super) auto_pause: bool,
    /// Is it resumed when somebody talks to it?
    #[serde(default)]
    pub(super) auto_resume: bool,
    /// As it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) internet: Option<bool>,
    /// The network lists as they were given, to be told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<serde_json::Value>,
}

impl Noted {
    /// Of a sandbox that was made through this door; of another: nothing.
    pub(super) fn of(labels: &BTreeMap<String, String>) -> Option<Self> {
        serde_json::from_str(labels.get(LABEL)?).ok()
    }

    /// May whoever reaches this machine's loopback reach its ports?
    pub(super) fn is_public(&self) -> bool {
        let said = self.network.as_ref().and_then(|network| network.get("allowPublicTraffic")?.as_bool());
        said.unwrap_or(true)
    }

    /// As the label has it.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("it is plain text and flags")
    }

    /// The labels of a sandbox with this metadata.
    pub(super) fn with(&self, metadata: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = metadata;
        labels.insert(LABEL.to_owned(), self.text());
        labels
    }
}

/// The labels that are metadata.
pub(super) fn metadata(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels
        .iter()
        .filter(|(name, _)| *name != LABEL)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again_and_is_no_metadata() {
        let noted = Noted {
            template: "base".to_owned(),
            auto_pause: true,
            auto_resume: false,
            internet: Some(false),
            network: None,
        };
        let given = BTreeMap::from([("k".to_owned(), "v w".to_owned())]);
        let labels = noted.with(given.clone());
        assert!(noted.is_public());
        assert!(
            !Noted { network: Some(serde_json::json!({"allowPublicTraffic": false})), ..noted.clone() }
                .is_public()
        );
        assert_eq!(Noted::of(&labels), Some(noted));
        assert_eq!(metadata(&labels), given);
        assert_eq!(Noted::of(&given), None);
    }
}
