//! The TLS between members: 1.3, with certificates of members at both ends, whatever host they are on. Files are read
//! at each handshake, which is rare, so that a server which becomes a member need not be told.

use super::certificate::member_of;
use super::files::{Key, complete};
use keyway_engine::{Algorithm, Engine};
use keyway_host::failure::Failure;
use keyway_tls::{Certified, PeerVerifier, provider};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, Error, RootCertStore, ServerConfig, SupportedProtocolVersion,
};
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The protocol that a member asks for in its ClientHello (ALPN, RFC 7301).
pub const MEMBER_PROTOCOL: &[u8] = b"keyway-cluster/1";

const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13];
/// Certificates that a peer sends beside its own and that are looked at.
const OTHERS_MAX: usize = 4;

/// The configuration of the server's end, for a data folder that is a member's or becomes one. A peer may have no
/// certificate, if it is to join.
///
/// # Errors
/// If the engine cannot do TLS 1.3.
pub fn server(engine: &Engine, folder: &Path) -> Result<ServerConfig, Failure> {
    let provider = provider(engine);
    let own = folder.to_owned();
    let trust = move |certificate: &CertificateDer<'_>, _: &[CertificateDer<'_>]| {
        is_members(certificate)?;
        let key = complete(&own).map_err(|why| Error::General(why.to_string()))?;
        Ok(roots(&key.authority))
    };
    let verifier = Arc::new(PeerVerifier::new(&provider, Arc::new(trust)));
    let resolver = Resolver { folder: folder.to_owned(), provider: provider.clone() };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(Failure::new)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![MEMBER_PROTOCOL.to_vec()];
    // A session that is resumed is not verified again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The configuration of a member that connects to others.
