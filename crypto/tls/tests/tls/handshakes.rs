//! Our client and our server with each other, in every way they can agree on.

use crate::authority::{Authority, Identity, KeyType, server_config};
use crate::probe::Probe;
use crate::wire::{Conversation, End};
use keyway_engine::Engine;
use keyway_tls::{
    Certified, ClientVerifier, ConfigError, ServerOptions, client_config, provider,
    server_config as server_with, server_config_with,
};
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, Error, HandshakeKind, NamedGroup,
    RootCertStore, ServerConfig, SignatureAlgorithm, SupportedProtocolVersion,
};
use std::sync::{Arc, LazyLock};

static ENGINE: LazyLock<Engine> = LazyLock::new(keyway_drivers::engine);
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| provider(&ENGINE));
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new(KeyType::P256));

/// Several records.
const BYTES: usize = 40_000;

fn server(identity: &Identity) -> Arc<ServerConfig> {
    let Identity { chain, key, .. } = identity.clone();
    Arc::new(server_config(&ENGINE, chain, key, None).unwrap())
}

fn client() -> ClientConfig {
    client_config(&PROVIDER, AUTHORITY.roots()).unwrap()
}

/// A client that offers less than it could.
fn restricted_client(
    version: &'static SupportedProtocolVersion,
    restrict: impl FnOnce(&mut CryptoProvider),
) -> Arc<ClientConfig> {
    let mut provider = (**PROVIDER).clone();
    restrict(&mut provider);
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(AUTHORITY.roots())
        .with_no_client_auth();
    Arc::new(config)
}

/// A server that does less than it could.
fn restricted_server(groups: &[NamedGroup]) -> Arc<ServerConfig> {
    let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
    let mut provider = (**PROVIDER).clone();
    provider.kx_groups.retain(|group| groups.contains(&group.name()));
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}

#[test]
fn every_version_suite_group_and_key() {
    let mut combinations = 0;
    for key_type in KeyType::ALL {
        let server = server(&AUTHORITY.issue(key_type));
        for suite in &PROVIDER.cipher_suites {
            if !suite.usable_for_signature_algorithm(key_type.suite_algorithm()) {
                continue;
            }
            for group in &PROVIDER.kx_groups {
                let version = suite.version();
                if !group.usable_for_version(version.version) {
                    continue;
                }
                let client = restricted_client(version, |provider| {
                    provider.cipher_suites = vec![*suite];
                    provider.kx_groups = vec![*group];
                });
                let done = Conversation::new(&client, &server, BYTES).run().assert_done();
                for side in [done.client.connection(), done.server.connection()] {
                    assert_eq!(side.protocol_version(), Some(version.version));
                    assert_eq!(side.negotiated_cipher_suite(), Some(*suite));
                    let agreed = side.negotiated_key_exchange_group().unwrap();
                    assert_eq!(agreed.name(), group.name());
                    assert_eq!(side.handshake_kind(), Some(HandshakeKind::Full));
                }
                combinations += 1;
            }
        }
    }
    assert_eq!(combinations, 4 * 3 * 4 + 4 * 3 * 3);
}

#[test]
fn a_server_without_the_hybrid_takes_its_classical_half() {
    let client = Arc::new(client());
    let server = restricted_server(&[NamedGroup::X25519]);
    let done = Conversation::new(&client, &server, BYTES).run().assert_done();
    let connection = done.client.connection();
    assert_eq!(connection.negotiated_key_exchange_group().unwrap().name(), NamedGroup::X25519);
    assert_eq!(connection.handshake_kind(), Some(HandshakeKind::Full));
}

#[test]
fn a_server_with_another_group_asks_again() {
    let client = Arc::new(client());
    let server = restricted_server(&[NamedGroup::secp384r1]);
    let done = Conversation::new(&client, &server, BYTES).run().assert_done();
    let kind = done.client.connection().handshake_kind();
    assert_eq!(kind, Some(HandshakeKind::FullWithHelloRetryRequest));
}

#[test]
fn lengths_around_a_record() {
    let (client, server) = (Arc::new(client()), server(&AUTHORITY.issue(KeyType::P256)));
    for bytes in [1, 16_383, 16_384, 16_385, 500_000] {
        Conversation::new(&client, &server, bytes).run().assert_done();
    }
}

#[test]
fn clients_may_show_a_certificate() {
    for version in [&TLS12, &TLS13] {
        let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
        let roots = Some(AUTHORITY.roots());
        let server = Arc::new(server_config(&ENGINE, chain, key, roots).unwrap());
        let without = restricted_client(version, |_| {});
        let done = Conversation::new(&without, &server, BYTES).run().assert_done();
        assert_eq!(done.server.connection().peer_certificates(), None);
        for key_type in KeyType::ALL {
            let shown = AUTHORITY.issue(key_type);
            let client = client_with(version, &shown);
            let done = Conversation::new(&client, &server, BYTES).run().assert_done();
            let seen = done.server.connection().peer_certificates();
            assert_eq!(seen, Some(&shown.chain[..]));
        }
    }
}

