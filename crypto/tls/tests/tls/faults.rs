//! An engine that fails, at every single operation of a conversation: both sides come to a clean
//! end, neither takes a wrong hash or key for a right one, and no plaintext leaves.

use crate::authority::{Authority, Identity, KeyType, server_config};
use crate::probe::{Op, Probe};
use crate::wire::{Conversation, End};
use keyway_engine::{Algorithm, Kind};
use keyway_tls::provider;
use rustls::client::Resumption;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, Error, HandshakeKind, NamedGroup, ServerConfig, SupportedCipherSuite,
    SupportedProtocolVersion,
};
use std::sync::Arc;

/// Enough that a part of it on the wire could not be there by chance.
const BYTES: usize = 200;

/// A client and a server, each with an engine of its own that fails when told to.
struct Pair {
    client_probe: Probe,
    server_probe: Probe,
    client: ClientConfig,
    server: Arc<ServerConfig>,
}

/// The side whose engine fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Client,
    Server,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let authority = Authority::new(KeyType::P256);
        let (client_probe, server_probe) = (Probe::new(), Probe::new());
        let Identity { chain, key, .. } = authority.issue(KeyType::Ed25519);
        let mut provider = (*provider(&client_probe.engine())).clone();
        // Tickets are sealed with AES-256, so that records here are not.
        provider.cipher_suites.retain(|suite| {
            let name = format!("{:?}", suite.suite());
            name.contains("AES_128")
        });
        let client = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(authority.roots())
            .with_client_auth_cert(chain, key)
            .unwrap();
        let Identity { chain, key, .. } = authority.issue(KeyType::P256);
        let roots = Some(authority.roots());
        let mut server = server_config(&server_probe.engine(), chain, key, roots).unwrap();
        // With one ticket it is plain which one the next connection uses.
        server.send_tls13_tickets = 1;
        Pair { client_probe, server_probe, client, server: Arc::new(server) }
    }

    fn probe(&self, who: Who) -> &Probe {
        match who {
            Who::Client => &self.client_probe,
            Who::Server => &self.server_probe,
        }
    }

    /// A client that has no ticket yet.
    fn fresh_client(&self) -> Arc<ClientConfig> {
        let mut client = self.client.clone();
        client.resumption = Resumption::in_memory_sessions(4);
        Arc::new(client)
    }

    fn talk(&self, client: &Arc<ClientConfig>) -> Conversation {
        Conversation::new(client, &self.server, BYTES).run()
    }

    /// A client that has a ticket, if it is to resume.
    fn client(&self, kind: HandshakeKind) -> Arc<ClientConfig> {
        let client = self.fresh_client();
        if kind == HandshakeKind::Resumed {
            self.talk(&client).assert_done();
        }
        client
    }

    /// Has each operation of a conversation fail in turn: alone, and with all that follow.
    fn fail_everywhere(&self, who: Who, kind: HandshakeKind) {
        let probe = self.probe(who);
        let client = self.client(kind);
        probe.restart(0..0);
        let whole = self.talk(&client).assert_done();
        assert_eq!(whole.client.connection().handshake_kind(), Some(kind));
        let operations = probe.events();
        assert!(operations.len() > 25, "only {} operations", operations.len());
        let mut harmless = 0;
        for (at, &(op, algorithm)) in operations.iter().enumerate() {
            let what = format!("{who:?}, {kind:?}, operation {at}, {op:?} of {algorithm}");
            for fails in [at..at + 1, at..usize::MAX] {
                let alone = fails.len() == 1;
                let client = self.client(kind);
                probe.restart(fails);
                let conversation = self.talk(&client);
                assert_eq!(probe.events()[at], (op, algorithm), "{what} took another way");
                probe.restart(0..0);
                if self.succeeded(&conversation, who, op, &what) {
                    assert!(alone && may_be_harmless(op, algorithm), "{what} made no difference");
                    self.assert_consistent(conversation, &client, &what);
                    harmless += 1;
                }
            }
        }
        let most = operations.len() / 4;
        assert!(harmless < most, "{harmless} operations made no difference");
    }

    /// Whether both sides understood each other to the end; if not, that they know.
    fn succeeded(&self, conversation: &Conversation, who: Who, failed: Op, what: &str) -> bool {
        assert_no_plaintext(conversation);
        match conversation.ends() {
            (End::Done, End::Done) => return true,
            (client, server) if client.is_clean_failure() && server.is_clean_failure() => {}
            // The client's goodbye, the last record of all, may still be lost.
            (End::Done, server) if server.is_clean_failure() => {
                let last = if who == Who::Client { Op::Seal } else { Op::OpenRecord };
                assert_eq!(failed, last, "{what}: {server:?}");
            }
            (client, server) => panic!("{what}: client {client:?}, server {server:?}"),
        }
        false
    }

    /// After a success: either the output that the failed operation spoiled is of no use (the two
    /// sides' exporters differ, or the ticket does not resume), or it spoiled nothing.
    fn assert_consistent(
        &self,
        conversation: Conversation,
        client: &Arc<ClientConfig>,
        what: &str,
    ) {
        let exported = [conversation.client, conversation.server].map(|side| {
            let connection = side.connection.unwrap();
            connection.export_keying_material([0; 32], b"EXPORTER-test", None).unwrap()
        });
        assert_ne!(exported[0], [0; 32], "{what}");
        let next = self.talk(client);
        let (client, server) = next.ends();
        let both_failed = client.is_clean_failure() && server.is_clean_failure();
        assert!(both_failed || (client.is_done() && server.is_done()), "{what}");
    }
}

