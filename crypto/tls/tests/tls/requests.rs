//! Nothing bypasses the engine: what is asked of it is exactly what the wire shows was needed.

use crate::authority::{Authority, Identity, KeyType, server_config};
use crate::probe::{Op, Probe};
use crate::wire::{Conversation, protected_records};
use keyway_engine::Algorithm;
use keyway_tls::provider;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, HandshakeKind, ProtocolVersion, ServerConfig, SupportedCipherSuite,
    SupportedProtocolVersion,
};
use std::process::Command;
use std::sync::Arc;

/// A client and a server, each with an engine of its own that writes everything down.
struct Watched {
    client_probe: Probe,
    server_probe: Probe,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    version: ProtocolVersion,
    aead: Algorithm,
}

impl Watched {
    /// Talks the version in a suite with ChaCha20-Poly1305, which tickets do not use.
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let authority = Authority::new(KeyType::P256);
        let (client_probe, server_probe) = (Probe::new(), Probe::new());

        let mut provider = (*provider(&client_probe.engine())).clone();
        provider.cipher_suites.retain(|suite| aead(suite) == Algorithm::ChaCha20Poly1305);
        let Identity { chain, key, .. } = authority.issue(KeyType::Ed25519);
        let client = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(authority.roots())
            .with_client_auth_cert(chain, key)
            .unwrap();

        let Identity { chain, key, .. } = authority.issue(KeyType::P256);
        let roots = Some(authority.roots());
        let server = server_config(&server_probe.engine(), chain, key, roots).unwrap();
        Watched {
            client_probe,
            server_probe,
            client: Arc::new(client),
            server: Arc::new(server),
            version: version.version,
            aead: Algorithm::ChaCha20Poly1305,
        }
    }

    /// One conversation, after which the probes hold what it took.
    fn talk(&self, kind: HandshakeKind) {
        self.client_probe.restart(0..0);
        self.server_probe.restart(0..0);
        let done = Conversation::new(&self.client, &self.server, 100_000).run().assert_done();
        assert_eq!(done.client.connection().handshake_kind(), Some(kind));
        self.assert_records(&done);
    }

    /// One request to seal for each protected record sent, and one to open it.
    fn assert_records(&self, done: &Conversation) {
        let (client, server) = (&self.client_probe, &self.server_probe);
        for (from, sent, to) in
            [(client, &done.client.sent, server), (server, &done.server.sent, client)]
        {
            let records = protected_records(sent, self.version);
            assert!(records > 7, "a finished, the data and a goodbye");
            assert_eq!(from.count_of(Op::Seal, self.aead), records);
            assert_eq!(to.count_of(Op::OpenRecord, self.aead), records);
        }
    }

    fn assert_counts(&self, probe: &Probe, expected: &[(Op, usize)]) {
        for (op, count) in expected {
            assert_eq!(probe.count(*op), *count, "{op:?} in {:?}", self.version);
        }
    }

    fn assert_some(&self, probe: &Probe, ops: &[Op]) {
        for op in ops {
            assert!(probe.count(*op) > 0, "no {op:?} in {:?}", self.version);
        }
    }
}

fn aead(suite: &SupportedCipherSuite) -> Algorithm {
    let name = format!("{:?}", suite.suite());
    if name.contains("CHACHA20") {
        Algorithm::ChaCha20Poly1305
    } else if name.contains("256_GCM") {
        Algorithm::Aes256Gcm
    } else {
        Algorithm::Aes128Gcm
    }
}

