//! Whom a sandbox trusts beside the machine's own certificate authorities, where its connections are to be opened.
//!
//! The key never enters the sandbox: it lies in its folder, readable by us alone, for the next daemon. Inside there is a copy
//! of the machine's bundle with one certificate more, mounted over the machine's own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use engine::launcher::Given;
use model::SandboxId;
use model::exec::Variable;
use model::sandbox::CreateRequest;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use super::problem::NativeError;
use super::store::Folder;

/// What signs for the hosts whose connections are opened, of one sandbox.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Who signs.
    #[must_use]
    pub fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }
}

impl Folder {
    /// What a sandbox with this request is given, made the first time it is asked for.
    pub(super) fn trust(&self, home: &Path, request: &CreateRequest) -> Result<Vec<Given>, NativeError> {
        if !is_needed(request) {
            return Ok(Vec::new());
        }
        let key = match self.authority_key()? {
            Some(key) => key,
            None => self.make_authority_key()?,
        };
        let failed = |source| NativeError::Authority { source };
        let certificate = params(&self.0).self_signed(&key).map_err(failed)?.pem();
        let places = places();
        let mut given = Vec::new();
        for (number, place) in places.iter().enumerate() {
            let mut bundle =
                fs::read(place).map_err(|source| NativeError::Read { path: place.clone(), source })?;
            bundle.extend_from_slice(b"\n");
            bundle.extend_from_slice(certificate.as_bytes());
            let file = self.0.join(format!("trust.{number}.pem"));
            let written = fs::write(&file, bundle);
            written.map_err(|source| NativeError::Write { path: file.clone(), source })?;
            let file = file.strip_prefix(home).unwrap_or(&file).to_owned();
            given.push(Given { file, at: place.clone() });
        }
        Ok(given)
    }

    /// Who signs for the hosts that a sandbox reaches. None: it was made without.
    pub(super) fn authority(&self) -> Result<Option<Authority>, NativeError> {
        let key = self.authority_key()?;
        Ok(key.map(|key| Authority { issuer: Issuer::new(params(&self.0), key) }))
    }

    fn authority_key(&self) -> Result<Option<KeyPair>, NativeError> {
        let path = self.0.join(KEY);
        match fs::read_to_string(&path) {
            Ok(text) => {
                KeyPair::from_pem(&text).map(Some).map_err(|source| NativeError::Authority { source })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(NativeError::Read { path, source }),
        }
    }

    fn make_authority_key(&self) -> Result<KeyPair, NativeError> {
        let key = KeyPair::generate().map_err(|source| NativeError::Authority { source })?;
        let path = self.0.join(KEY);
        let file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(key.serialize_pem().as_bytes()));
        written.map_err(|source| NativeError::Write { path, source })?;
        Ok(key)
    }
}

/// Are connections of a sandbox with this request to be opened?
pub(super) fn is_needed(request: &CreateRequest) -> bool {
    request.net.policy().is_some_and(model::net::Policy::may_inspect)
}

/// The variables by which programs that do not ask the system find whom to trust.
#[must_use]
pub fn trust_variables() -> Vec<Variable> {
    let Some(bundle) = places().into_iter().next() else { return Vec::new() };
    let variable = |name: &str| Variable { name: name.into(), value: bundle.clone().into() };
    VARIABLES.iter().map(|name| variable(name)).collect()
}

/// The certificate's name is the sandbox's, so that it is the same whoever asks.
fn params(folder: &Path) -> CertificateParams {
    let id =
        folder.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<SandboxId>().ok());
    let name = id.map_or_else(|| "zeno".to_owned(), |id| format!("zeno {id}"));
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Where this machine keeps its bundle, links followed. The first is what programs are pointed to.
fn places() -> Vec<PathBuf> {
    let mut known = BTreeSet::new();
    let real = BUNDLES.iter().filter_map(|place| fs::canonicalize(place).ok());
    real.filter(|place| place.is_file() && known.insert(place.clone())).collect()
}

const KEY: &str = "authority.key";

/// Debian and its kin, Fedora and its kin, SUSE, Alpine.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// OpenSSL and Python, requests, pip, curl, git, cargo, Node, AWS tools, Deno.
const VARIABLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
];