#[test]
fn a_client_certificate_of_strangers_is_refused() {
    let strangers = Authority::new(KeyType::P256);
    for version in [&TLS12, &TLS13] {
        let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
        let roots = Some(AUTHORITY.roots());
        let server = Arc::new(server_config(&ENGINE, chain, key, roots).unwrap());
        let client = client_with(version, &strangers.issue(KeyType::P256));
        let failed = Conversation::new(&client, &server, BYTES).run().assert_failed();
        let (client, server) = failed.ends();
        assert!(is_unknown_issuer(server), "{server:?}");
        assert!(is_alert(client, AlertDescription::UnknownCA), "{client:?}");
    }
}

fn client_with(
    version: &'static SupportedProtocolVersion,
    identity: &Identity,
) -> Arc<ClientConfig> {
    let Identity { chain, key, .. } = identity.clone();
    let config = ClientConfig::builder_with_provider(PROVIDER.clone())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(AUTHORITY.roots())
        .with_client_auth_cert(chain, key)
        .unwrap();
    Arc::new(config)
}

#[test]
fn a_server_of_strangers_is_refused() {
    let strangers = Authority::new(KeyType::P256);
    let server = server(&strangers.issue(KeyType::P256));
    for version in [&TLS12, &TLS13] {
        let client = restricted_client(version, |_| {});
        let failed = Conversation::new(&client, &server, BYTES).run().assert_failed();
        let (client, server) = failed.ends();
        assert!(is_unknown_issuer(client), "{client:?}");
        assert!(is_alert(server, AlertDescription::UnknownCA), "{server:?}");
    }
}

fn is_unknown_issuer(end: &End) -> bool {
    let End::Failed(error) = end else { return false };
    *error == Error::InvalidCertificate(CertificateError::UnknownIssuer)
}

fn is_alert(end: &End, alert: AlertDescription) -> bool {
    matches!(end, End::Failed(Error::AlertReceived(received)) if *received == alert)
}

#[test]
fn tickets_resume_and_only_where_they_were_sealed() {
    let identity = AUTHORITY.issue(KeyType::P256);
    let (first, second) = (server(&identity), server(&identity));
    for version in [&TLS12, &TLS13] {
        let client = restricted_client(version, |_| {});
        let kind = |server| {
            let done = Conversation::new(&client, server, BYTES).run().assert_done();
            let kinds = [&done.client, &done.server].map(|side| side.connection().handshake_kind());
            assert_eq!(kinds[0], kinds[1]);
            kinds[0].unwrap()
        };
        assert_eq!(kind(&first), HandshakeKind::Full);
        assert_eq!(kind(&first), HandshakeKind::Resumed);
        assert_eq!(kind(&first), HandshakeKind::Resumed);
        assert_eq!(kind(&second), HandshakeKind::Full);
        assert_eq!(kind(&second), HandshakeKind::Resumed);
    }
}

#[test]
fn a_resumed_client_keeps_its_certificate() {
    let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
    let server = Arc::new(server_config(&ENGINE, chain, key, Some(AUTHORITY.roots())).unwrap());
    for version in [&TLS12, &TLS13] {
        let shown = AUTHORITY.issue(KeyType::Ed25519);
        let client = client_with(version, &shown);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let done = Conversation::new(&client, &server, BYTES).run().assert_done();
            let connection = done.server.connection();
            assert_eq!(connection.handshake_kind(), Some(kind));
            assert_eq!(connection.peer_certificates(), Some(&shown.chain[..]));
        }
    }
}

/// Whichever record is spoiled, the side that gets it notices and both come to an end.
#[test]
fn a_spoiled_record_ends_the_connection() {
    let server = server(&AUTHORITY.issue(KeyType::P256));
    for version in [&TLS12, &TLS13] {
        let client = restricted_client(version, |_| {});
        for by_client in [true, false] {
            for record in 0.. {
                let mut conversation = Conversation::new(&client, &server, BYTES);
                let mut seen = 0;
                let mut spoiled = false;
                conversation.run_through(|from_client, bytes| {
                    if from_client == by_client {
                        spoiled |= spoil(bytes, record, &mut seen);
                    }
                });
                if !spoiled {
                    assert!(record > 5, "there should have been more records");
                    conversation.assert_done();
                    break;
                }
                let (client, server) = conversation.ends();
                assert!(!client.is_done() || !server.is_done(), "record {record} does not matter");
            }
        }
    }
}

/// Records too short to hold a nonce and a tag are as bad as spoiled ones.
#[test]
fn a_short_record_ends_the_connection() {
    let server = server(&AUTHORITY.issue(KeyType::P256));
    for suite in &PROVIDER.cipher_suites {
        if !suite.usable_for_signature_algorithm(SignatureAlgorithm::ECDSA) {
            continue;
        }
        let client = restricted_client(suite.version(), |provider| {
            provider.cipher_suites = vec![*suite];
        });
        for bytes in [0, 1, 7, 8, 15, 16, 17, 23, 24] {
            let mut conversation = Conversation::new(&client, &server, BYTES);
            conversation.run_through(|from_client, sent| {
                if !from_client && sent.first() == Some(&23) {
                    *sent = [&[23, 3, 3, 0, bytes][..], &vec![0; bytes.into()]].concat();
                }
            });
            let failed = conversation.assert_failed();
            let (client, server) = failed.ends();
            assert!(matches!(client, End::Failed(Error::DecryptError)), "{bytes}: {client:?}");
            assert!(is_alert(server, AlertDescription::BadRecordMac), "{bytes}: {server:?}");
        }
    }
}