///
/// # Errors
/// If the engine cannot do TLS 1.3, or the key is not that of the certificate.
pub fn client(engine: &Engine, own: Key) -> Result<ClientConfig, Failure> {
    let provider = provider(engine);
    let roots = roots(&own.authority);
    let trust = move |certificate: &CertificateDer<'_>, _: &[CertificateDer<'_>]| {
        is_members(certificate)?;
        Ok(roots.clone())
    };
    let verifier = Arc::new(PeerVerifier::new(&provider, Arc::new(trust)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(Failure::new)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(own.chain, own.key)
        .map_err(Failure::new)?;
    Ok(of_members(config))
}

/// The configuration of one that is to join: it takes a member whose authority's certificate has this SHA-256 digest, and
/// has no certificate.
///
/// # Errors
/// If the engine cannot do TLS 1.3.
pub fn joiner(engine: &Engine, authority: [u8; 32]) -> Result<ClientConfig, Failure> {
    let provider = provider(engine);
    let digests = engine.clone();
    let trust = move |certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>]| {
        is_members(certificate)?;
        let is_it = |other: &&CertificateDer<'_>| {
            let mut digest = [0; 32];
            let made = digests.digest(Algorithm::Sha256, &[other.as_ref()], &mut digest);
            made.is_ok() && digest == authority
        };
        let found = others.iter().take(OTHERS_MAX).find(is_it);
        let found = found.ok_or(CertificateError::UnknownIssuer)?;
        Ok(roots(std::slice::from_ref(found)))
    };
    let verifier = Arc::new(PeerVerifier::new(&provider, Arc::new(trust)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(Failure::new)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(of_members(config))
}

/// The member at the other end, by the certificates that the handshake has verified; `None` if it showed none.
pub fn peer(certificates: Option<&[CertificateDer<'_>]>) -> Option<u64> {
    member_of(certificates?.first()?)
}

fn of_members(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![MEMBER_PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config
}

/// One that the authority has issued for another purpose is none of a member.
fn is_members(certificate: &CertificateDer<'_>) -> Result<(), Error> {
    match member_of(certificate) {
        Some(_) => Ok(()),
        None => Err(CertificateError::ApplicationVerificationFailure.into()),
    }
}

fn roots(authority: &[CertificateDer<'_>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // One that is none has issued nothing.
    roots.add_parsable_certificates(authority.iter().map(|der| der.clone().into_owned()));
    roots
}

/// The member's certificate, as it is in its data folder.
struct Resolver {
    folder: PathBuf,
    provider: Arc<CryptoProvider>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // Without one there is no handshake.
        let own = complete(&self.folder).ok()?;
        let certified = Certified::new(&self.provider, own.chain, own.key, &[]).ok()?;
        certified.resolver().resolve(hello)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{for_client, identity};
    use crate::data::{Folder, name};
    use crate::folder_keys;
    use crate::host_names::Names;
    use crate::member::{Member, PublicKey, issue, keep, make_key};
    use crate::pem::certificates;
    use crate::signing::{self, SigningKey};
    use keyway_host::timestamp::Timestamp;
    use rustls::{ClientConnection, ServerConnection};
    use tempfile::TempDir;

    /// A data folder with an authority, which may be a member's.
    struct Site {
        place: TempDir,
        engine: Engine,
    }

    impl Site {
        fn new(member: Option<u64>) -> Site {
            let (place, engine) = (tempfile::tempdir().unwrap(), keyway_drivers::engine());
            let folder = Folder::open(place.path(), Timestamp::now()).unwrap();
            let names = Names { asked: Vec::new(), usual: Vec::new() };
            identity(&engine, &folder, None, &names, Timestamp::now()).unwrap();
            let site = Site { place, engine };
            if let Some(member) = member {
                site.keep(site.place.path(), member, member);
            }
            site
        }

        fn ca_key(&self) -> SigningKey {
            let key = folder_keys::read(&self.place.path().join(name::CA_KEY)).unwrap();
            SigningKey::load(&self.engine, &key).unwrap()
        }

        fn ca(&self) -> Vec<CertificateDer<'static>> {
            certificates(&self.place.path().join(name::CA_CERTIFICATE)).unwrap()
        }

        fn pin(&self) -> [u8; 32] {
            let mut digest = [0; 32];
            self.engine.digest(Algorithm::Sha256, &[&self.ca()[0]], &mut digest).unwrap();
            digest
        }

        /// Makes a folder a member's, whose certificate names one.
        fn keep(&self, folder: &Path, member: u64, certified: u64) {
            let (public, key) = make_key(&self.engine).unwrap();
            let public = PublicKey::read(&public).unwrap();
            let now = Timestamp::now();
            let pem =
                issue(&self.engine, self.ca_key(), &self.ca(), &public, certified, now).unwrap();
            let own =
                Member { id: format!("{member:016x}"), name: "a".to_owned(), follow: Vec::new() };
            keep(folder, &own, &pem, &key).unwrap();
        }

        /// The folder of another member of its cluster.
        fn other(&self, member: u64) -> TempDir {
            let other = tempfile::tempdir().unwrap();
            let ca = name::CA_CERTIFICATE;
            std::fs::copy(self.place.path().join(ca), other.path().join(ca)).unwrap();
            self.keep(other.path(), member, member);
            other
        }

        fn server(&self) -> ServerConfig {
            server(&self.engine, self.place.path()).unwrap()
        }

        fn client(&self, folder: &Path) -> ClientConfig {
            client(&self.engine, complete(folder).unwrap()).unwrap()
        }
    }

    /// Shakes hands; the members that the client and the server see.
    fn shake(
        client: ClientConfig,
        server: ServerConfig,
    ) -> Result<(Option<u64>, Option<u64>), Error> {
        let name = "keyway-cluster".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        for _ in 0..8 {
            let mut octets = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut octets).unwrap();
            }
            server.read_tls(&mut octets.as_slice()).unwrap();
            server.process_new_packets()?;
            octets.clear();
            while server.wants_write() {
                server.write_tls(&mut octets).unwrap();
            }
            client.read_tls(&mut octets.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        assert_eq!(server.alpn_protocol(), Some(MEMBER_PROTOCOL));
        Ok((peer(client.peer_certificates()), peer(server.peer_certificates())))
    }

    #[test]
    fn members_know_each_other_and_a_joiner_knows_the_writer() {
        let site = Site::new(Some(7));
        let other = site.other(0xffff_ffff_ffff_fff9);
        let seen = shake(site.client(other.path()), site.server()).unwrap();
        assert_eq!(seen, (Some(7), Some(0xffff_ffff_ffff_fff9)));
        let joiner = joiner(&site.engine, site.pin()).unwrap();
        assert_eq!(shake(joiner, site.server()).unwrap(), (Some(7), None));
    }

    #[test]
    fn who_is_no_member_is_refused_at_either_end() {
        let (site, elsewhere) = (Site::new(Some(7)), Site::new(Some(7)));
        // One of another authority.
        let theirs = || elsewhere.client(elsewhere.place.path());
        assert!(shake(theirs(), site.server()).is_err());
        assert!(shake(joiner(&site.engine, [1; 32]).unwrap(), site.server()).is_err());
        assert!(shake(joiner(&site.engine, site.pin()).unwrap(), elsewhere.server()).is_err());
        // A client's certificate, which the authority has issued, whatever its subject says.
        let (key, der) = SigningKey::generate(&site.engine).unwrap();
        let subject = "cn=keyway-cluster:0000000000000007";
        let subject: crate::subject::CertificateSubject = subject.parse().unwrap();
        let now = Timestamp::now();
        let issued = for_client(site.ca_key(), &site.ca(), &key, subject.name(), 9, now).unwrap();
        let other = site.other(8);
        std::fs::write(other.path().join("client.pem"), issued.pem()).unwrap();
        let mut own = complete(other.path()).unwrap();
        own.chain = certificates(&other.path().join("client.pem")).unwrap();
        own.key = der;
        let refused = shake(client(&site.engine, own).unwrap(), site.server()).unwrap_err();
        assert_eq!(
            refused,
            Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
        );
        // A server with a certificate of a server only.
        let key =
            signing::pem(&folder_keys::read(&site.place.path().join(name::SERVER_KEY)).unwrap());
        let of_server = std::fs::read(site.place.path().join(name::SERVER_CERTIFICATE)).unwrap();
        std::fs::write(site.place.path().join(name::cluster::CERTIFICATE), of_server).unwrap();
        crate::data::write_secret(site.place.path(), name::cluster::KEY, key.as_bytes()).unwrap();
        assert!(shake(joiner(&site.engine, site.pin()).unwrap(), site.server()).is_err());
    }

    #[test]
    fn a_folder_is_one_member_and_begins_to_be_it_while_its_server_runs() {
        let site = Site::new(None);
        let config = site.server();
        let joiner = || joiner(&site.engine, site.pin()).unwrap();
        assert!(shake(joiner(), config.clone()).is_err());
        site.keep(site.place.path(), 5, 5);
        assert_eq!(shake(joiner(), config.clone()).unwrap(), (Some(5), None));
        site.keep(site.place.path(), 5, 6);
        assert!(shake(joiner(), config).is_err(), "its certificate is another member's");
    }
}
