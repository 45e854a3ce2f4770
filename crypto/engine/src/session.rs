//! What a consumer holds: a session, or a hash fed in pieces.
//!
//! A session is *virtual*: it owns its parameters and key, and what drivers know of it hangs below
//! as *bindings*, one for each driver it was ever placed on. When drivers come or go (the registry's
//! epoch changes) the session makes a new *table* of the bindings to choose from. Bindings and
//! tables never move and are freed with the session, so that the way of a request through them
//! needs no lock and no count of references.

use crate::algorithm::Texts;
use crate::append::Append;
use crate::chain::Stepwise;
use crate::costs::Company;
use crate::lane::{Client, Lane, Stage, Work};
use crate::parameters::{Nonces, OwnedKey, Parameters, Usage};
use crate::registry::{Lanes, Registry};
use crate::wipe::{self, Depth};
use crate::{
    Algorithm, Demand, DriverSession, DriverStream, Error, Field, Key, Kind, NONCE_BYTES,
    PacketKeys, Request, Step, TAG_BYTES, Wanted, clock, learn, sampling, scheduler,
};
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A key, ready for requests wherever the engine likes best. Cheap to clone; shared by threads
/// freely.
///
/// The handle gives no way back to the key. Dropping the last clone makes the engine and all
/// drivers forget it.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// No other session of this process has it.
    pub id: u64,
    registry: Arc<Registry>,
    direct: Direct,
    /// For sessions that do one thing.
    algorithm: Option<Algorithm>,
    /// Whether every request is counted: limited keys, nonces of the session's own, a client.
    guarded: bool,
    pub ordered: bool,
    algorithms: SmallVec<[Algorithm; 4]>,
    keys: SmallVec<[OwnedKey; 1]>,
    demand: OwnedDemand,
    /// Where the session makes its nonces.
    counter: Option<NonceCounter>,
    /// Whether what it protects is numbered upwards.
    is_numbered: bool,
    usage: Usage,
    sealed: AtomicU64,
    forged: AtomicU64,
    /// The lowest packet number that was not protected yet; [`UPDATED`] once another session has
    /// taken this one's place.
    next_number: AtomicU64,
    pub client: Option<Box<Client>>,
    bindings: Append<Binding>,
    tables: Append<Table>,
    current: AtomicUsize,
    /// Timed requests that had a choice.
    tries: AtomicUsize,
    /// Held while a table is made.
    making: Mutex<()>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// No packet's number: there are fewer ([`PACKET_NUMBERS`](limits::PACKET_NUMBERS)).
const UPDATED: u64 = u64::MAX;

/// What the nonces of a session are made from.
struct NonceCounter {
    iv: [u8; NONCE_BYTES],
    from: u64,
}

impl NonceCounter {
    fn new(registry: &Arc<Registry>, nonces: Nonces) -> Result<Option<Self>, Error> {
        Ok(match nonces {
            Nonces::Given | Nonces::Ascending => None,
            Nonces::Counter { iv, from } => Some(NonceCounter { iv, from }),
            Nonces::Salted => {
                let random =
                    Session::open(registry, Parameters::new(Algorithm::Random, Key::None))?;
                let mut iv = [0; NONCE_BYTES];
                random.run(&mut Request::Random { out: &mut iv })?;
                Some(NonceCounter { iv, from: 0 })
            }
        })
    }
}

/// The shortest way: a session of one plain algorithm that has its first binding to choose and no
/// other, or no better one.
struct Direct {
    /// The epoch at which that is so; 0 for never.
    epoch: AtomicU64,
    /// For requests of at most so many bytes.
    most: AtomicUsize,
    /// The one there is, where the way is open.
    algorithm: Algorithm,
    texts: Texts,
}

/// Where the scheduler puts a request.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub binding: u32,
    /// Nanoseconds that it is expected to occupy the driver.
    pub service: u32,
    /// Whether there was nothing to choose.
    pub sole: bool,
    /// Whether all there was to choose from computes in the caller's own time, so that the choice
    /// depends on nothing but the request.
    pub local: bool,
}

#[derive(Clone)]
enum OwnedDemand {
    Any,
    Software,
    Hardware,
    Named(String),
    /// This lane and no other, for measuring it.
    Lane(Arc<Lane>),
}

/// What one driver knows of a session.
pub(crate) struct Binding {
    pub lane: Arc<Lane>,
    pub work: Arc<Work>,
    /// Opened when it is first used.
    state: OnceLock<Result<Box<dyn DriverSession>, Error>>,
}

/// Bindings to choose from.
type Candidates = SmallVec<[u32; 4]>;

/// The choice there was at some epoch.
struct Table {
    /// The last one at which it was so.
    epoch: AtomicU64,
    /// The only candidate, or the first.
    first: u32,
    /// Whether all candidates compute in the caller's own time.
    local: bool,
    candidates: Candidates,
}

