//! Proxies that the caller's tools would use.
//!
//! A proxy leads wherever it likes, so `registries` does not open one. Inside a sandbox none is needed: the gateway dials. So a
//! proxy that may not be reached is not handed on either, and tools take the direct way.

use model::Caveat;
use model::caveat::CaveatKind;
use model::net::Policy;

use super::machine::Machine;
use super::url::{Url, without_credentials};
use super::{Completed, apt, is_open};

pub(super) fn settle(policy: &Policy, machine: &Machine, completed: &mut Completed) {
    for (name, value) in machine.variables() {
        let is_proxy = NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
        let closed = |url: &Url| !is_open(policy, url);
        if is_proxy && !value.is_empty() && of(value).iter().all(closed) {
            completed.without.push(name.to_owned());
            completed.caveats.push(not_used(&format!("`{name}`"), value));
        }
    }
    for value in apt::proxies(machine) {
        if Url::all(&value).iter().any(|url| !is_open(policy, url)) {
            completed.caveats.push(not_used("apt's configuration", &value));
        }
    }
}

/// Often written without what it speaks.
fn of(value: &str) -> Vec<Url> {
    if value.contains("://") { Url::all(value) } else { Url::all(&format!("http://{value}")) }
}

fn not_used(who: &str, value: &str) -> Caveat {
    let value = without_credentials(value);
    let text = format!(
        "{who} names the proxy {value}, which is not used: it could lead anywhere. Registries are dialled directly; if they are \
         reached only through it, allow it, too: `--net allow:registries,NAME:PORT`"
    );
    Caveat::new(CaveatKind::Network, text)
}

const NAMES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
