//! The way from an opened connection to the real host, whose certificate has to be one that this machine trusts.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::super::way::Exit;
use super::stream::Wire;

/// Whom this machine trusts.
#[derive(Debug)]
pub(in super::super) struct Trust {
    /// Beside its own.
    more: Vec<CertificateDer<'static>>,
    /// Read when it is first needed: it takes some milliseconds.
    roots: OnceLock<Arc<RootCertStore>>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("failed to read the certificates in `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    Any,
    /// What changes its protocol on the way, as WebSockets do, needs the older one.
    OnlyHttp1,
}

impl Trust {
    pub(in super::super) fn new(more: Option<&Path>) -> Result<Self, TrustError> {
        let read = |path: &Path| {
            let failed = |source| TrustError::Read { path: path.to_owned(), source };
            CertificateDer::pem_file_iter(path)
                .map_err(failed)?
                .collect::<Result<Vec<_>, _>>()
                .map_err(failed)
        };
        Ok(Self { more: more.map(read).transpose()?.unwrap_or_default(), roots: OnceLock::new() })
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let read = || {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "certificates of this machine cannot be read");
            }
            let mut roots = RootCertStore::empty();
            let (_, unusable) =
                roots.add_parsable_certificates(found.certs.into_iter().chain(self.more.clone()));
            if unusable > 0 {
                tracing::debug!(unusable, "certificates of this machine cannot be used");
            }
            Arc::new(roots)
        };
        Arc::clone(self.roots.get_or_init(read))
    }

    fn config(&self, speech: Speech) -> Result<ClientConfig, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots())
            .with_no_client_auth();
        config.alpn_protocols = match speech {
            Speech::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Speech::OnlyHttp1 => vec![b"http/1.1".to_vec()],
        };
        Ok(config)
    }
}

/// Goes where it was decided that the connection may, whatever it is asked for.
#[derive(Clone)]
pub(super) struct Way {
    exit: Exit,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Way {
    pub(super) fn plain(exit: Exit) -> Self {
        Self { exit, tls: None }
    }

    pub(super) fn tls(exit: Exit, host: &str, trust: &Trust, speech: Speech) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = trust.config(speech).map_err(io::Error::other)?;
        Ok(Self { exit, tls: Some((TlsConnector::from(Arc::new(config)), name)) })
    }

    async fn go(self) -> io::Result<TokioIo<Wire>> {
        let stream = self.exit.dial().await?;
        let wire = match self.tls {
            None => Wire::Plain(stream),
            Some((connector, name)) => {
                let handshake = tokio::time::timeout(super::PATIENCE, connector.connect(name, stream)).await;
                Wire::Tls(Box::new(handshake.map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))??))
            }
        };
        Ok(TokioIo::new(wire))
    }
}

impl tower::Service<Uri> for Way {
    type Response = TokioIo<Wire>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Wire>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().go())
    }
}