impl fmt::Debug for Session {
    /// What it does and where, and nothing of its key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithms, driver) = (self.algorithms(), self.driver());
        let mut shown = f.debug_struct("Session");
        shown.field("algorithms", &algorithms).field("driver", &driver).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn open(
        registry: &Arc<Registry>,
        parameters: Parameters<'_>,
    ) -> Result<Self, Error> {
        let demand = match parameters.demand {
            Demand::Any => OwnedDemand::Any,
            Demand::Software => OwnedDemand::Software,
            Demand::Hardware => OwnedDemand::Hardware,
            Demand::Named(name) => OwnedDemand::Named(name.to_owned()),
        };
        Self::open_for(registry, parameters, demand)
    }

    /// On this lane and no other.
    pub(crate) fn open_on(
        registry: &Arc<Registry>,
        parameters: Parameters<'_>,
        lane: &Arc<Lane>,
    ) -> Result<Self, Error> {
        Self::open_for(registry, parameters, OwnedDemand::Lane(lane.clone()))
    }

    fn open_for(
        registry: &Arc<Registry>,
        parameters: Parameters<'_>,
        demand: OwnedDemand,
    ) -> Result<Self, Error> {
        parameters.check()?;
        let steps = parameters.steps();
        for step in steps {
            registry.allows(step.algorithm)?;
        }
        let algorithm = match steps {
            [step] => Some(step.algorithm),
            _ => None,
        };
        let counter = NonceCounter::new(registry, parameters.nonces)?;
        let guarded = counter.is_some()
            || parameters.usage != Usage::UNLIMITED
            || parameters.client.is_some();
        let inner = Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            registry: registry.clone(),
            direct: Direct {
                epoch: AtomicU64::new(0),
                most: AtomicUsize::new(0),
                algorithm: algorithm.unwrap_or(Algorithm::Random),
                texts: algorithm.unwrap_or(Algorithm::Random).texts(),
            },
            algorithm,
            guarded,
            ordered: parameters.ordered,
            algorithms: steps.iter().map(|step| step.algorithm).collect(),
            keys: steps.iter().map(|step| OwnedKey::new(step.key)).collect(),
            demand,
            is_numbered: parameters.nonces == Nonces::Ascending,
            usage: parameters.usage,
            sealed: AtomicU64::new(counter.as_ref().map_or(0, |counter| counter.from)),
            counter,
            forged: AtomicU64::new(0),
            next_number: AtomicU64::new(0),
            client: parameters.client.map(|name| Box::new(Client::new(name))),
            bindings: Append::new(),
            tables: Append::new(),
            current: AtomicUsize::new(0),
            tries: AtomicUsize::new(0),
            making: Mutex::new(()),
        });
        inner.first_table()?;
        Ok(Session { inner })
    }

    /// What it was opened for; of a chain, its first step.
    pub fn algorithm(&self) -> Algorithm {
        // A session has at least one step.
        self.inner.algorithms.first().copied().unwrap_or(Algorithm::Random)
    }

    /// All its steps, in the order of protecting.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.inner.algorithms
    }

    /// The driver it would run on were there nothing to choose: the only candidate, or the first
    /// that was registered.
    pub fn driver(&self) -> &str {
        let first = self.inner.table().map_or(0, |table| table.first);
        self.inner.binding(first).map_or("", |binding| &binding.lane.name)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    #[inline]
    pub(crate) fn state(&self, binding: u32) -> Option<&dyn DriverSession> {
        self.inner.binding(binding)?.state()
    }

    /// Runs one request before it returns, and returns the bytes it put out (see
    /// [`DriverSession::run`]): on this stack, unless the scheduler expects another driver to
    /// finish it earlier.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if the request does not fit the algorithm,
    /// [`Error::Authentication`] if a tag or signature does not check, [`Error::Exhausted`] if the
    /// key is used up, else the driver's.
    #[inline(always)]
    pub fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let inner = &*self.inner;
        // Before all else: here a compiler still knows which kind of request it is.
        let bytes = request.bytes_if_fit(inner.direct.algorithm, &inner.direct.texts);
        let number = match request {
            Request::Protect { number, .. } => Some(*number),
            _ => None,
        };
        let timed = sampling::due(inner.registry.sample(), 1) > 0;
        if !timed
            && inner.direct.epoch.load(Ordering::Acquire) == inner.registry.epoch()
            && let Some(bytes) = bytes
            && bytes <= inner.direct.most.load(Ordering::Relaxed)
            && let Some(binding) = inner.binding(0)
            && let Some(state) = binding.state()
        {
            if let Some(number) = number
                && let Err(error) = inner.take_number(number)
            {
                inner.count_refusal(bytes, error);
                return Err(error);
            }
            // By its parts: a copy of the whole result would wait for stores of other widths.
            return match state.run(request) {
                Ok(used) => {
                    binding.work.operations.increment();
                    binding.work.bytes.add(bytes as u64);
                    Ok(used)
                }
                Err(error) => inner.failed(binding, request, bytes, error),
            };
        }
        inner.run(request, timed)
    }

    /// Encrypts `data` in place and returns its tag.
    #[inline]
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], Error> {
        let mut tag = [0; TAG_BYTES];
        self.run(&mut Request::Seal { nonce, aad, data, tag: &mut tag })?;
        Ok(tag)
    }

    /// Encrypts `data` in place under a nonce that the session makes, and returns nonce and tag.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if the session was not opened with [`Nonces::Salted`] or
    /// [`Nonces::Counter`], [`Error::Exhausted`] if there is no nonce left.
    pub fn seal_next(
        &self,
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<([u8; NONCE_BYTES], [u8; TAG_BYTES]), Error> {
        let (bytes, mut tag) = (data.len(), [0; TAG_BYTES]);
        let fits =
            self.inner.check(&Request::Seal { nonce: &[0; NONCE_BYTES], aad, data, tag: &mut tag });
        let nonce = fits.and_then(|()| self.inner.next_nonce());
        let nonce = nonce.inspect_err(|error| self.inner.count_refusal(bytes, *error))?;
        let request = &mut Request::Seal { nonce: &nonce, aad, data, tag: &mut tag };
        self.inner.run_admitted(request, false)?;
        Ok((nonce, tag))
    }

    /// Checks and decrypts ciphertext and tag in place, and returns the plaintext's length.
    #[inline]
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<usize, Error> {
        self.run(&mut Request::Open { nonce, aad, data })
    }

    /// How many texts it has sealed, where it counts them: with [`Nonces::Salted`] and
    /// [`Nonces::Counter`], where those before [`from`](Nonces::Counter::from) count too, and where
    /// [`Usage::seals_max`] is a limit. Else 0.
    pub fn sealed(&self) -> u64 {
        self.inner.sealed.load(Ordering::Relaxed)
    }

    /// Gives a session for QUIC's packets its next keys: one place on after a key update (RFC 9001
    /// § 6), or the same ones and that after them. What it was opened with else, and what it has
    /// counted, stays: a packet number that was used is refused under the new keys too. Limits on
    /// how often a key seals begin anew only with another current key; forgeries are those of all
    /// keys together (§ 6.6).
    ///
    /// Clones that were made before, and tasks with them, keep the keys they had: they take the
    /// protection off packets as before, and, where packets are numbered upwards, protect no more.
    ///
    /// # Errors
    /// Those of [`Engine::session`](crate::Engine::session), and [`Error::InvalidRequest`] if it is
    /// not a session for packets, or is such a clone. It then stays as it was.
    pub fn update(&mut self, keys: PacketKeys<'_>) -> Result<(), Error> {
        self.inner = self.inner.successor(keys)?;
        Ok(())
    }

    /// The public half of the session's key.
    pub fn public_key(&self) -> Result<Vec<u8>, Error> {
        let room = self.algorithm().public_key_bytes().unwrap_or(PUBLIC_KEY_BYTES_MAX);
        let mut out = vec![0; room];
        let used = self.run(&mut Request::PublicKey { out: &mut out })?;
        out.truncate(used);
        Ok(out)
    }

    /// Signs the whole message.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; self.signature_bytes_max()];
        let used = self.run(&mut Request::Sign { message, out: &mut out })?;
        out.truncate(used);
        Ok(out)
    }

    /// Longest signature of the session's key, in bytes; 0 where it cannot sign.
    pub fn signature_bytes_max(&self) -> usize {
        let first = self.inner.table().map_or(0, |table| table.first);
        self.state(first).map_or(0, DriverSession::signature_bytes_max)
    }
}