/// Whether a conversation may succeed without this operation: a secret for the exporter or for
/// early data, a ticket, a hash that is never read. Not so key exchanges, signatures, Finished
/// messages, random bytes, and records, which here are not sealed with what tickets are.
fn may_be_harmless(op: Op, algorithm: Algorithm) -> bool {
    match op {
        Op::Update | Op::Fork | Op::Finish | Op::Expand => true,
        Op::Open => matches!(algorithm.kind(), Kind::Aead | Kind::Hkdf),
        Op::Seal | Op::OpenRecord => algorithm == Algorithm::Aes256Gcm,
        _ => false,
    }
}

/// No part of what was said is on the wire as it was said.
fn assert_no_plaintext(conversation: &Conversation) {
    let rising: Vec<u8> = (0..16).collect();
    let falling: Vec<u8> = (0..16).rev().collect();
    for sent in [&conversation.client.sent, &conversation.server.sent] {
        for window in sent.windows(16) {
            assert!(window != rising && window != falling, "plaintext on the wire");
        }
    }
}

#[test]
fn tls13_client() {
    Pair::new(&TLS13).fail_everywhere(Who::Client, HandshakeKind::Full);
}

#[test]
fn tls13_server() {
    Pair::new(&TLS13).fail_everywhere(Who::Server, HandshakeKind::Full);
}

#[test]
fn tls13_client_resuming() {
    Pair::new(&TLS13).fail_everywhere(Who::Client, HandshakeKind::Resumed);
}

#[test]
fn tls13_server_resuming() {
    Pair::new(&TLS13).fail_everywhere(Who::Server, HandshakeKind::Resumed);
}

#[test]
fn tls12_client() {
    Pair::new(&TLS12).fail_everywhere(Who::Client, HandshakeKind::Full);
}

#[test]
fn tls12_server() {
    Pair::new(&TLS12).fail_everywhere(Who::Server, HandshakeKind::Full);
}

#[test]
fn tls12_client_resuming() {
    Pair::new(&TLS12).fail_everywhere(Who::Client, HandshakeKind::Resumed);
}

#[test]
fn tls12_server_resuming() {
    Pair::new(&TLS12).fail_everywhere(Who::Server, HandshakeKind::Resumed);
}

