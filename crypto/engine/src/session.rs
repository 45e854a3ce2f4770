//! A session, as a consumer holds it.
//!
//! A session keeps its keys, and three parts do the rest. [`KeyUsage`] says whether the key may be
//! used again. [`Placement`] says on which driver a request runs. The request itself
//! ([`Request::check`]) says whether it fits the algorithm. Here they are put together: see
//! [`Session::run`].

use crate::busy;
use crate::costs::Mode;
use crate::metrics::{Client, Stage};
use crate::parameters::{Nonces, OwnedKey, Parameters};
use crate::placement::{Binding, Choice, OwnedDemand, Placement};
use crate::registered::RegisteredDriver;
use crate::registry::Registry;
use crate::usage::KeyUsage;
use crate::wipe::{self, Depth};
use crate::{
    Algorithm, DriverSession, Error, Key, NONCE_BYTES, Operation, PacketKeys, Request,
    SignatureParameters, TAG_BYTES, clock, limits, sampling,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A key, ready for requests on whichever driver suits them best. Cheap to clone. All threads may
/// use it at once.
///
/// The handle gives no way back to the key. When the last clone is dropped, the engine and all
/// drivers forget the key.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// No other session of this process has it.
    pub id: u64,
    pub placement: Placement,
    pub usage: KeyUsage,
    /// For sessions that do one thing.
    algorithm: Option<Algorithm>,
    /// Whether every request is counted: the key is limited, the session makes the nonces, or it
    /// has a client.
    counted: bool,
    pub ordered: bool,
    pub client: Option<Box<Client>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl fmt::Debug for Session {
    /// Its work and its place, and nothing of its key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithms, driver) = (self.algorithms(), self.driver());
        let mut shown = f.debug_struct("Session");
        shown.field("algorithms", &algorithms).field("driver", &driver).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn open(
        registry: &Arc<Registry>,
        parameters: Parameters<'_>,
    ) -> Result<Self, Error> {
        let demand = OwnedDemand::new(parameters.demand);
        Self::open_for(registry, parameters, demand)
    }

    /// On exactly this driver.
    pub(crate) fn open_on(
        registry: &Arc<Registry>,
        parameters: Parameters<'_>,
        driver: &Arc<RegisteredDriver>,
    ) -> Result<Self, Error> {
        Self::open_for(registry, parameters, OwnedDemand::Exactly(driver.clone()))
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
        let usage = KeyUsage::new(parameters.usage, salted(registry, parameters.nonces)?);
        let counted = usage.is_limited() || parameters.client.is_some();
        let inner = Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            placement: Placement::new(registry, steps, demand, counted)?,
            usage,
            algorithm,
            counted,
            ordered: parameters.ordered,
            client: parameters.client.map(|name| Box::new(Client::new(name))),
        });
        Ok(Session { inner })
    }

    /// The algorithm it was opened for; for a chain, that of its first step.
    pub fn algorithm(&self) -> Algorithm {
        // A session has at least one step.
        self.algorithms().first().copied().unwrap_or(Algorithm::Random)
    }

    /// All its steps, in the order of protecting.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.inner.placement.algorithms
    }

    /// The driver it would run on if there were nothing to choose: the only candidate, or the one
    /// that was registered first.
    pub fn driver(&self) -> &str {
        self.inner.placement.first().map_or("", |binding| &binding.driver.name)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    #[inline]
    pub(crate) fn state(&self, binding: u32) -> Option<&dyn DriverSession> {
        self.inner.placement.binding(binding)?.state()
    }

    /// Runs one request before it returns, and returns the bytes it put out (see
    /// [`DriverSession::run`]). It runs on this stack, unless the scheduler expects another driver
    /// to finish it earlier. [How a request runs](crate#how-a-request-runs) tells its way.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if the request does not fit the algorithm,
    /// [`Error::Authentication`] if a tag or signature does not check, [`Error::Exhausted`] if the
    /// key is used up, else the driver's.
    #[inline(always)]
    pub fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let inner = &*self.inner;
        let fast_path = &inner.placement.fast_path;
        // Before all else: here a compiler still knows which kind of request it is.
        let bytes = request.bytes_if_fit(fast_path.algorithm, &fast_path.limits);
        let number = match request {
            Request::Protect { number, .. } => Some(*number),
            _ => None,
        };
        let timed = sampling::due(inner.placement.registry.sample(), 1) > 0;
        if !timed
            && let Some(bytes) = bytes
            && let Some((binding, state)) = inner.placement.fast_binding(bytes)
        {
            if let Some(number) = number
                && let Err(error) = inner.usage.take_number(number)
            {
                inner.count_refusal(bytes, error);
                return Err(error);
            }
            // By its parts: a copy of the whole result would wait for stores of other widths.
            return match state.run(request) {
                Ok(used) => {
                    binding.work.operations.increment();
                    binding.work.bytes.add(bytes as u64);
                    if binding.beside && busy::take() {
                        binding.work.busy.increment();
                    }
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

    /// Encrypts `data` in place under a nonce that the session makes, or the holder of its
    /// [named](Key::Named) key, and returns nonce and tag.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if the session was not opened with [`Nonces::Salted`],
    /// [`Nonces::Counter`] or a named key, [`Error::Exhausted`] if there is no nonce left.
    pub fn seal_next(
        &self,
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<([u8; NONCE_BYTES], [u8; TAG_BYTES]), Error> {
        if self.inner.nonces_are_elsewhere() {
            return self.inner.seal_next(aad, data);
        }
        let (bytes, mut tag) = (data.len(), [0; TAG_BYTES]);
        let fits =
            self.inner.check(&Request::Seal { nonce: &[0; NONCE_BYTES], aad, data, tag: &mut tag });
        let nonce = fits.and_then(|()| self.inner.usage.next_nonce());
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
    /// [`Usage::seals_max`](crate::Usage::seals_max) is a limit. Else 0.
    pub fn sealed(&self) -> u64 {
        self.inner.usage.sealed()
    }

    /// Gives a session for QUIC's packets its next keys: one place on after a key update (RFC 9001
    /// § 6), or the same ones and the one after them. Everything else it was opened with stays, and
    /// so does what it has counted: a packet number that was used is refused under the new keys
    /// too. Limits on how often a key seals begin anew only with another current key. Forgeries are
    /// counted for all keys together (§ 6.6).
    ///
    /// Clones that were made before, and tasks with them, keep the keys they had. They take the
    /// protection off packets as before. Where packets are numbered upwards, they protect no more.
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
        let capacity = self.algorithm().public_key_bytes().unwrap_or(limits::PUBLIC_KEY_BYTES_MAX);
        let mut out = vec![0; capacity];
        let used = self.run(&mut Request::PublicKey { out: &mut out })?;
        out.truncate(used);
        Ok(out)
    }

    /// Signs the whole message.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; self.signature_bytes_max()];
        let used = self.run(&mut Request::Sign {
            message,
            parameters: SignatureParameters::default(),
            out: &mut out,
        })?;
        out.truncate(used);
        Ok(out)
    }

    /// Longest signature of the session's key, in bytes; 0 where it cannot sign.
    pub fn signature_bytes_max(&self) -> usize {
        self.inner.placement.opened().map_or(0, DriverSession::signature_bytes_max)
    }
}

impl Drop for Session {
    /// With the key goes what requests have left of it on this stack.
    #[inline]
    fn drop(&mut self) {
        let placement = &self.inner.placement;
        if Arc::strong_count(&self.inner) == 1 && placement.has_key() {
            wipe::used(Depth::used(&placement.algorithms));
        }
    }
}

impl Operation {
    /// Signs the whole message under this session's key, which says how long a signature can be.
    pub fn sign(session: &Session, message: impl Into<Vec<u8>>) -> Self {
        Operation::Sign {
            message: message.into(),
            parameters: SignatureParameters::default(),
            out: vec![0; session.signature_bytes_max()],
        }
    }
}

/// Turns [`Nonces::Salted`] into a counter under a random IV.
fn salted(registry: &Arc<Registry>, nonces: Nonces) -> Result<Nonces, Error> {
    if nonces != Nonces::Salted {
        return Ok(nonces);
    }
    let random = Session::open(registry, Parameters::new(Algorithm::Random, Key::None))?;
    let mut iv = [0; NONCE_BYTES];
    random.run(&mut Request::Random { out: &mut iv })?;
    Ok(Nonces::Counter { iv, from: 0 })
}

impl Inner {
    /// Whatever was not settled on the fast path.
    #[cold]
    fn run(&self, request: &mut Request<'_>, timed: bool) -> Result<usize, Error> {
        let bytes = request.bytes();
        let admitted = self.check(request).and_then(|()| self.usage.admit(request));
        match admitted {
            Ok(()) => self.run_admitted(request, timed),
            Err(error) => {
                self.count_refusal(bytes, error);
                Err(error)
            }
        }
    }

    /// Deals with a request that failed on the fast path.
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

    /// Whether the request is one for this session.
    #[inline]
    pub fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        match self.algorithm {
            Some(algorithm) => request.check(algorithm),
            None => request.check_chain(&self.placement.algorithms),
        }
    }

    /// Whether neither the session nor its consumer makes its nonces, but the holder of the key.
    fn nonces_are_elsewhere(&self) -> bool {
        self.placement.has_named_key() && !self.usage.makes_nonces()
    }

    /// Has the driver that holds the key seal under a nonce of its own.
    fn seal_next(
        &self,
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<([u8; NONCE_BYTES], [u8; TAG_BYTES]), Error> {
        let (mut nonce, mut tag) = ([0; NONCE_BYTES], [0; TAG_BYTES]);
        let request = &mut Request::Seal { nonce: &[0; NONCE_BYTES], aad, data, tag: &mut tag };
        let bytes = request.bytes();
        let admitted = self.check(request).and_then(|()| self.usage.admit(request));
        admitted.inspect_err(|error| self.count_refusal(bytes, *error))?;
        let run = |state: &dyn DriverSession, request: &mut Request<'_>| {
            state.seal_next(request, &mut nonce)
        };
        self.run_admitted_by(request, false, run)?;
        Ok((nonce, tag))
    }

    /// Runs a request that was checked and counted, on one driver after another until one is alive.
    pub fn run_admitted(&self, request: &mut Request<'_>, timed: bool) -> Result<usize, Error> {
        self.run_admitted_by(request, timed, |state, request| state.run(request))
    }

    #[inline]
    fn run_admitted_by(
        &self,
        request: &mut Request<'_>,
        timed: bool,
        mut run: impl FnMut(&dyn DriverSession, &mut Request<'_>) -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        let bytes = request.bytes();
        loop {
            let choice = self.placement.pick(bytes, Mode::Single, 0.0, timed);
            let choice = choice.inspect_err(|error| self.count_refusal(bytes, *error))?;
            let Choice { binding, service, .. } = choice;
            let Some(binding) = self.placement.binding(binding) else { return Err(Error::Gone) };
            let Some(state) = binding.state() else { continue };
            let shared = !binding.driver.on_caller;
            if shared {
                binding.driver.load(u64::from(service));
                self.placement.registry.begin(&binding.driver, 1);
            }
            let begun = if timed { clock::now() } else { 0 };
            let result = run(state, request);
            let ended = if timed { clock::now() } else { 0 };
            if shared {
                binding.driver.unload(u64::from(service));
                self.placement.registry.finish(&binding.driver, 1);
                if busy::take() {
                    binding.work.busy.increment();
                }
            }
            if result == Err(Error::Gone) {
                self.placement.registry.mark_dead(&binding.driver);
                continue;
            }
            if request.is_recall() {
                binding.work.count_recall(&result);
            } else {
                binding.work.count(bytes, &result);
            }
            if timed && result.is_ok() && !request.is_recall() {
                binding.work.costs.observe(Mode::Single, bytes, ended - begun);
                binding.work.record(Stage::Run, ended - begun);
                self.placement.update_fast_path();
            }
            let opening = matches!(request, Request::Open { .. } | Request::Unprotect { .. });
            self.settle(bytes, opening, &result);
            return result;
        }
    }

    /// After a request that did not take the fast path: counts a forgery and the client's share.
    pub fn settle(&self, bytes: usize, opening: bool, result: &Result<usize, Error>) {
        if opening && *result == Err(Error::Authentication) {
            self.usage.count_forgery();
        }
        if let Some(client) = &self.client {
            client.count(bytes, result);
        }
    }

    /// Counts a request that no driver saw.
    pub fn count_refusal(&self, bytes: usize, error: Error) {
        if let Some(binding) = self.placement.first() {
            binding.work.count::<()>(bytes, &Err(error));
        }
        if let Some(client) = &self.client {
            client.count(bytes, &Err(error));
        }
    }

    /// Counts a refusal by a full queue.
    pub fn count_busy(&self) {
        if let Some(binding) = self.placement.first() {
            binding.work.busy.increment();
        }
    }

    /// A session of the same kind with other keys. It protects from now on, and this one does not.
    fn successor(&self, keys: PacketKeys<'_>) -> Result<Arc<Inner>, Error> {
        let Placement { keys: before, registry, demand, .. } = &self.placement;
        let ([OwnedKey::Packet(before)], Some(algorithm)) = (&**before, self.algorithm) else {
            return Err(Error::invalid_request("only a session for packets has its keys updated"));
        };
        let mut parameters = Parameters::new(algorithm, Key::Packet(keys));
        parameters.ordered = self.ordered;
        let numbered = self.usage.is_numbered();
        parameters.nonces = if numbered { Nonces::Ascending } else { Nonces::Given };
        parameters.usage = self.usage.limits();
        parameters.client = self.client.as_ref().map(|client| client.name());
        let Session { inner } = &Session::open_for(registry, parameters, demand.clone())?;
        self.usage.pass_on(&inner.usage, before.has_current(keys.current))?;
        Ok(inner.clone())
    }

    /// Whether a driver may run a task of this session only after a queue has admitted it.
    pub fn needs_admission(&self) -> bool {
        self.counted || self.usage.is_numbered()
    }

    /// Whether nothing but the request itself decides what becomes of it.
    pub fn is_plain(&self) -> bool {
        !self.counted && !self.ordered
    }
}