impl Drop for Session {
    /// With the key goes what requests have left of it on this stack.
    #[inline]
    fn drop(&mut self) {
        if Arc::strong_count(&self.inner) == 1 && self.inner.has_key() {
            wipe::used(Depth::used(&self.inner.algorithms));
        }
    }
}

/// Choices that may fall on drivers that are gone before only those that serve already are asked.
const ATTEMPTS: usize = 4;
/// One in so many timed requests goes to a candidate that may not be the best.
const TRY_EVERY: usize = 8;
/// A candidate that is expected to take so many times as long is not tried.
const HOPELESS: f64 = 16.0;
/// Sizes at which candidates are compared, the last one such that a byte's cost outweighs all others.
const SIZES: [usize; 4] = [0, 1 << 10, 1 << 12, 1 << 20];
/// Measurements that differ by less than this factor are taken for the same.
const MARGIN: f64 = 1.2;
/// The same for sizes at which to ask about each request costs next to nothing.
const LARGE_MARGIN: f64 = 1.05;
/// Nanoseconds that asking costs, more or less; for less gain it is not worth it.
const ASKING: f64 = 40.0;

/// Room for the longest public key of a signature algorithm: ML-DSA-87.
pub(crate) const PUBLIC_KEY_BYTES_MAX: usize = 2_600;