/// The stand-in for an answer is different every time, whatever was asked.
#[test]
fn stand_ins_are_unpredictable() {
    let probe = Probe::new();
    let provider = provider(&probe.engine());
    probe.restart(0..usize::MAX);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for suite in &provider.cipher_suites {
        match suite {
            SupportedCipherSuite::Tls13(suite) => {
                let hash = suite.common.hash_provider;
                let hkdf = suite.hkdf_provider;
                for _ in 0..2 {
                    let expander = hkdf.extract_from_secret(None, b"secret");
                    let block = expander.expand_block(&[b"info"]);
                    let mut slice = [0; 32];
                    expander.expand_slice(&[b"info"], &mut slice).unwrap();
                    let mut context = hash.start();
                    context.update(b"data");
                    let forked = context.fork_finish();
                    seen.push(hash.hash(b"data").as_ref().to_vec());
                    seen.push(forked.as_ref().to_vec());
                    seen.push(context.fork().finish().as_ref().to_vec());
                    seen.push(context.finish().as_ref().to_vec());
                    seen.push(hkdf.hmac_sign(&block, b"data").as_ref().to_vec());
                    seen.push(block.as_ref().to_vec());
                    seen.push(slice.to_vec());
                }
            }
            SupportedCipherSuite::Tls12(suite) => {
                for _ in 0..2 {
                    let mut out = [0; 48];
                    suite.prf_provider.for_secret(&mut out, b"secret", b"label", b"seed");
                    seen.push(out.to_vec());
                }
            }
        }
    }
    // Their first halves too: nothing is left as it was in the buffer.
    let heads = seen.iter().map(|bytes| &bytes[..16]).collect::<std::collections::HashSet<_>>();
    assert_eq!(heads.len(), seen.len());
}

/// Where rustls can be told, it is: with the engine's own error, at whichever operation.
#[test]
fn what_may_fail_does() {
    let probe = Probe::new();
    let provider = provider(&probe.engine());
    let group = provider.kx_groups.iter().find(|group| group.name() == NamedGroup::X25519).unwrap();
    let share = group.start().unwrap().pub_key().to_vec();
    for suite in &provider.cipher_suites {
        for failing in 0..2 {
            let exchange = group.start().unwrap();
            // First the secret is agreed on, then it is handed to HKDF or HMAC.
            probe.restart(failing..failing + 1);
            let result = match suite {
                SupportedCipherSuite::Tls13(suite) => {
                    let hkdf = suite.hkdf_provider;
                    hkdf.extract_from_kx_shared_secret(None, exchange, &share).err()
                }
                SupportedCipherSuite::Tls12(suite) => {
                    let (prf, out) = (suite.prf_provider, &mut [0; 48]);
                    prf.for_key_exchange(out, exchange, &share, b"label", b"seed").err()
                }
            };
            probe.restart(0..0);
            assert!(matches!(result, Some(Error::Other(_))), "{suite:?}, {failing}: {result:?}");
        }
    }
}

/// A piece that the engine did not hash is not left out of the hash: it spoils it.
#[test]
fn a_failed_piece_spoils_the_hash() {
    let probe = Probe::new();
    let provider = provider(&probe.engine());
    for suite in &provider.cipher_suites {
        let SupportedCipherSuite::Tls13(suite) = suite else { continue };
        let hash = suite.common.hash_provider;
        let honest = [&b""[..], b"first", b"second", b"firstsecond"].map(|data| hash.hash(data));
        for failing in [1, 2] {
            probe.restart(failing..failing + 1);
            let mut context = hash.start();
            context.update(b"first");
            context.update(b"second");
            let taken = [context.fork_finish(), context.fork().finish(), context.finish()];
            for (index, digest) in taken.iter().enumerate() {
                let others = honest.iter().chain(&taken[..index]);
                assert!(others.map(AsRef::as_ref).all(|other| other != digest.as_ref()));
            }
        }
    }
}
