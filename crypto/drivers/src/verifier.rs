//! Passwords that were right lately: a memory before the slow hash.
//!
//! A slow hash makes each guess cost, and so does it each right password. The verifier remembers a
//! right one as a MAC under a key that is made when it starts and is nowhere else, and answers the
//! same one again in a microsecond. Whatever it does not remember goes to the driver behind it, at
//! the full price. `docs/design/005-password-verifier.md` has the argument.

use crate::limits::{REMEMBERED_MAX, WRONG_ENTRIES_MAX, WRONG_FORGET, WRONG_MAX};
use keyway_engine::{
    Algorithm, Cost, Driver, DriverSession, DriverStream, Effort, Error, Key, Kind, Request, Step,
};
use keyway_lock::Unpoisoned;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use subtle::ConstantTimeEq;
use zeroize::{Zeroizing, zeroize_stack};

/// Length of the key and of its MACs, in bytes: HMAC-SHA-256.
const MAC_BYTES: usize = 32;
/// As much of a MAC as names a value or an entry in a table, in bytes.
const NAME_BYTES: usize = 16;
/// How deep the stack is overwritten on which the key was made or dropped, in bytes.
const STACK_BYTES: usize = 16 << 10;

/// How much a verifier remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remember {
    /// Right passwords, [`REMEMBERED_MAX`] at most; those that were asked for longest ago give way.
    /// 0 to remember nothing.
    pub most: usize,
    /// How long after it was derived a password is known.
    pub age: Duration,
}

impl Remember {
    /// Nothing.
    pub const NOTHING: Remember = Remember { most: 0, age: Duration::ZERO };
}

impl Default for Remember {
    /// 100,000 passwords, about 15 MB of memory when all are in use, for an hour.
    fn default() -> Self {
        Remember { most: 100_000, age: Duration::from_secs(3_600) }
    }
}

/// Tells the time since some start. It does not go back.
pub type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// A driver that stands before another one and remembers which passwords that one found right
/// ([`Request::VerifyPassword`]). For the rest it is that one, under its name too.
///
/// A password is remembered for its entry, the stored value and the session's pepper; when one of
/// them is another, it is not known. [`Effort::Recall`] says what is remembered, [`Effort::Full`]
/// looks there first. A wrong password is never answered from memory. For an entry that has had
/// [`WRONG_MAX`] of them derived, and one more each [`WRONG_FORGET`], nothing is derived: that is
/// [`Error::Busy`]. A remembered password is answered all the same.
///
/// The key and what is remembered are wiped when the last of the driver and its sessions is
/// dropped. It may be used by all threads at once.
pub struct Verifier {
    inner: Arc<dyn Driver>,
    memory: Arc<Memory>,
}

impl Verifier {
    /// Before `inner`, which computes on the caller's stack and makes the key.
    ///
    /// # Errors
    /// Those of `inner`, asked for random bytes and for a session of HMAC-SHA-256.
    pub fn new(
        inner: Arc<dyn Driver>,
        remember: Remember,
        clock: Clock,
    ) -> Result<Arc<Verifier>, Error> {
        let mac = make_key(&*inner);
        zeroize_stack::<STACK_BYTES>();
        let memory = Memory {
            mac: mac?,
            known: Mutex::new(Known::new(remember)),
            wrong: Mutex::default(),
            clock,
        };
        Ok(Arc::new(Verifier { inner, memory: Arc::new(memory) }))
    }

    /// Remembers so much from now on. The surplus is forgotten at once.
    pub fn remember(&self, remember: Remember) {
        let now = (self.memory.clock)();
        self.memory.known().set_limits(remember, now);
    }

    /// How many passwords it remembers.
    pub fn remembered(&self) -> usize {
        self.memory.known().values.len()
    }
}

/// A session of HMAC-SHA-256 under a key that is nowhere else.
fn make_key(inner: &dyn Driver) -> Result<Box<dyn DriverSession>, Error> {
    let mut key = Zeroizing::new([0; MAC_BYTES]);
    let random = inner.open(&[Step { algorithm: Algorithm::Random, key: Key::None }])?;
    random.run(&mut Request::Random { out: &mut *key })?;
    inner.open(&[Step { algorithm: Algorithm::HmacSha256, key: Key::Secret(&*key) }])
}

impl fmt::Debug for Verifier {
    /// The driver it stands before, and how much it remembers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Verifier");
        shown.field("inner", &self.inner.name()).field("remembered", &self.remembered());
        shown.finish_non_exhaustive()
    }
}

impl Driver for Verifier {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.inner.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let session = self.inner.open(steps)?;
        let [Step { algorithm, key }] = *steps else { return Ok(session) };
        if algorithm.kind() != Kind::Password {
            return Ok(session);
        }
        let memory = self.memory.clone();
        let pepper = match key {
            Key::Secret(pepper) => memory.mac(Purpose::Pepper, &[pepper])?,
            Key::Named(name) => memory.mac(Purpose::PepperName, &[name.as_bytes()])?,
            _ => Zeroizing::new([0; MAC_BYTES]),
        };
        Ok(Box::new(Session { inner: session, memory, algorithm, pepper }))
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.inner.stream(algorithm)
    }
}

