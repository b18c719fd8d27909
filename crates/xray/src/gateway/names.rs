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

    pub(super) async fn look_up(&self, name: &str) -> Lookup {
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
    options.use_hosts_file = if server.is_some() { ResolveHosts::Never } else { ResolveHosts::Always };
    builder.build()
}

fn of_servers(servers: Vec<NameServerConfig>) -> hickory_resolver::ResolverBuilder<TokioRuntimeProvider> {
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

fn changed() -> Option<SystemTime> {
    fs::metadata("/etc/resolv.conf").and_then(|metadata| metadata.modified()).ok()
}
