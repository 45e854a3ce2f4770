//! Configurations that are made again and again, as a server does when it reads its files anew,
//! leave nothing behind. A process of its own: it measures what it takes of the system.

use keyway_tls::{ClientVerifier, ServerOptions, client_config, provider, server_config};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;

/// Memory of this process that is not a file's, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn a_thousand_configurations_leave_nothing() {
    const ROUNDS: usize = 1_000;
    /// A provider's tables alone have more than two kilobytes.
    const LEFT_BYTES_MAX: usize = 1_000;
    let engine = keyway_drivers::engine();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let round = || {
        let mut options = ServerOptions::new(&engine).unwrap();
        let clients = ClientVerifier::new(&options.provider, roots.clone(), &[], false).unwrap();
        options.clients = Arc::new(clients);
        server_config(&options, vec![made.cert.der().clone()], key.clone_key()).unwrap();
        client_config(&provider(&engine), roots.clone()).unwrap();
    };
    (0..ROUNDS / 4).for_each(|_| round());
    let before = resident();
    (0..ROUNDS).for_each(|_| round());
    let left = resident().saturating_sub(before);
    assert!(left < ROUNDS * LEFT_BYTES_MAX, "{ROUNDS} rounds left {left} bytes");
}
