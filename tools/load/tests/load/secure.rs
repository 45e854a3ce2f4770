//! TLS: from the start or by StartTLS, full or resumed, trusted or not.

use crate::stub::{FINE, Stub, certificate};
use crate::{SEARCH, outcome, scenario};
use std::fs;

fn run(
    tls_first: bool,
    trust: &str,
    kind: &str,
) -> Result<keyway_load::Outcome, keyway_load::Error> {
    let folder = tempfile::tempdir().unwrap();
    let (pem, config) = certificate();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, pem).unwrap();
    let stub = Stub::with_tls(|_| FINE, Some(config), tls_first);
    let settings = format!("threads = 1\nconnections = {{ count = 1, kind = {kind} }}");
    let text = scenario(&stub.url, &settings, "for = \"200ms\"\nrate = 50", SEARCH);
    let trust = trust.replace("CA", &format!("{:?}", ca.display().to_string()));
    outcome(&text.replace("[target]", &format!("[target]\n{trust}")))
}

#[test]
fn handshakes_are_counted_by_kind() {
    for (tls_first, trust) in
        [(true, "ca = CA"), (false, "ca = CA\nstart_tls = true"), (true, "insecure = true")]
    {
        let outcome = run(tls_first, trust, "\"kept\"").unwrap();
        assert_eq!((outcome.recorded.done(), outcome.recorded.errors()), (10, 0), "{trust}");
        assert_eq!((outcome.connections.tls_full, outcome.connections.tls_resumed), (1, 0));
    }
    let outcome = run(true, "ca = CA", "\"per-operation\"").unwrap();
    assert_eq!((outcome.connections.tls_full, outcome.connections.tls_resumed), (11, 0));
    let outcome = run(true, "ca = CA\nresume = true\nslow_tls = 0", "\"per-operation\"").unwrap();
    assert_eq!(outcome.connections.tls_full + outcome.connections.tls_resumed, 11);
    assert!(outcome.connections.tls_resumed > 0);
    assert_eq!(outcome.connections.tls_slow, 11);
}

#[test]
fn an_untrusted_server_is_not_used() {
    let why = run(true, "", "\"kept\"").unwrap_err().to_string();
    assert!(why.contains("TLS failed") && why.contains("--ca FILE"), "{why}");
    // One that has signed itself is believed if it is in the file; not for another host, and not after its end.
    // Not TLS at all.
    let stub = Stub::new(|_| FINE);
    let url = stub.url.replace("ldap://", "ldaps://");
    let text = scenario(&url, "timeout = \"200ms\"", "for = \"100ms\"", SEARCH);
    let why =
        outcome(&text.replace("[target]", "[target]\ninsecure = true")).unwrap_err().to_string();
    assert!(why.contains("TLS"), "{why}");
}
