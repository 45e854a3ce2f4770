//! The certificates of clients that a server takes.

use crate::authority::{Authority, Identity, KeyType};
use crate::wire::Conversation;
use keyway_engine::Engine;
use keyway_tls::{ClientVerifier, ConfigError, ServerOptions, provider, server_config};
use rcgen::ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
use rustls::pki_types::CertificateRevocationListDer;
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, Error, ServerConfig, SupportedProtocolVersion};
use std::sync::{Arc, LazyLock};

static ENGINE: LazyLock<Engine> = LazyLock::new(keyway_drivers::engine);
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new(KeyType::P256));

const BYTES: usize = 1_000;

fn server(lists: &[CertificateRevocationListDer<'_>], required: bool) -> Arc<ServerConfig> {
    let mut options = ServerOptions::new(&ENGINE).unwrap();
    let clients =
        ClientVerifier::new(&options.provider, AUTHORITY.roots(), lists, required).unwrap();
    options.clients = Arc::new(clients);
    let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
    Arc::new(server_config(&options, chain, key).unwrap())
}

fn client(
    version: &'static SupportedProtocolVersion,
    identity: Option<&Identity>,
) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(provider(&ENGINE))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(AUTHORITY.roots());
    Arc::new(match identity.cloned() {
        None => config.with_no_client_auth(),
        Some(Identity { chain, key, .. }) => config.with_client_auth_cert(chain, key).unwrap(),
    })
}

/// The server's answer to a client with this certificate.
#[track_caller]
fn refusal(server: &Arc<ServerConfig>, identity: Option<&Identity>) -> String {
    let [one, other] = [&TLS12, &TLS13].map(|version| {
        let client = client(version, identity);
        let failed = Conversation::new(&client, server, BYTES).run().assert_failed();
        let (_, server) = failed.ends();
        // The reason, without the second in which it was found: the other version may be in the next one.
        let why = format!("{server:?}");
        why.split(" { time").next().unwrap_or_default().to_owned()
    });
    assert_eq!(one, other);
    one
}

#[track_caller]
fn accepts(server: &Arc<ServerConfig>, identity: &Identity) {
    for version in [&TLS12, &TLS13] {
        let client = client(version, Some(identity));
        Conversation::new(&client, server, BYTES).run().assert_done();
    }
}

#[test]
fn a_certificate_must_be_for_clients() {
    let server = server(&[], false);
    for good in [&[ClientAuth][..], &[ServerAuth, ClientAuth]] {
        accepts(&server, &AUTHORITY.issue_for(KeyType::P256, good, 1));
    }
    for bad in [&[][..], &[ServerAuth], &[Any]] {
        let why = refusal(&server, Some(&AUTHORITY.issue_for(KeyType::P256, bad, 1)));
        assert!(why.contains("InvalidPurpose"), "{bad:?}: {why}");
    }
}

#[test]
fn a_certificate_can_be_demanded() {
    let server = server(&[], true);
    accepts(&server, &AUTHORITY.issue(KeyType::Ed25519));
    let why = refusal(&server, None);
    assert!(why.contains("NoCertificatesPresented"), "{why}");
}

#[test]
fn what_is_revoked_or_not_known_not_to_be_is_refused() {
    let issue = |serial| AUTHORITY.issue_for(KeyType::P256, &[ClientAuth], serial);
    let (good, revoked) = (issue(7), issue(8));
    let now = server(&[AUTHORITY.revoke(&[8], 4000)], false);
    accepts(&now, &good);
    let why = refusal(&now, Some(&revoked));
    assert!(why.contains("Revoked"), "{why}");
    let old = server(&[AUTHORITY.revoke(&[8], 2021)], false);
    let why = refusal(&old, Some(&good));
    assert!(why.contains("ExpiredRevocationList"), "{why}");
    let strangers = Authority::new(KeyType::P256);
    let none = server(&[strangers.revoke(&[8], 4000)], false);
    let why = refusal(&none, Some(&good));
    assert!(why.contains("UnknownRevocationStatus"), "{why}");
}

#[test]
fn a_list_that_is_none_is_refused_by_its_place() {
    let lists = [AUTHORITY.revoke(&[], 4000), vec![0x30, 0].into()];
    let refused =
        ClientVerifier::new(&provider(&ENGINE), AUTHORITY.roots(), &lists, false).unwrap_err();
    let bad = Error::InvalidCertificate(CertificateError::BadEncoding);
    assert!(matches!(refused, ConfigError::RevocationList(1, why) if why == bad));
}
