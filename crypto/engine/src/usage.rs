//! How often the key of a session may be used, and which nonces it has had.
//!
//! A key that seals too much, or that two texts use under one nonce, protects nothing any more. So
//! each session counts what its [`Usage`] limits, makes its own nonces where it was asked to, and
//! takes packet numbers upwards only. All threads count at once, without a lock.

use crate::{Error, NONCE_BYTES, Nonces, Request, Usage};
use keyway_fork::Generation;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limits on one key, and how much of them is used up.
pub(crate) struct KeyUsage {
    limits: Usage,
    /// The start of the session's own nonces, if it makes them.
    iv: Option<[u8; NONCE_BYTES]>,
    /// Whether packets are protected with ascending numbers only.
    is_numbered: bool,
    sealed: AtomicU64,
    forged: AtomicU64,
    /// The lowest packet number that was not protected yet. It is [`UPDATED`] once another session
    /// has taken this one's place.
    next_number: AtomicU64,
    /// The process whose nonces and packet numbers these are. One that is forked from it would go on
    /// with the same ones.
    process: Generation,
}

const INHERITED: Error = Error::invalid_request(
    "the session counts its nonces, and was opened before this process was forked from the one that \
     goes on with them: open another one here",
);

/// Not the number of a packet: those are below [`PACKET_NUMBERS`](crate::limits::PACKET_NUMBERS).
const UPDATED: u64 = u64::MAX;

const REPLACED: Error = Error::invalid_request(
    "the session's keys were updated: what has them now protects, a clone from before does not",
);

impl KeyUsage {
    /// The usage of a new session. The caller has turned [`Nonces::Salted`] into a counter already.
    pub fn new(limits: Usage, nonces: Nonces) -> Self {
        let (iv, from) = match nonces {
            Nonces::Counter { iv, from } => (Some(iv), from),
            _ => (None, 0),
        };
        KeyUsage {
            limits,
            iv,
            is_numbered: nonces == Nonces::Ascending,
            sealed: AtomicU64::new(from),
            forged: AtomicU64::new(0),
            next_number: AtomicU64::new(0),
            process: Generation::current(),
        }
    }

    pub fn limits(&self) -> Usage {
        self.limits
    }

    /// Whether there is anything to count but packet numbers.
    pub fn is_limited(&self) -> bool {
        self.makes_nonces() || self.limits != Usage::UNLIMITED
    }

    pub fn makes_nonces(&self) -> bool {
        self.iv.is_some()
    }

    #[inline]
    pub fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// How many texts were sealed, where they are counted.
    pub fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }

    /// Whether a request with a given nonce may use the key. If so, counts it.
    pub fn admit(&self, request: &Request<'_>) -> Result<(), Error> {
        match request {
            Request::Protect { number, .. } => {
                self.count_seal()?;
                self.take_number(*number)
            }
            _ if !self.is_limited() => Ok(()),
            Request::Seal { .. } if self.makes_nonces() => Err(Error::invalid_request(
                "this session makes its own nonces: seal with `seal_next` or through a queue",
            )),
            Request::Seal { .. } => self.count_seal(),
            Request::Open { .. } | Request::Unprotect { .. } => self.admit_open(),
            _ => Ok(()),
        }
    }

    pub fn count_seal(&self) -> Result<(), Error> {
        if self.limits.seals_max == u64::MAX {
            return Ok(());
        }
        take(&self.sealed, self.limits.seals_max).map(drop)
    }

    pub fn admit_open(&self) -> Result<(), Error> {
        if self.forged.load(Ordering::Relaxed) >= self.limits.forgeries_max {
            return Err(Error::Exhausted("too many texts under it were not authentic"));
        }
        Ok(())
    }

    /// Counts a text that was to be opened and is not authentic.
    pub fn count_forgery(&self) {
        self.forged.fetch_add(1, Ordering::Relaxed);
    }

    /// The next nonce of the session's own, which counts as a seal: the IV with the counter in its
    /// last eight bytes, by exclusive or.
    pub fn next_nonce(&self) -> Result<[u8; NONCE_BYTES], Error> {
        let Some(mut nonce) = self.iv else {
            return Err(Error::invalid_request("this session is told its nonces"));
        };
        if !self.process.is_current() {
            return Err(INHERITED);
        }
        let number = take(&self.sealed, self.limits.seals_max)?;
        for (byte, count) in nonce[NONCE_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= count;
        }
        Ok(nonce)
    }

    /// Takes one packet number, where they must ascend.
    pub fn take_number(&self, number: u64) -> Result<(), Error> {
        self.take_numbers(number, number)
    }

    /// Takes several ascending packet numbers at once, of which these are the first and the last. A
    /// packet number is a nonce: it must be higher than all before, so that none comes twice.
    pub fn take_numbers(&self, first: u64, last: u64) -> Result<(), Error> {
        if !self.is_numbered() {
            return Ok(());
        }
        if !self.process.is_current() {
            return Err(INHERITED);
        }
        let next = |least: u64| (first >= least).then_some(last.saturating_add(1));
        match self.next_number.fetch_update(Ordering::Release, Ordering::Relaxed, next) {
            Ok(_) => Ok(()),
            Err(UPDATED) => Err(REPLACED),
            Err(_) => Err(Error::invalid_request(
                "a packet number must be higher than all that the session protected before",
            )),
        }
    }

    /// Passes the counts on to the session that takes this one's place. From then on this one
    /// protects no packet. Seals are passed on only under the `same_key`.
    pub fn pass_on(&self, successor: &KeyUsage, same_key: bool) -> Result<(), Error> {
        // Numbers that were taken before are seen here; none can be taken afterwards.
        let next = self.next_number.swap(UPDATED, Ordering::AcqRel);
        if next == UPDATED {
            return Err(REPLACED);
        }
        successor.next_number.store(next, Ordering::Release);
        if same_key {
            successor.sealed.store(self.sealed.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        successor.forged.store(self.forged.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }
}

/// Takes the next count, if it is below the limit.
fn take(counter: &AtomicU64, limit: u64) -> Result<u64, Error> {
    let next = |count: u64| (count < limit).then_some(count + 1);
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .map_err(|_| Error::Exhausted("it has sealed as many texts as it may"))
}