struct Session {
    inner: Box<dyn DriverSession>,
    memory: Arc<Memory>,
    algorithm: Algorithm,
    /// Tells sessions of different peppers apart.
    pepper: Zeroizing<[u8; MAC_BYTES]>,
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let Request::VerifyPassword { effort, cost, entry, password, salt, expected } = request
        else {
            return self.inner.run(request);
        };
        let (memory, cost, name) = (&*self.memory, cost_bytes(*cost), self.algorithm.name());
        let value = [*entry, &*self.pepper, name.as_bytes(), &cost, salt, expected];
        let with_password = [&value[..], &[*password]].concat();
        // Also for an entry without a name, so that it takes the same time.
        let value_name = memory.name(Purpose::Value, &value)?;
        let proof = memory.mac(Purpose::Proof, &with_password)?;
        if *effort == Effort::Recall {
            let knows = !entry.is_empty() && memory.knows(&value_name, &proof);
            return if knows { Ok(1) } else { self.inner.run(request) };
        }
        let entry_name = memory.name(Purpose::Entry, &[*entry])?;
        if entry.is_empty() {
            return self.inner.run(request);
        }
        if memory.knows(&value_name, &proof) {
            return Ok(1);
        }
        memory.begin(entry_name)?;
        let result = self.inner.run(request);
        match result {
            Ok(_) => memory.learn(value_name, proof),
            Err(Error::Authentication) => return result,
            Err(_) => {}
        }
        memory.was_not_wrong(&entry_name);
        result
    }
}

/// Its parts, each behind its place.
fn cost_bytes(cost: Cost) -> [u8; 13] {
    let (kind, parts) = match cost {
        Cost::Pbkdf2 { iterations } => (0, [iterations, 0, 0]),
        Cost::Argon2 { memory_kib, passes, lanes } => (1, [memory_kib, passes, lanes]),
        Cost::Scrypt { log_n, r, p } => (2, [log_n.into(), r, p]),
        Cost::Bcrypt { log_rounds } => (3, [log_rounds, 0, 0]),
        Cost::Md5Crypt => (4, [0; 3]),
        Cost::ShaCrypt { rounds } => (5, [rounds, 0, 0]),
    };
    let mut bytes = [kind; 13];
    for (place, part) in bytes[1..].chunks_exact_mut(4).zip(parts) {
        place.copy_from_slice(&part.to_be_bytes());
    }
    bytes
}

/// The use of a MAC, as its first byte.
#[derive(Clone, Copy)]
enum Purpose {
    /// Names an entry.
    Entry,
    /// Names an entry's stored value.
    Value,
    /// Says that a password is right for it.
    Proof,
    Pepper,
    PepperName,
}

type Mac = Zeroizing<[u8; MAC_BYTES]>;
type Name = [u8; NAME_BYTES];

struct Memory {
    /// Under the key that never leaves it.
    mac: Box<dyn DriverSession>,
    known: Mutex<Known>,
    wrong: Mutex<HashMap<Name, Wrong>>,
    clock: Clock,
}

impl Memory {
    /// A MAC of these parts, each behind its length.
    fn mac(&self, purpose: Purpose, parts: &[&[u8]]) -> Result<Mac, Error> {
        let lengths: Vec<_> = parts.iter().map(|part| (part.len() as u64).to_be_bytes()).collect();
        let purpose = [purpose as u8];
        let mut data = vec![&purpose[..]];
        for (length, part) in lengths.iter().zip(parts) {
            data.extend([&length[..], part]);
        }
        let mut out = Mac::default();
        self.mac.run(&mut Request::Mac { data: &data, out: &mut *out })?;
        Ok(out)
    }

    fn name(&self, purpose: Purpose, parts: &[&[u8]]) -> Result<Name, Error> {
        let mac = self.mac(purpose, parts)?;
        Ok(mac.first_chunk().copied().unwrap_or_default())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unpoisoned()
    }

    fn knows(&self, value: &Name, proof: &Mac) -> bool {
        let now = (self.clock)();
        self.known().knows(value, proof, now)
    }

    fn learn(&self, value: Name, proof: Mac) {
        let now = (self.clock)();
        self.known().learn(value, proof, now);
    }