/// Changes the last bit of the `record`-th record since the beginning, if it is in these bytes.
fn spoil(bytes: &mut [u8], record: usize, seen: &mut usize) -> bool {
    let mut rest = bytes;
    let mut spoiled = false;
    while rest.len() > 5 {
        let length = 5 + usize::from(rest[3]) * 256 + usize::from(rest[4]);
        let (this, after) = rest.split_at_mut(length);
        // A changed ChangeCipherSpec is an error too, but not one of cryptography.
        if this[0] != 20 {
            if *seen == record {
                this[length - 1] ^= 1;
                spoiled = true;
            }
            *seen += 1;
        }
        rest = after;
    }
    spoiled
}

#[test]
fn traffic_keys_do_not_come_out() {
    let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
    let mut server = server_config(&ENGINE, chain, key, None).unwrap();
    server.enable_secret_extraction = true;
    let server = Arc::new(server);
    for version in [&TLS12, &TLS13] {
        let client = restricted_client(version, |_| {});
        let done = Conversation::new(&client, &server, BYTES).run().assert_done();
        let extracted = match done.server.connection.unwrap() {
            rustls::Connection::Server(server) => server.dangerous_extract_secrets(),
            rustls::Connection::Client(_) => unreachable!(),
        };
        assert!(extracted.is_err());
    }
}

#[test]
fn exported_keying_material_agrees() {
    let server = server(&AUTHORITY.issue(KeyType::P256));
    for version in [&TLS12, &TLS13] {
        let client = restricted_client(version, |_| {});
        let done = Conversation::new(&client, &server, BYTES).run().assert_done();
        let exported = [done.client, done.server].map(|side| {
            let connection = side.connection.unwrap();
            connection.export_keying_material([0; 64], b"EXPORTER-test", None).unwrap()
        });
        assert_eq!(exported[0], exported[1]);
        assert_ne!(exported[0], [0; 64]);
    }
}

#[test]
fn a_certificate_with_another_key_is_refused() {
    for key_type in KeyType::ALL {
        let chain = AUTHORITY.issue(key_type).chain;
        let key = AUTHORITY.issue(key_type).key;
        let refused = server_config(&ENGINE, chain, key, None).unwrap_err();
        assert!(matches!(refused, ConfigError::Certificate(_)), "{refused}");
    }
}

#[test]
fn client_authorities_must_not_be_empty() {
    let refused = ClientVerifier::new(&PROVIDER, RootCertStore::empty(), &[], false).unwrap_err();
    assert!(matches!(refused, ConfigError::ClientAuthorities), "{refused}");
}

#[test]
fn an_engine_that_can_do_nothing_makes_no_configuration() {
    let engine = Engine::builder().slow_pool(0, 0).build();
    let refused = client_config(&provider(&engine), AUTHORITY.roots()).unwrap_err();
    assert!(matches!(refused, ConfigError::Engine(_)), "{refused}");
    let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
    let options = ServerOptions::new(&ENGINE).unwrap();
    let certified = Certified::new(&options.provider, chain, key, &[]).unwrap();
    let options = ServerOptions { provider: provider(&engine), ..options };
    let refused = server_config_with(&options, &[certified]).unwrap_err();
    assert!(matches!(refused, ConfigError::Engine(_)), "{refused}");
}

#[test]
fn an_engine_that_gives_no_ticket_key_makes_no_server() {
    let probe = Probe::new();
    let engine = probe.engine();
    probe.restart(0..0);
    ServerOptions::new(&engine).unwrap();
    let last = probe.events().len() - 1;
    probe.restart(last..last + 1);
    let refused = ServerOptions::new(&engine).unwrap_err();
    assert!(matches!(refused, ConfigError::Tickets(_)), "{refused}");
}

/// A server's configuration is made again: with what it had before, tickets stay good; with other
/// tickets, or none that open, clients make a full handshake.
#[test]
fn tickets_outlive_a_configuration_that_keeps_its_options() {
    let Identity { chain, key, .. } = AUTHORITY.issue(KeyType::P256);
    let options = ServerOptions::new(&ENGINE).unwrap();
    let other = ServerOptions::new(&ENGINE).unwrap();
    let made = |options| Arc::new(server_with(options, chain.clone(), key.clone_key()).unwrap());
    for version in [&TLS12, &TLS13] {
        let client = restricted_client(version, |_| {});
        let talk = |server: &Arc<ServerConfig>| {
            let done = Conversation::new(&client, server, BYTES).run().assert_done();
            done.client.connection().handshake_kind()
        };
        assert_eq!(talk(&made(&options)), Some(HandshakeKind::Full));
        assert_eq!(talk(&made(&options)), Some(HandshakeKind::Resumed));
        assert_eq!(talk(&made(&other)), Some(HandshakeKind::Full));
    }
}
