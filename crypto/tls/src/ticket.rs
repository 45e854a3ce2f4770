//! Session tickets (RFC 8446 § 4.6.1, RFC 5077): the state of a connection, sealed by the engine
//! and kept by the client, so that resumption costs the server no memory.
//!
//! A ticket is the key's name (16 bytes), a counter (8 bytes), then ciphertext and tag under
//! AES-256-GCM. The key is made when the server starts and after that every
//! [`TICKET_KEY_SECONDS`]; it is never written anywhere. A key's nonces are its own counter, so
//! none repeats.

use crate::limits::TICKET_KEY_SECONDS;
use keyway_engine::{Algorithm, Engine, Error, Key, NONCE_BYTES, Parameters, Session};
use keyway_lock::Unpoisoned;
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

const NAME_BYTES: usize = 16;
const COUNTER_BYTES: usize = 8;
const KEY_PERIOD: Duration = Duration::from_secs(TICKET_KEY_SECONDS as u64);

/// Seals and opens tickets under keys that rotate as they are used.
pub struct Tickets {
    engine: Engine,
    ring: RwLock<Ring>,
}

/// The key that seals, and the one before it, which still opens.
struct Ring {
    current: Arc<TicketKey>,
    previous: Option<Arc<TicketKey>>,
    since: Instant,
}

struct TicketKey {
    name: [u8; NAME_BYTES],
    session: Session,
    sealed: AtomicU64,
}

impl Tickets {
    /// Tickets under a key that is made now.
    ///
    /// # Errors
    /// If the engine gives no key.
    pub fn new(engine: Engine, now: Instant) -> Result<Self, Error> {
        let current = Arc::new(TicketKey::new(&engine)?);
        let ring = RwLock::new(Ring { current, previous: None, since: now });
        Ok(Tickets { engine, ring })
    }

    fn seal(&self, now: Instant, state: &[u8]) -> Option<Vec<u8>> {
        let (current, _) = self.keys(now)?;
        current.seal(state).ok()
    }

    fn open(&self, now: Instant, ticket: &[u8]) -> Option<Vec<u8>> {
        let (current, previous) = self.keys(now)?;
        let (name, rest) = ticket.split_first_chunk()?;
        let key = [Some(current), previous].into_iter().flatten().find(|key| key.name == *name)?;
        key.open(rest)
    }

    /// The keys at this time. `None` if a new one is due and the engine has none to give: the
    /// client then makes a full handshake.
    fn keys(&self, now: Instant) -> Option<(Arc<TicketKey>, Option<Arc<TicketKey>>)> {
        let ring = self.ring.read().unpoisoned();
        if !ring.due(now) {
            return Some(ring.keys());
        }
        drop(ring);
        let fresh = Arc::new(TicketKey::new(&self.engine).ok()?);
        let mut ring = self.ring.write().unpoisoned();
        // Another thread may have been first; then its key stays.
        if ring.due(now) {
            ring.rotate(fresh, now);
        }
        Some(ring.keys())
    }
}

impl Ring {
    fn due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= KEY_PERIOD
    }

    fn rotate(&mut self, fresh: Arc<TicketKey>, now: Instant) {
        let replaced = std::mem::replace(&mut self.current, fresh);
        let age = now.saturating_duration_since(self.since);
        // After a quiet time the replaced key may itself be too old to open anything.
        self.previous = (age < 2 * KEY_PERIOD).then_some(replaced);
        self.since = now;
    }

    fn keys(&self) -> (Arc<TicketKey>, Option<Arc<TicketKey>>) {
        (self.current.clone(), self.previous.clone())
    }
}

impl TicketKey {
    fn new(engine: &Engine) -> Result<Self, Error> {
        let mut name = [0; NAME_BYTES];
        engine.random(&mut name)?;
        let mut key = Zeroizing::new([0; 32]);
        engine.random(&mut *key)?;
        let session = engine.session(Parameters::new(Algorithm::Aes256Gcm, Key::Secret(&*key)))?;
        Ok(TicketKey { name, session, sealed: AtomicU64::new(0) })
    }

    fn seal(&self, state: &[u8]) -> Result<Vec<u8>, Error> {
        let counter = self.sealed.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut sealed = Zeroizing::new(state.to_vec());
        let tag = self.session.seal(&nonce(counter), &self.name, &mut sealed)?;
        Ok([&self.name[..], &counter, &sealed, &tag].concat())
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (counter, sealed) = ticket.split_first_chunk()?;
        let mut state = sealed.to_vec();
        let bytes = self.session.open_in_place(&nonce(*counter), &self.name, &mut state).ok()?;
        state.truncate(bytes);
        Some(state)
    }
}

fn nonce(counter: [u8; COUNTER_BYTES]) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    let (_, place) = nonce.split_at_mut(NONCE_BYTES - COUNTER_BYTES);
    place.copy_from_slice(&counter);
    nonce
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    /// In seconds: as long as the oldest ticket of a key is sure to open.
    fn lifetime(&self) -> u32 {
        TICKET_KEY_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(Instant::now(), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(Instant::now(), cipher)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &[u8] = b"the state of a connection";

    fn tickets() -> (Tickets, Instant) {
        let now = Instant::now();
        (Tickets::new(keyway_drivers::engine(), now).unwrap(), now)
    }

    #[test]
    fn a_ticket_opens_until_its_key_has_been_replaced_twice() {
        let (tickets, start) = tickets();
        let ticket = tickets.seal(start, STATE).unwrap();
        assert_eq!(tickets.open(start, &ticket).as_deref(), Some(STATE));
        let last = start + 2 * KEY_PERIOD - Duration::from_secs(1);
        assert_eq!(tickets.open(start + KEY_PERIOD, &ticket).as_deref(), Some(STATE));
        assert_eq!(tickets.open(last, &ticket).as_deref(), Some(STATE));
        assert_eq!(tickets.open(start + 2 * KEY_PERIOD, &ticket), None);
    }

    #[test]
    fn a_quiet_time_forgets_both_keys() {
        let (tickets, start) = tickets();
        let ticket = tickets.seal(start, STATE).unwrap();
        assert_eq!(tickets.open(start + 2 * KEY_PERIOD, &ticket), None);
        assert!(tickets.ring.read().unwrap().previous.is_none());
    }

    #[test]
    fn tickets_differ_and_hide_their_state() {
        let (tickets, now) = tickets();
        let (first, second) =
            (tickets.seal(now, STATE).unwrap(), tickets.seal(now, STATE).unwrap());
        assert_ne!(first[NAME_BYTES..], second[NAME_BYTES..]);
        assert!(!first.windows(8).any(|window| STATE.windows(8).any(|secret| secret == window)));
    }

    #[test]
    fn spoiled_tickets_do_not_open() {
        let (tickets, now) = tickets();
        let ticket = tickets.seal(now, STATE).unwrap();
        for at in 0..ticket.len() {
            let mut spoiled = ticket.clone();
            spoiled[at] ^= 1;
            assert_eq!(tickets.open(now, &spoiled), None, "byte {at}");
            assert_eq!(tickets.open(now, &ticket[..at]), None, "first {at} bytes");
        }
    }
}