    fn wrong(&self) -> MutexGuard<'_, HashMap<Name, Wrong>> {
        self.wrong.lock().unpoisoned()
    }

    /// Begins a derivation for an entry. It counts as wrong until it is known that it is not.
    fn begin(&self, entry: Name) -> Result<(), Error> {
        let (now, mut all) = ((self.clock)(), self.wrong());
        if all.len() >= WRONG_ENTRIES_MAX && !all.contains_key(&entry) {
            all.retain(|_, wrong| wrong.left(now) > 0);
            let fewest = all.iter().min_by_key(|(_, wrong)| wrong.left(now));
            if let Some(fewest) = fewest.map(|(entry, _)| *entry)
                && all.len() >= WRONG_ENTRIES_MAX
            {
                all.remove(&fewest);
            }
        }
        let wrong = all.entry(entry).or_insert(Wrong { count: 0, since: now });
        wrong.forget(now);
        if wrong.count >= WRONG_MAX {
            return Err(Error::Busy);
        }
        wrong.count += 1;
        Ok(())
    }

    /// Takes back what [`Memory::begin`] has counted.
    fn was_not_wrong(&self, entry: &Name) {
        let mut all = self.wrong();
        let Some(wrong) = all.get_mut(entry) else { return };
        wrong.count = wrong.count.saturating_sub(1);
        if wrong.count == 0 {
            all.remove(entry);
        }
    }
}

impl Drop for Memory {
    /// The memory says nothing without the key, and that goes first.
    fn drop(&mut self) {
        self.mac = Box::new(Forgotten);
        self.known().values.clear();
        zeroize_stack::<STACK_BYTES>();
    }
}

/// The stand-in for the key once that is forgotten.
struct Forgotten;

impl DriverSession for Forgotten {
    fn run(&self, _: &mut Request<'_>) -> Result<usize, Error> {
        Err(Error::Closed)
    }
}

/// Right passwords.
struct Known {
    limits: Remember,
    values: HashMap<Name, Right>,
    /// The values in the order in which they were last asked for.
    order: BTreeMap<u64, Name>,
    uses: u64,
    /// When it was last looked for what is too old.
    looked: Duration,
}

/// A right password of one stored value.
struct Right {
    proof: Mac,
    /// When it was derived.
    since: Duration,
    /// Its place in the order.
    used: u64,
}

impl Known {
    fn new(limits: Remember) -> Self {
        let (values, order) = (HashMap::new(), BTreeMap::new());
        let mut known = Known { limits, values, order, uses: 0, looked: Duration::ZERO };
        known.set_limits(limits, Duration::ZERO);
        known
    }

    fn set_limits(&mut self, limits: Remember, now: Duration) {
        self.limits = Remember { most: limits.most.min(REMEMBERED_MAX), ..limits };
        self.forget_old(now);
        while self.values.len() > self.limits.most {
            self.forget_one();
        }
    }

    fn knows(&mut self, value: &Name, proof: &Mac, now: Duration) -> bool {
        // Entries that are too old do not stay for much longer.
        if now.saturating_sub(self.looked) > self.limits.age / 8 {
            self.forget_old(now);
        }
        let Some(right) = self.values.get_mut(value) else { return false };
        let young = now.saturating_sub(right.since) < self.limits.age;
        if !young || !bool::from(right.proof.ct_eq(&**proof)) {
            return false;
        }
        self.order.remove(&right.used);
        self.uses += 1;
        right.used = self.uses;
        self.order.insert(self.uses, *value);
        true
    }

    fn learn(&mut self, value: Name, proof: Mac, now: Duration) {
        if self.limits.most == 0 || self.limits.age.is_zero() {
            return;
        }
        self.uses += 1;
        let right = Right { proof, since: now, used: self.uses };
        if let Some(before) = self.values.insert(value, right) {
            self.order.remove(&before.used);
        }
        self.order.insert(self.uses, value);
        if self.values.len() > self.limits.most {
            self.forget_one();
        }
    }

    /// The one that was asked for longest ago.
    fn forget_one(&mut self) {
        if let Some((_, value)) = self.order.pop_first() {
            self.values.remove(&value);
        }
    }

    fn forget_old(&mut self, now: Duration) {
        let (values, age) = (&mut self.values, self.limits.age);
        self.looked = now;
        values.retain(|_, right| now.saturating_sub(right.since) < age);
        self.order.retain(|_, value| values.contains_key(value));
    }
}

/// Derivations of one entry that were wrong, or are under way, and are not forgotten.
struct Wrong {
    count: u32,
    /// Since when the next one is being forgotten.
    since: Duration,
}

impl Wrong {
    fn left(&self, now: Duration) -> u32 {
        self.count.saturating_sub(self.forgotten(now))
    }

    fn forgotten(&self, now: Duration) -> u32 {
        let passed = now.saturating_sub(self.since).as_nanos() / WRONG_FORGET.as_nanos();
        u32::try_from(passed).unwrap_or(u32::MAX)
    }

    fn forget(&mut self, now: Duration) {
        let forgotten = self.forgotten(now);
        self.count = self.count.saturating_sub(forgotten);
        self.since = match self.count {
            0 => now,
            _ => self.since + WRONG_FORGET * forgotten,
        };
    }
}