impl Inner {
    #[inline]
    pub fn binding(&self, index: u32) -> Option<&Binding> {
        self.bindings.get(index as usize)
    }

    fn has_key(&self) -> bool {
        !self.keys.iter().all(|key| matches!(key, OwnedKey::None))
    }

    /// The steps with their keys.
    fn steps(&self) -> SmallVec<[Step<'_>; 1]> {
        let pairs = self.algorithms.iter().zip(&self.keys);
        pairs.map(|(algorithm, key)| Step { algorithm: *algorithm, key: key.view() }).collect()
    }

    /// The long way: whatever [`Session::run`] did not settle.
    #[cold]
    fn run(&self, request: &mut Request<'_>, timed: bool) -> Result<usize, Error> {
        let bytes = request.bytes();
        let result = self.check(request).and_then(|()| self.admit(request));
        match result {
            Ok(()) => self.run_admitted(request, timed),
            Err(error) => {
                self.count_refusal(bytes, error);
                Err(error)
            }
        }
    }

    /// What becomes of a request that failed on the shortest way.
    #[cold]
    fn failed(
        &self,
        binding: &Binding,
        request: &mut Request<'_>,
        bytes: usize,
        error: Error,
    ) -> Result<usize, Error> {
        if error == Error::Gone {
            return self.run_admitted(request, false);
        }
        binding.work.count::<()>(bytes, &Err(error));
        Err(error)
    }

    pub fn count_busy_at(&self, binding: u32) {
        if let Some(binding) = self.binding(binding) {
            binding.work.busy.increment();
        }
    }

    /// Counts a refusal by a full queue.
    pub fn count_busy(&self) {
        let first = self.table().map_or(0, |table| table.first);
        if let Some(binding) = self.binding(first) {
            binding.work.busy.increment();
        }
    }

    /// Counts a request that no driver saw.
    pub fn count_refusal(&self, bytes: usize, error: Error) {
        let first = self.table().map_or(0, |table| table.first);
        if let Some(binding) = self.binding(first) {
            binding.work.count::<()>(bytes, &Err(error));
        }
        if let Some(client) = &self.client {
            client.count(bytes, &Err(error));
        }
    }

    /// Runs a request that was checked and counted.
    pub fn run_admitted(&self, request: &mut Request<'_>, timed: bool) -> Result<usize, Error> {
        let bytes = request.bytes();
        loop {
            let choice = self.pick(bytes, Company::Alone, 0.0, timed);
            let choice = choice.inspect_err(|error| self.count_refusal(bytes, *error))?;
            let Choice { binding, service, .. } = choice;
            let Some(binding) = self.binding(binding) else { return Err(Error::Gone) };
            let Some(state) = binding.state() else { continue };
            let shared = !binding.lane.on_caller;
            if shared {
                binding.lane.load(u64::from(service));
            }
            let begun = if timed { clock::now() } else { 0 };
            let result = state.run(request);
            let ended = if timed { clock::now() } else { 0 };
            if shared {
                binding.lane.unload(u64::from(service));
            }
            if result == Err(Error::Gone) {
                self.registry.bury(&binding.lane);
                continue;
            }
            binding.work.count(bytes, &result);
            if timed && result.is_ok() {
                binding.work.costs.observe(Company::Alone, bytes, ended - begun);
                binding.work.record(Stage::Run, ended - begun);
                if let Ok(table) = self.table() {
                    self.set_direct(table);
                }
            }
            let opening = matches!(request, Request::Open { .. } | Request::Unprotect { .. });
            self.settle(bytes, opening, &result);
            return result;
        }
    }

