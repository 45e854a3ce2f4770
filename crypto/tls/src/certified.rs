//! A server's certificates with their keys, and which of them a client gets.

use crate::error::ConfigError;
use crate::sign;
use keyway_engine::Engine;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

/// A certificate, those of its issuers, and its key, which fits.
#[derive(Clone, Debug)]
pub struct Certified {
    key: Arc<CertifiedKey>,
    /// The hosts that it is for, in lower case; `*.` stands for one label.
    hosts: Vec<String>,
}

impl Certified {
    /// With a private key that the provider's engine is given. `chain` starts with the server's own
    /// certificate; `hosts` are the DNS names in it.
    ///
    /// # Errors
    /// [`ConfigError::Certificate`].
    pub fn new(
        provider: &CryptoProvider,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        hosts: &[&str],
    ) -> Result<Certified, ConfigError> {
        let key = provider.key_provider.load_private_key(key).map_err(ConfigError::Certificate)?;
        Certified::checked(CertifiedKey::new(chain, key), hosts)
    }

    /// With a private key that a driver of the engine holds under this name, and that is not seen
    /// here. It signs in those schemes that it may be used for there.
    ///
    /// # Errors
    /// [`ConfigError::Certificate`].
    pub fn held(
        engine: &Engine,
        chain: Vec<CertificateDer<'static>>,
        name: &str,
        hosts: &[&str],
    ) -> Result<Certified, ConfigError> {
        let own = chain.first().ok_or(rustls::Error::NoCertificatesPresented);
        let key = own.and_then(|own| sign::held(engine, name, own));
        Certified::checked(CertifiedKey::new(chain, key.map_err(ConfigError::Certificate)?), hosts)
    }

    /// A resolver that gives it to every client, for a server that is configured elsewhere.
    pub fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::new(ByHost::new(std::slice::from_ref(self)))
    }

    fn checked(key: CertifiedKey, hosts: &[&str]) -> Result<Certified, ConfigError> {
        key.keys_match().map_err(ConfigError::Certificate)?;
        let hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Ok(Certified { key: Arc::new(key), hosts })
    }
}

/// The certificate for the host that a client asks for (RFC 6066 § 3): the first that names it,
/// else the first with a wildcard for it, else the first of all. Those whose keys sign in no way that
/// the client knows are passed over, so that one host can have an RSA certificate beside another.
#[derive(Debug)]
pub(crate) struct ByHost {
    all: Vec<Arc<CertifiedKey>>,
    by_host: HashMap<String, Vec<Arc<CertifiedKey>>>,
}

impl ByHost {
    pub(crate) fn new(certificates: &[Certified]) -> ByHost {
        let mut by_host: HashMap<String, Vec<_>> = HashMap::new();
        for Certified { key, hosts } in certificates {
            for host in hosts {
                by_host.entry(host.clone()).or_default().push(key.clone());
            }
        }
        ByHost { all: certificates.iter().map(|one| one.key.clone()).collect(), by_host }
    }
}

impl ResolvesServerCert for ByHost {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let host = hello.server_name().map(str::to_ascii_lowercase);
        let wildcard = host.as_deref().and_then(|host| host.split_once('.'));
        let wildcard = wildcard.map(|(_, below)| format!("*.{below}"));
        let named = [host, wildcard].into_iter().flatten();
        let named = named.filter_map(|host| self.by_host.get(&host)).flatten();
        let can_sign =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        named.chain(&self.all).find(can_sign).or(self.all.first()).cloned()
    }
}
