//! Whom a sandbox trusts beside the machine's own certificate authorities, where its connections are to be opened.
//!
//! The key never enters the sandbox: it lies in its folder, readable by us alone, for the next daemon. Inside there is a copy
//! of the machine's bundle with one certificate more, mounted over the machine's own, and the same of Java's stores.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use engine::launcher::Given;
use model::SandboxId;
use model::exec::Variable;
use model::given::Trusted;
use model::sandbox::CreateRequest;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use sha2::{Digest, Sha256};

use super::java;
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

/// What of it is seen inside.
#[derive(Clone, Debug)]
pub(super) struct Certificate {
    pem: String,
    der: Vec<u8>,
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
        let certificate = match self.certificate()? {
            Some(certificate) => certificate,
            None => self.make_certificate(&key)?,
        };
        let read = |place: &PathBuf| {
            fs::read(place).map_err(|source| NativeError::Read { path: place.clone(), source })
        };
        let (mut given, mut first) = (Vec::new(), Vec::new());
        for (number, place) in places().into_iter().enumerate() {
            let mut bundle = read(&place)?;
            if number == 0 {
                first.clone_from(&bundle);
            }
            bundle.extend_from_slice(b"\n");
            bundle.extend_from_slice(certificate.pem.as_bytes());
            given.push(self.give(home, &format!("trust.{number}.pem"), &bundle, place)?);
        }
        for (number, place) in java::stores(&request.context).into_iter().enumerate() {
            let store = java::with(&read(&place)?, &first, JAVAS_NAME, &certificate.der);
            given.push(self.give(home, &format!("trust.{number}.jks"), &store, place)?);
        }
        Ok(given)
    }

    /// Writes a file for everyone inside to read, whoever wrote it.
    fn give(&self, home: &Path, name: &str, bytes: &[u8], at: PathBuf) -> Result<Given, NativeError> {
        let path = self.0.join(name);
        let written =
            fs::write(&path, bytes).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o644)));
        written.map_err(|source| NativeError::Write { path: path.clone(), source })?;
        Ok(Given { file: path.strip_prefix(home).unwrap_or(&path).to_owned(), at })
    }

    /// Whom the sandbox trusts of ours, and where it reads so. None: it was made without.
    pub(super) fn trusted(&self) -> Result<Option<Trusted>, NativeError> {
        let Some(certificate) = self.certificate()? else { return Ok(None) };
        let digest = Sha256::digest(&certificate.der);
        let fingerprint = digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
        let bundle = places().into_iter().next().map(Into::into);
        Ok(Some(Trusted { bundle, subject: format!("CN={}", name(&self.0)), fingerprint }))
    }

    fn certificate(&self) -> Result<Option<Certificate>, NativeError> {
        let path = self.0.join(CERTIFICATE);
        match fs::read_to_string(&path) {
            // One that is not whole is made again.
            Ok(pem) => Ok(java::certificates(pem.as_bytes()).pop().map(|der| Certificate { pem, der })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(NativeError::Read { path, source }),
        }
    }

    fn make_certificate(&self, key: &KeyPair) -> Result<Certificate, NativeError> {
        let failed = |source| NativeError::Authority { source };
        let made = params(&self.0).self_signed(key).map_err(failed)?;
        let path = self.0.join(CERTIFICATE);
        fs::write(&path, made.pem()).map_err(|source| NativeError::Write { path, source })?;
        Ok(Certificate { pem: made.pem(), der: made.der().to_vec() })
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
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name(folder));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn name(folder: &Path) -> String {
    let id =
        folder.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<SandboxId>().ok());
    id.map_or_else(|| "zeno".to_owned(), |id| format!("zeno {id}"))
}

/// Where this machine keeps its bundle, links followed. The first is what programs are pointed to.
fn places() -> Vec<PathBuf> {
    let mut known = BTreeSet::new();
    let real = BUNDLES.iter().filter_map(|place| fs::canonicalize(place).ok());
    real.filter(|place| place.is_file() && known.insert(place.clone())).collect()
}

const KEY: &str = "authority.key";
const CERTIFICATE: &str = "authority.pem";
/// Under which Java lists it.
const JAVAS_NAME: &str = "zeno";

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