    /// Whether the request is one for this session.
    #[inline]
    pub fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        match self.algorithm {
            Some(algorithm) => request.check(algorithm),
            None => request.check_chain(&self.algorithms),
        }
    }

    /// Whether a request with a given nonce may use the key, and counts it.
    fn admit(&self, request: &Request<'_>) -> Result<(), Error> {
        match request {
            Request::Protect { number, .. } => {
                self.count_seal()?;
                self.take_number(*number)
            }
            _ if self.usage == Usage::UNLIMITED && !self.makes_nonces() => Ok(()),
            Request::Seal { .. } if self.makes_nonces() => Err(Error::invalid_request(
                "this session makes its own nonces: seal with `seal_next` or through a queue",
            )),
            Request::Seal { .. } => self.count_seal(),
            Request::Open { .. } | Request::Unprotect { .. } => self.admit_open(),
            _ => Ok(()),
        }
    }

    /// A session of the same kind with other keys, which protects from now on; this one does not.
    fn successor(&self, keys: PacketKeys<'_>) -> Result<Arc<Inner>, Error> {
        let [OwnedKey::Packet(before)] = &*self.keys else {
            return Err(Error::invalid_request("only a session for packets has its keys updated"));
        };
        let mut parameters = Parameters::new(self.direct.algorithm, Key::Packet(keys));
        parameters.ordered = self.ordered;
        parameters.nonces = if self.is_numbered { Nonces::Ascending } else { Nonces::Given };
        parameters.usage = self.usage;
        parameters.client = self.client.as_ref().map(|client| client.name());
        let demand = self.demand.clone();
        let Session { inner } = &Session::open_for(&self.registry, parameters, demand)?;
        // Whoever took a number before is seen here, and nobody takes one afterwards.
        let next = self.next_number.swap(UPDATED, Ordering::AcqRel);
        if next == UPDATED {
            return Err(REPLACED);
        }
        inner.next_number.store(next, Ordering::Release);
        if before.has_current(keys.current) {
            inner.sealed.store(self.sealed.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        inner.forged.store(self.forged.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(inner.clone())
    }

    pub fn take_number(&self, number: u64) -> Result<(), Error> {
        self.take_numbers(number, number)
    }

    /// A packet number is a nonce: it goes up, so that none comes twice. These are the first and the
    /// last of some that go up.
    pub fn take_numbers(&self, first: u64, last: u64) -> Result<(), Error> {
        if !self.is_numbered() {
            return Ok(());
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

    /// A driver of this session's has died.
    pub fn bury(&self, lane: &Arc<Lane>) {
        self.registry.bury(lane);
    }

    /// Whether nobody may run a task of its who has not admitted it.
    pub fn is_guarded(&self) -> bool {
        self.guarded || self.is_numbered()
    }

    /// Whether what it protects is numbered upwards.
    #[inline]
    pub fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// Whether nothing but the request itself decides what becomes of it.
    pub fn is_plain(&self) -> bool {
        !self.guarded && !self.ordered
    }

    /// What it takes; of a chain, anything.
    pub fn texts(&self) -> Texts {
        self.direct.texts
    }

    pub fn makes_nonces(&self) -> bool {
        self.counter.is_some()
    }

    pub fn count_seal(&self) -> Result<(), Error> {
        if self.usage.seals_max == u64::MAX {
            return Ok(());
        }
        take(&self.sealed, self.usage.seals_max).map(drop)
    }

    pub fn admit_open(&self) -> Result<(), Error> {
        if self.forged.load(Ordering::Relaxed) >= self.usage.forgeries_max {
            return Err(Error::Exhausted("too many texts under it were not authentic"));
        }
        Ok(())
    }

    pub fn next_nonce(&self) -> Result<[u8; NONCE_BYTES], Error> {
        let Some(NonceCounter { iv: mut nonce, .. }) = self.counter else {
            return Err(Error::invalid_request("this session is told its nonces"));
        };
        let number = take(&self.sealed, self.usage.seals_max)?;
        for (byte, count) in nonce[NONCE_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= count;
        }
        Ok(nonce)
    }

    /// After a request that went the long way: counts forgeries and the client's share.
    pub fn settle(&self, bytes: usize, opening: bool, result: &Result<usize, Error>) {
        if opening && *result == Err(Error::Authentication) {
            self.forged.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(client) = &self.client {
            client.count(bytes, result);
        }
    }

    /// The candidate with the earliest predicted finish, and the nanoseconds it will be occupied.
    /// `ahead` is what the caller's own processor has to do first.
    ///
    /// A request that is `timed` goes, now and then, to another candidate that is not hopelessly
    /// slower, so that one that was measured in a bad moment is measured again.
    pub fn pick(
        &self,
        bytes: usize,
        company: Company,
        ahead: f64,
        timed: bool,
    ) -> Result<Choice, Error> {
        let mut opened_only = false;
        for attempt in 0.. {
            let timed = timed && attempt == 0;
            if let Some(choice) = self.try_pick(bytes, company, ahead, timed, opened_only)? {
                return Ok(choice);
            }
            // Where drivers die as fast as they come, those that serve already are good enough.
            opened_only = attempt >= ATTEMPTS && !opened_only;
        }
        Err(Error::Gone)
    }

    /// `None` if the choice fell on somebody who is not there any more.
    fn try_pick(
        &self,
        bytes: usize,
        company: Company,
        ahead: f64,
        timed: bool,
        opened_only: bool,
    ) -> Result<Option<Choice>, Error> {
        let table = self.table()?;
        if let [only] = *table.candidates {
            let binding = self.binding(only).ok_or(Error::Gone)?;
            if binding.state().is_some() {
                let service = binding.work.costs.predict(Company::Together, bytes);
                let (service, local) = (service as u32, binding.lane.on_caller);
                let choice = Choice { binding: only, service, sole: true, local };
                return Ok(Some(choice));
            }
        }
        let choice = table.candidates.iter().filter_map(|index| {
            let binding = self.binding(*index)?;
            binding.lane.is_alive().then_some(())?;
            // One that could not be opened is none.
            match binding.state.get() {
                Some(Err(_)) => return None,
                None if opened_only => return None,
                _ => {}
            }
            let (alone, together) = (
                binding.work.costs.predict(Company::Alone, bytes),
                binding.work.costs.predict(Company::Together, bytes),
            );
            let finish = scheduler::finish(
                scheduler::Place { on_caller: binding.lane.on_caller, wait: binding.lane.wait() },
                alone,
                together,
                company,
                ahead,
            );
            Some((finish, *index, together as u32))
        });
        let best = choice.clone().min_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mut tried = false;
        let best = best.map(|best| match self.turn(timed, table.candidates.len()) {
            Some(turn) => {
                let other = choice.clone().nth(turn).filter(|other| other.0 < best.0 * HOPELESS);
                tried = other.is_some_and(|other| other.1 != best.1);
                other.unwrap_or(best)
            }
            None => best,
        });
        let Some((_, index, service)) = best else {
            // Perhaps somebody came while the last one went.
            if opened_only || table.epoch.load(Ordering::Acquire) != self.registry.epoch() {
                return Ok(None);
            }
            return Err(self.nobody(table));
        };
        match self.open_binding(index) {
            Ok(()) => {
                let local = table.local && !tried;
                Ok(Some(Choice { binding: index, service, sole: false, local }))
            }
            Err(Error::Gone) => {
                if let Some(binding) = self.binding(index) {
                    self.registry.bury(&binding.lane);
                }
                Ok(None)
            }
            // It is none from now on; the others remain.
            Err(_) if table.candidates.len() > 1 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Now and then, a candidate whose turn it is to be measured again.
    fn turn(&self, timed: bool, candidates: usize) -> Option<usize> {
        if !timed {
            return None;
        }
        let count = self.tries.fetch_add(1, Ordering::Relaxed);
        (count % TRY_EVERY == TRY_EVERY - 1).then_some(count / TRY_EVERY % candidates)
    }

    /// Whether a lone request of so many bytes would run on this stack.
    pub fn runs_here(&self, bytes: usize) -> bool {
        let choice = self.pick(bytes, Company::Alone, 0.0, false);
        choice.is_ok_and(|choice| {
            self.binding(choice.binding).is_some_and(|binding| binding.lane.on_caller)
        })
    }

    /// Why there is no candidate.
    fn nobody(&self, table: &Table) -> Error {
        let failed = |index: &u32| match self.binding(*index)?.state.get()? {
            Err(error) => Some(*error),
            Ok(_) => None,
        };
        table.candidates.iter().find_map(failed).unwrap_or(Error::Gone)
    }

    /// Today's table.
    fn table(&self) -> Result<&Table, Error> {
        let current = self.tables.get(self.current.load(Ordering::Acquire));
        match current {
            Some(table) if table.epoch.load(Ordering::Acquire) == self.registry.epoch() => {
                Ok(table)
            }
            _ => self.new_table(),
        }
    }

    #[cold]
    fn new_table(&self) -> Result<&Table, Error> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.registry.epoch();
        if let Some(table) = self.tables.get(self.current.load(Ordering::Acquire))
            && table.epoch.load(Ordering::Acquire) == epoch
        {
            return Ok(table);
        }
        let bound_once = self.keys.iter().any(|key| matches!(key, OwnedKey::Generate));
        let (lanes, _) = self.lanes();
        let mut candidates = Candidates::new();
        for lane in lanes {
            // One that could not be opened is tried anew: the steps of a chain may be there by now.
            let opens = |known: &Binding| !matches!(known.state.get(), Some(Err(_)));
            let is_its = |known: &Binding| Arc::ptr_eq(&known.lane, &lane) && opens(known);
            let known = self.bindings.iter().position(is_its);
            // A generated key is where it was made and nowhere else.
            match known {
                Some(index) => candidates.push(index as u32),
                None if !bound_once => candidates.push(self.bind(lane)?),
                None => {}
            }
        }
        self.set_table(epoch, candidates)
    }

    fn set_table(&self, epoch: u64, candidates: Candidates) -> Result<&Table, Error> {
        if let [_, _, ..] = *candidates {
            for index in &candidates {
                if let Some(binding) = self.binding(*index) {
                    learn::once(&self.registry, binding, &self.algorithms);
                }
            }
        }
        let on_caller = |index: &u32| self.binding(*index).is_some_and(|b| b.lane.on_caller);
        let (first, local) =
            (candidates.first().copied().unwrap_or(0), candidates.iter().all(on_caller));
        let current = self.current.load(Ordering::Acquire);
        let index = match self.tables.get(current) {
            // Who came or went is no concern of this session's.
            Some(table) if table.candidates == candidates => {
                table.epoch.store(epoch, Ordering::Release);
                current
            }
            _ => {
                let table = Table { epoch: AtomicU64::new(epoch), first, local, candidates };
                self.tables.push(table).map_err(|_| WORN)?
            }
        };
        self.current.store(index, Ordering::Release);
        let table = self.tables.get(index).ok_or(WORN)?;
        self.set_direct(table);
        Ok(table)
    }

    /// Opens the shortest way, or closes it: by what was measured until now, so that one bad
    /// measurement neither closes it for good nor keeps it open.
    fn set_direct(&self, table: &Table) {
        let plain = !self.guarded && self.algorithm.is_some();
        let most = if plain { self.first_is_best(&table.candidates) } else { None };
        let epoch = most.map_or(0, |_| table.epoch.load(Ordering::Acquire));
        self.direct.most.store(most.unwrap_or(0), Ordering::Relaxed);
        self.direct.epoch.store(epoch, Ordering::Release);
    }

    /// Up to which size no other candidate is expected to finish a lone request earlier than the
    /// first binding, if that is one.
    fn first_is_best(&self, candidates: &[u32]) -> Option<usize> {
        let cost = |index: u32, bytes| match self.binding(index) {
            Some(binding) => binding.work.costs.predict(Company::Alone, bytes),
            None => f64::MAX,
        };
        let [0, others @ ..] = candidates else { return None };
        if others.is_empty() {
            return Some(usize::MAX);
        }
        let beaten = |bytes: usize| {
            let margin = if bytes == 0 { MARGIN } else { LARGE_MARGIN };
            others.iter().any(|other| cost(*other, bytes) * margin + ASKING < cost(0, bytes))
        };
        self.binding(0).filter(|first| first.lane.on_caller)?;
        let best = SIZES.into_iter().take_while(|bytes| !beaten(*bytes)).last()?;
        Some(if best == SIZES[SIZES.len() - 1] { usize::MAX } else { best })
    }

    fn bind(&self, lane: Arc<Lane>) -> Result<u32, Error> {
        let work = lane.work(&self.algorithms);
        let binding = Binding { lane, work, state: OnceLock::new() };
        self.bindings.push(binding).map(|index| index as u32).map_err(|_| WORN)
    }

    /// The lanes to choose from, and whether the demand can be met by anybody at all.
    fn lanes(&self) -> (Lanes, bool) {
        if let OwnedDemand::Lane(lane) = &self.demand {
            let open = lane.driver.is_none() || lane.is_alive();
            return (open.then(|| lane.clone()).into_iter().collect(), true);
        }
        let (mut lanes, known) = self.registry.fitting(&self.algorithms, self.demand.view());
        if self.algorithm.is_none() && (lanes.is_empty() || self.demand.view() == Demand::Any) {
            lanes.push(self.registry.chain.clone());
        }
        (lanes, known)
    }

    /// Offers the key to the lanes in order, until one does not decline it as unsupported.
    fn first_table(&self) -> Result<(), Error> {
        let epoch = self.registry.epoch();
        let (lanes, known) = self.lanes();
        let generated = self.keys.iter().any(|key| matches!(key, OwnedKey::Generate));
        let mut candidates = Candidates::new();
        let mut refused = None;
        for lane in lanes {
            if candidates.is_empty() {
                let index = self.bind(lane)?;
                match self.open_binding(index) {
                    Ok(()) => candidates.push(index),
                    Err(Error::Unsupported(algorithm)) => {
                        refused = Some(Error::Unsupported(algorithm));
                    }
                    Err(Error::Gone) => {}
                    Err(error) => return Err(error),
                }
            } else if !generated {
                candidates.push(self.bind(lane)?);
            }
        }
        if candidates.is_empty() {
            return Err(match (known, refused) {
                (false, _) => Error::NoSuchDriver,
                (_, Some(error)) => error,
                _ => Error::Unsupported(
                    self.algorithms.first().copied().unwrap_or(Algorithm::Random),
                ),
            });
        }
        self.set_table(epoch, candidates).map(drop)
    }

    fn open_binding(&self, index: u32) -> Result<(), Error> {
        let binding = self.binding(index).ok_or(WORN)?;
        let state = binding.state.get_or_init(|| {
            let steps = self.steps();
            let open = || match &binding.lane.driver {
                Some(driver) => driver.open(&steps),
                None => Stepwise::open(&self.registry, &steps, self.demand.view())
                    .map(|steps| Box::new(steps) as Box<dyn DriverSession>),
            };
            let state = match self.has_key() {
                true => wipe::after(Depth::opened(&self.algorithms), open),
                false => open(),
            };
            if let [Step { key: Key::Generate | Key::Extract { .. }, .. }] = steps[..] {
                // Opening such a session is cryptographic work, so it counts as an operation.
                binding.work.count(0, &state);
            }
            state
        });
        state.as_ref().map(drop).map_err(|error| *error)
    }
}

impl OwnedDemand {
    fn view(&self) -> Demand<'_> {
        match self {
            OwnedDemand::Any | OwnedDemand::Lane(_) => Demand::Any,
            OwnedDemand::Software => Demand::Software,
            OwnedDemand::Hardware => Demand::Hardware,
            OwnedDemand::Named(name) => Demand::Named(name),
        }
    }
}

const REPLACED: Error = Error::invalid_request(
    "the session's keys were updated: what has them now protects, a clone from before does not",
);

const WORN: Error = Error::Exhausted("drivers came and went more often than a session can follow");

impl Binding {
    #[inline]
    pub fn state(&self) -> Option<&dyn DriverSession> {
        match self.state.get()? {
            Ok(state) => Some(&**state),
            Err(_) => None,
        }
    }
}

/// Takes the next number, if it is below the limit.
fn take(counter: &AtomicU64, limit: u64) -> Result<u64, Error> {
    let next = |count: u64| (count < limit).then_some(count + 1);
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .map_err(|_| Error::Exhausted("it has sealed as many texts as it may"))
}

/// A hash fed in pieces, for those who do not have the message at once (a TLS transcript).
pub struct Stream {
    algorithm: Algorithm,
    work: Arc<Work>,
    state: Box<dyn DriverStream>,
}

impl Stream {
    pub(crate) fn open(registry: &Registry, algorithm: Algorithm) -> Result<Self, Error> {
        if algorithm.kind() != Kind::Hash {
            return Err(Error::Unsupported(algorithm));
        }
        let (lanes, _) = registry.fitting(&[algorithm], Demand::Any);
        for lane in lanes {
            let Some(driver) = &lane.driver else { continue };
            match driver.stream(algorithm) {
                Err(Error::Unsupported(_) | Error::Gone) => {}
                state => {
                    return Ok(Stream { algorithm, work: lane.work(&[algorithm]), state: state? });
                }
            }
        }
        Err(Error::Unsupported(algorithm))
    }

    /// Takes the next piece; one operation in the meters.
    pub fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        let result = self.state.update(data);
        self.work.count(data.len(), &result);
        result
    }

    /// A second stream that has seen the same.
    pub fn fork(&self) -> Result<Stream, Error> {
        let state = self.state.fork();
        if state.is_err() {
            self.work.count(0, &state);
        }
        Ok(Stream { algorithm: self.algorithm, work: self.work.clone(), state: state? })
    }

    /// The digest, into exactly [`Algorithm::output_bytes`]; one operation in the meters.
    pub fn finish(self, out: &mut [u8]) -> Result<(), Error> {
        if self.algorithm.output_bytes() != Some(out.len()) {
            let wanted = Wanted::Exactly(self.algorithm.output_bytes().unwrap_or(0));
            return Err(Error::length(Field::Out, out.len(), wanted));
        }
        let result = self.state.finish(out);
        self.work.count(0, &result);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::Linear;
    use crate::{Driver, Engine};

    struct Nothing(&'static str);

    impl Driver for Nothing {
        fn name(&self) -> &str {
            self.0
        }

        fn supports(&self, _: &[Algorithm]) -> bool {
            true
        }

        fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
            Ok(Box::new(Nothing("")))
        }
    }

    impl DriverSession for Nothing {
        fn run(&self, _: &mut Request<'_>) -> Result<usize, Error> {
            Ok(0)
        }
    }

    /// A driver that was measured in a bad moment loses the shortest way until it is measured again.
    #[test]
    fn the_shortest_way_is_closed_and_opened_by_what_is_measured() {
        let builder = Engine::builder().driver(Arc::new(Nothing("test-direct")));
        let engine = builder.driver(Arc::new(Nothing("test-detour"))).sample(1).build();
        let costs = |driver, fixed| {
            let cost = Linear { fixed, per_byte: 0.0 };
            engine.set_cost(driver, &[Algorithm::Aes128Gcm], cost, cost).unwrap();
        };
        costs("test-direct", 100.0);
        costs("test-detour", 200.0);
        let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 16]));
        let session = engine.session(parameters).unwrap();
        let is_open = || {
            let inner = session.inner();
            inner.direct.epoch.load(Ordering::Relaxed) == inner.registry.epoch()
        };
        assert!(is_open());
        for (fixed, open) in [(10_000.0, false), (100.0, true), (210.0, true), (400.0, false)] {
            costs("test-direct", fixed);
            session.seal(&[0; NONCE_BYTES], &[], &mut [0; 100]).unwrap();
            assert_eq!(is_open(), open, "{fixed} ns");
        }
    }
}
