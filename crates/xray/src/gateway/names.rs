//! Where names lead, asked of this machine's own name servers, or of one that was named.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;

use super::GatewayError;

#[derive(Debug)]
pub(super) struct Names {
    server: Option<SocketAddr>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    resolver: TokioResolver,
    /// Of the machine's configuration when it was read: a laptop moves from network to network.
    changed: Option<SystemTime>,
}

/// What a name leads to.
#[derive(Debug)]
pub(super) enum Lookup {
    Addresses(Vec<IpAddr>),
    /// There is no such name, or it has no address.
    Nothing,
    /// Nobody could say.
    Failed(NetError),
}

impl Names {
    pub(super) fn new(server: Option<SocketAddr>) -> Result<Self, GatewayError> {
        let failed = |source| GatewayError::Resolver { source };
        let current = Current { resolver: resolver(server).map_err(failed)?, changed: changed() };
        Ok(Self { server, current: Mutex::new(current) })
    }

    /// By the machine's own file first, like the machine itself: what stands there is asked of nobody.
    pub(super) async fn look_up(&self, name: &str) -> Lookup {
        if self.server.is_none() {
            let text = fs::read(HOSTS).unwrap_or_else(|error| {
                tracing::debug!(%error, "there are no names but those of the name servers");
                Vec::new()
            });
            let addresses = of_file(&String::from_utf8_lossy(&text), name);
            if !addresses.is_empty() {
                return Lookup::Addresses(addresses);
            }
        }
        let resolver = match self.resolver() {
            Ok(resolver) => resolver,
            Err(error) => return Lookup::Failed(error),
        };
        let name = Name::from_utf8(name).map(|mut name| {
            // With a dot at its end, so that no search list is tried: what was allowed is this name.
            name.set_fqdn(true);
            name
        });
        let Ok(name) = name else { return Lookup::Nothing };
        match resolver.lookup_ip(name).await {
            Ok(found) => {
                let addresses: Vec<IpAddr> = found.iter().collect();
                if addresses.is_empty() { Lookup::Nothing } else { Lookup::Addresses(addresses) }
            }
            Err(error) if error.is_nx_domain() || error.is_no_records_found() => Lookup::Nothing,
            Err(error) => Lookup::Failed(error),
        }
    }

    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = changed();
        if now != current.changed {
            *current = Current { resolver: resolver(self.server)?, changed: now };
        }
        Ok(current.resolver.clone())
    }
}

fn resolver(server: Option<SocketAddr>) -> Result<TokioResolver, NetError> {
    let mut builder = match server {
        None => match TokioResolver::builder_tokio() {
            Ok(builder) => builder,
            // A machine without a name server still has its hosts file.
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "no name server is configured");
                of_servers(Vec::new())
            }
        },
        Some(server) => {
            let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            connections.iter_mut().for_each(|connection| connection.port = server.port());
            of_servers(vec![NameServerConfig::new(server.ip(), true, connections.to_vec())])
        }
    };
    let options = builder.options_mut();
    options.timeout = std::time::Duration::from_secs(3);
    options.attempts = 2;
    // It would read the file once, and ask a server for the other family of what stands there.
    options.use_hosts_file = ResolveHosts::Never;
    builder.build()
}

fn of_servers(servers: Vec<NameServerConfig>) -> hickory_resolver::ResolverBuilder<TokioRuntimeProvider> {
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

fn changed() -> Option<SystemTime> {
    fs::metadata("/etc/resolv.conf").and_then(|metadata| metadata.modified()).ok()
}

/// What a hosts file says of a name.
fn of_file(text: &str, name: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        let is_it = |own: &str| own.strip_suffix('.').unwrap_or(own).eq_ignore_ascii_case(name);
        words.any(is_it).then_some(address)
    };
    text.lines().filter_map(address).collect()
}

const HOSTS: &str = "/etc/hosts";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_file() {
        let text = "127.0.0.1 localhost\n10.0.0.7\tDB.corp. db # not-this\n#10.0.0.8 db\n\nfd00::7 db.corp\nnonsense db";
        let of = |name: &str| of_file(text, name).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(of("db.corp"), ["10.0.0.7", "fd00::7"]);
        assert_eq!((of("db"), of("not-this"), of("corp")), (vec!["10.0.0.7".to_owned()], vec![], vec![]));
    }
}