#[test]
fn tls13() {
    let watched = Watched::new(&TLS13);
    let (client, server) = (&watched.client_probe, &watched.server_probe);
    let hashing = [Op::Stream, Op::Update, Op::Fork, Op::Finish];
    let schedule = [Op::Extract, Op::Expand, Op::Mac, Op::Random];

    watched.talk(HandshakeKind::Full);
    for probe in [client, server] {
        watched.assert_some(probe, &hashing);
        watched.assert_some(probe, &schedule);
        // Each checks one certificate and one handshake, and signs one.
        watched.assert_counts(probe, &[(Op::Verify, 2), (Op::Sign, 1), (Op::Agree, 1)]);
    }
    // The client makes both halves of the hybrid; the server makes X25519's and encapsulates.
    watched.assert_counts(client, &[(Op::Generate, 2), (Op::PublicKey, 2), (Op::Decapsulate, 1)]);
    watched.assert_counts(server, &[(Op::Generate, 1), (Op::PublicKey, 1), (Op::Encapsulate, 1)]);
    // Two tickets.
    assert_eq!(server.count_of(Op::Seal, Algorithm::Aes256Gcm), 2);
    assert_eq!(server.count_of(Op::OpenRecord, Algorithm::Aes256Gcm), 0);

    watched.talk(HandshakeKind::Resumed);
    for probe in [client, server] {
        watched.assert_some(probe, &schedule);
        watched.assert_counts(probe, &[(Op::Verify, 0), (Op::Sign, 0), (Op::Agree, 1)]);
    }
    assert_eq!(server.count_of(Op::OpenRecord, Algorithm::Aes256Gcm), 1);
}

#[test]
fn tls12() {
    let watched = Watched::new(&TLS12);
    let (client, server) = (&watched.client_probe, &watched.server_probe);

    watched.talk(HandshakeKind::Full);
    for probe in [client, server] {
        watched.assert_some(probe, &[Op::Stream, Op::Update, Op::Finish, Op::Mac, Op::Random]);
        watched.assert_counts(
            probe,
            &[
                (Op::Verify, 2),
                (Op::Sign, 1),
                (Op::Generate, 1),
                (Op::PublicKey, 1),
                (Op::Agree, 1),
                (Op::Extract, 0),
            ],
        );
    }
    assert_eq!(server.count_of(Op::Seal, Algorithm::Aes256Gcm), 1);

    watched.talk(HandshakeKind::Resumed);
    for probe in [client, server] {
        watched.assert_some(probe, &[Op::Mac, Op::Random]);
        watched.assert_counts(probe, &[(Op::Verify, 0), (Op::Sign, 0), (Op::Agree, 0)]);
    }
    assert_eq!(server.count_of(Op::OpenRecord, Algorithm::Aes256Gcm), 1);
}

/// There is no other cryptography in what this crate is built from, unless as a test's own.
#[test]
fn no_primitives_among_the_dependencies() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "keyway-tls"])
        .args(["--edges", "no-dev", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("rustls v0.23"), "{tree}");
    for name in ["ring v", "aws-lc", "openssl", "sha2 v", "aes", "keyway-drivers"] {
        assert!(!tree.lines().any(|line| line.starts_with(name)), "{name} is in\n{tree}");
    }
}

/// Each suite's records go to its own algorithm.
#[test]
fn every_suite_seals_with_what_it_is_named_after() {
    let authority = Authority::new(KeyType::P256);
    let (client_probe, server_probe) = (Probe::new(), Probe::new());
    let engine = client_probe.engine();
    let whole = provider(&engine);
    let Identity { chain, key, .. } = authority.issue(KeyType::Rsa);
    let mut server = server_config(&server_probe.engine(), chain, key, None).unwrap();
    server.send_tls13_tickets = 0;
    let server = Arc::new(server);
    for suite in &whole.cipher_suites {
        if !suite.usable_for_signature_algorithm(KeyType::Rsa.suite_algorithm()) {
            continue;
        }
        let mut provider = (*whole).clone();
        provider.cipher_suites = vec![*suite];
        let mut client = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_root_certificates(authority.roots())
            .with_no_client_auth();
        client.resumption = rustls::client::Resumption::disabled();
        client_probe.restart(0..0);
        server_probe.restart(0..0);
        let done = Conversation::new(&Arc::new(client), &server, 50_000).run().assert_done();
        let version = suite.version().version;
        for (probe, sent) in
            [(&client_probe, &done.client.sent), (&server_probe, &done.server.sent)]
        {
            let records = protected_records(sent, version);
            assert_eq!(probe.count_of(Op::Seal, aead(suite)), records, "{suite:?}");
            assert_eq!(probe.count(Op::Seal), records, "{suite:?}");
        }
    }
}
