//! The control plane's own bodies.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::net::{Lists, Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::e2b::failure::Failure;

/// A sandbox to make.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NewSandbox {
    #[serde(rename = "templateID")]
    pub(super) template: Option<String>,
    /// Seconds.
    pub(super) timeout: Option<u64>,
    pub(super) auto_pause: Option<bool>,
    pub(super) auto_pause_memory: Option<bool>,
    pub(super) auto_resume: Option<AutoResume>,
    #[serde(rename = "allow_internet_access")]
    pub(super) internet: Option<bool>,
    pub(super) network: Option<Network>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) env_vars: Option<BTreeMap<String, String>>,
    mcp: Option<Value>,
    iam: Option<Value>,
    volume_mounts: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AutoResume {
    pub(super) enabled: bool,
}

/// What a sandbox may reach, and who may reach it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::e2b) struct Network {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::e2b) allow_out: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::e2b) deny_out: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::e2b) allow_public_traffic: Option<bool>,
    #[serde(skip_serializing)]
    dns_servers: Option<Value>,
    #[serde(skip_serializing)]
    egress_proxy: Option<Value>,
    #[serde(skip_serializing)]
    mask_request_host: Option<Value>,
    #[serde(skip_serializing)]
    https_ports: Option<Value>,
    #[serde(skip_serializing)]
    rules: Option<Value>,
}

/// What a sandbox may reach from now on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NetworkUpdate {
    #[serde(rename = "allow_internet_access")]
    pub(super) internet: Option<bool>,
    #[serde(flatten)]
    pub(super) network: Network,
}

impl NewSandbox {
    /// The parts of E2B's service that zeno has not are refused, so that nobody relies on them.
    pub(super) fn refuse_unsupported(&self) -> Result<(), Failure> {
        let parts = [
            ("an MCP gateway in the sandbox (`mcp`)", &self.mcp),
            ("workload identities (`iam`)", &self.iam),
            ("volumes (`volumeMounts`)", &self.volume_mounts),
        ];
        refuse_given(&parts)?;
        self.network.as_ref().map_or(Ok(()), Network::refuse_unsupported)
    }
}

impl Network {
    /// The lists as they were given, to be told again; nothing where none was.
    pub(super) fn noted(&self) -> Option<Value> {
        let value = serde_json::to_value(self).expect("wire types cannot fail to serialise");
        Some(value).filter(|value| !is_nothing(value))
    }

    pub(super) fn refuse_unsupported(&self) -> Result<(), Failure> {
        refuse_given(&[
            ("`dnsServers`: names are answered by its own resolver", &self.dns_servers),
            ("`egressProxy`", &self.egress_proxy),
            ("`maskRequestHost`", &self.mask_request_host),
            ("`httpsPorts`", &self.https_ports),
            ("`rules` that change requests; zeno net --secret puts a secret in at the boundary", &self.rules),
        ])
    }

    /// The one policy that says the same.
    pub(super) fn policy(&self, internet: Option<bool>) -> Result<Policy, Failure> {
        let lists = Lists {
            allow_out: self.allow_out.clone().unwrap_or_default(),
            deny_out: self.deny_out.clone().unwrap_or_default(),
            internet,
        };
        Policy::try_from(&lists).map_err(|error| Failure::bad_request(error.to_string()))
    }
}

