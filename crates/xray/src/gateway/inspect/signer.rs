//! Certificates for the hosts whose connections are opened, signed by the sandbox's own authority.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use control::Authority;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// One sandbox's.
#[derive(Debug)]
pub(in super::super) struct Signer {
    authority: Authority,
    /// The same for all hosts: it never leaves us.
    key: KeyPair,
    known: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

#[derive(Debug, thiserror::Error)]
pub(in super::super) enum SignError {
    #[error("failed to make a key")]
    Key {
        #[source]
        source: rcgen::Error,
    },
    #[error("failed to make a certificate for `{host}`")]
    Certificate {
        host: String,
        #[source]
        source: rcgen::Error,
    },
    #[error("failed to use the certificate for `{host}`")]
    Serve {
        host: String,
        #[source]
        source: rustls::Error,
    },
}

impl Signer {
    pub(in super::super) fn new(authority: Authority) -> Result<Self, SignError> {
        let key = KeyPair::generate().map_err(|source| SignError::Key { source })?;
        Ok(Self { authority, key, known: Mutex::default() })
    }

    /// How to be this host, for a client inside.
    pub(super) fn host(&self, host: &str) -> Result<Arc<ServerConfig>, SignError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = known.get(host) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.make(host)?);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(host.to_owned(), Arc::clone(&config));
        Ok(config)
    }

    fn make(&self, host: &str) -> Result<ServerConfig, SignError> {
        let failed = |source| SignError::Certificate { host: host.to_owned(), source };
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(failed)?;
        // A common name has a length, and nobody reads it where there is a subject alternative name.
        params.distinguished_name.push(DnType::CommonName, "zeno");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        // Some clients take none that is valid for more than 398 days.
        params.not_before = date_time_ymd(today.year().into(), today.month() as u8, 1) - DAY;
        params.not_after = params.not_before + 390 * DAY;
        let certificate = params.signed_by(&self.key, self.authority.issuer()).map_err(failed)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let failed = |source| SignError::Serve { host: host.to_owned(), source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key)
            })
            .map_err(failed)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
/// Hosts whose certificates are kept.
const KNOWN: usize = 256;
