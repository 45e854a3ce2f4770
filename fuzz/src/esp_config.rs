//! Configurations of the ESP gateway: what is taken has everything that a gateway relies on.

use keyway_esp_gateway::config::{Key, parse};
use std::collections::HashSet;
use std::fmt::Write;
use zeroize::Zeroizing;

/// Checks the bytes as a configuration. One that is refused is refused within the text, in one line.
pub fn esp_config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // A file of a key: as long as its name says.
    let mut read = |name: &str| match name.len() {
        bytes @ 1..=64 => Ok(Zeroizing::new(vec![7; bytes])),
        _ => Err("there is none".to_owned()),
    };
    let configuration = match parse(text, &mut read) {
        Ok(configuration) => configuration,
        Err(why) => {
            let lines = text.matches('\n').count() + 1;
            assert!((1..=lines).contains(&why.line), "{why}");
            assert!(!why.why.is_empty() && !why.why.contains('\n'), "{why}");
            return;
        }
    };
    let (mut spis, mut keys) = (HashSet::new(), HashSet::new());
    for tunnel in &configuration.tunnels {
        assert!(spis.insert(tunnel.inbound.spi), "an SPI is there twice");
        assert!(!tunnel.selectors.is_empty() && (32..=8192).contains(&tunnel.window));
        for keyed in [&tunnel.out, &tunnel.inbound] {
            assert!(keyed.spi >= 256);
            let mut key = tunnel.suite.name().to_owned();
            match &keyed.key {
                Key::Secret(bytes) => {
                    let expected = tunnel.suite.key_bytes() + tunnel.suite.mac_key_bytes();
                    assert_eq!(bytes.len(), expected);
                    let _ = write!(key, " {:?} {:?}", &**bytes, keyed.salt);
                }
                Key::Named(name) => {
                    assert!(configuration.cryptod.is_some() && tunnel.suite.is_aead());
                    key.push_str(name);
                }
            }
            assert!(keys.insert(key), "a key is there twice");
        }
        for selector in &tunnel.selectors {
            let (local, remote) = (selector.local.address(), selector.remote.address());
            assert_eq!(local.is_ipv4(), remote.is_ipv4());
        }
    }
}