fn refuse_given(parts: &[(&str, &Option<Value>)]) -> Result<(), Failure> {
    let given = parts.iter().find(|(_, value)| value.as_ref().is_some_and(|value| !is_nothing(value)));
    given.map_or(Ok(()), |(what, _)| Err(Failure::unsupported(what)))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Connect {
    pub(super) timeout: Option<u64>,
    /// Absent or true: with what was in memory, if that was kept.
    pub(super) memory: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pause {
    pub(super) memory: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Timeout {
    pub(super) timeout: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refresh {
    pub(super) duration: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewSnapshot {
    pub(super) name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewFork {
    pub(super) timeout: Option<u64>,
    pub(super) count: Option<u32>,
}

/// A sandbox for whoever made it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    #[serde(rename = "templateID")]
    pub(super) template: String,
    #[serde(rename = "sandboxID")]
    pub(super) id: String,
    #[serde(rename = "clientID")]
    pub(super) client: &'static str,
    pub(super) envd_version: &'static str,
    pub(super) envd_access_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traffic_access_token: Option<String>,
    pub(super) domain: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    #[serde(rename = "templateID")]
    pub(super) template: String,
    #[serde(rename = "sandboxID")]
    pub(super) id: String,
    #[serde(rename = "clientID")]
    pub(super) client: &'static str,
    pub(super) started_at: Timestamp,
    pub(super) end_at: Timestamp,
    pub(super) cpu_count: u64,
    #[serde(rename = "memoryMB")]
    pub(super) memory: u64,
    #[serde(rename = "diskSizeMB")]
    pub(super) disk: u64,
    pub(super) state: Standing,
    pub(super) envd_version: &'static str,
    pub(super) metadata: BTreeMap<String, String>,
}

/// What E2B knows of a sandbox's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    Running,
    Paused,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    #[serde(flatten)]
    pub(super) listed: Listed,
    pub(super) envd_access_token: String,
    pub(super) domain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allow_internet_access: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<Value>,
    pub(super) lifecycle: Lifecycle,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pause_mode: Option<PauseMode>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lifecycle {
    pub(super) auto_resume: bool,
    pub(super) on_timeout: OnTimeout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnTimeout {
    Kill,
    Pause,
}

/// What a pause kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PauseMode {
    Full,
    Filesystem,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::e2b) struct Metric {
    pub(in crate::e2b) timestamp: Timestamp,
    pub(in crate::e2b) timestamp_unix: i64,
    pub(in crate::e2b) cpu_count: u64,
    pub(in crate::e2b) cpu_used_pct: f64,
    pub(in crate::e2b) mem_used: u64,
    pub(in crate::e2b) mem_total: u64,
    pub(in crate::e2b) mem_cache: u64,
    pub(in crate::e2b) disk_used: u64,
    pub(in crate::e2b) disk_total: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct SnapshotInfo {
    #[serde(rename = "snapshotID")]
    pub(super) id: String,
    pub(super) names: Vec<String>,
}

/// One of a fork's results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ForkResult {
    Sandbox(Made),
    Error { code: u16, message: String },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_zeno_has_not_is_refused_unless_it_is_nothing() {
        let new = |body: Value| serde_json::from_value::<NewSandbox>(body).unwrap();
        new(json!({"templateID": "base", "mcp": {}, "volumeMounts": [], "network": {"rules": {}, "egressProxy": null}}))
            .refuse_unsupported()
            .unwrap();
        for body in [
            json!({"mcp": {"a": {}}}),
            json!({"iam": {"tokens": {"a": 1}}}),
            json!({"volumeMounts": [{"name": "v", "path": "/v"}]}),
            json!({"network": {"rules": {"a.example": []}}}),
            json!({"network": {"dnsServers": ["1.1.1.1"]}}),
        ] {
            assert!(new(body.clone()).refuse_unsupported().is_err(), "{body}");
        }
    }

    #[test]
    fn lists_become_a_policy() {
        let update: NetworkUpdate =
            serde_json::from_value(json!({"allowOut": ["a.example"], "denyOut": ["0.0.0.0/0"]})).unwrap();
        assert_eq!(update.network.policy(update.internet).unwrap().to_string(), "open, a.example,!*");
        let closed: NetworkUpdate = serde_json::from_value(json!({"allow_internet_access": false})).unwrap();
        assert_eq!(closed.network.policy(closed.internet).unwrap().to_string(), "deny");
        let bad: NetworkUpdate = serde_json::from_value(json!({"allowOut": ["host"]})).unwrap();
        assert!(bad.network.policy(None).is_err());
    }
}
