//! Key logs (draft-ietf-tls-keylogfile): the secrets of connections, by the client's random.

use crate::limits::KEY_LOG_SECRETS_MAX;
use keyway_engine::Engine;
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use zeroize::Zeroizing;

/// The kind of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Label {
    Master,
    ClientHandshake,
    ServerHandshake,
    ClientTraffic,
    ServerTraffic,
}

const LABELS: [(&[u8], Label); 5] = [
    (b"CLIENT_RANDOM", Label::Master),
    (b"CLIENT_HANDSHAKE_TRAFFIC_SECRET", Label::ClientHandshake),
    (b"SERVER_HANDSHAKE_TRAFFIC_SECRET", Label::ServerHandshake),
    (b"CLIENT_TRAFFIC_SECRET_0", Label::ClientTraffic),
    (b"SERVER_TRAFFIC_SECRET_0", Label::ServerTraffic),
];

/// The longest secret, in bytes.
const SECRET_BYTES_MAX: usize = 64;

pub(super) type Secret = Zeroizing<Vec<u8>>;

/// The known secrets of TLS connections, and the engine that uses them.
pub struct Keys {
    engine: Engine,
    known: Mutex<HashMap<([u8; 32], Label), Secret>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// None.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        Keys { engine: engine.clone(), known: Mutex::default() }
    }

    /// Adds those of a key log: how many there were. Comments and what is not known are passed over.
    pub fn add(&self, log: &[u8]) -> usize {
        let mut known = self.known.lock().unpoisoned();
        let mut added = 0;
        for line in log.split(|byte| *byte == b'\n') {
            let Some((random, label, secret)) = read(line) else { continue };
            if known.len() < KEY_LOG_SECRETS_MAX {
                known.insert((random, label), secret);
                added += 1;
            }
        }
        added
    }

    pub(super) fn secret(&self, random: &[u8; 32], label: Label) -> Option<Secret> {
        let known = self.known.lock().unpoisoned();
        known.get(&(*random, label)).cloned()
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }
}

fn read(line: &[u8]) -> Option<([u8; 32], Label, Secret)> {
    let mut words = line.trim_ascii().split(|byte| *byte == b' ');
    let (label, random, secret) = (words.next()?, words.next()?, words.next()?);
    let (_, label) = LABELS.iter().find(|(name, _)| *name == label)?;
    let random: [u8; 32] = unhex(random)?.as_slice().try_into().ok()?;
    let secret = unhex(secret).filter(|secret| (1..=SECRET_BYTES_MAX).contains(&secret.len()))?;
    Some((random, *label, secret))
}

fn unhex(text: &[u8]) -> Option<Secret> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let octet = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    pairs.iter().map(octet).collect::<Option<Vec<u8>>>().map(Zeroizing::new)
}
