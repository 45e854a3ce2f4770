//! The scheduler: it chooses the driver that a request of a session runs on.
//!
//! Below each session hang *bindings*, one for each driver that it was ever placed on: what that
//! driver made of the key, and the costs and counters of its work. A *table* names the bindings
//! that may be chosen now. When drivers come or go, the registry's epoch changes, and the next
//! request makes a new table. Bindings and tables never move and are freed with the session, so a
//! request finds its binding without a lock and without a reference count.
//!
//! [`Placement::pick`] chooses the candidate that is expected to finish first. Where the choice
//! would always be the same, the [`FastPath`] is open and nothing is asked.

use crate::append_vec::AppendVec;
use crate::costs::{Load, Mode, finish};
use crate::lengths::LengthLimits;
use crate::metrics::Work;
use crate::parameters::OwnedKey;
use crate::registered::RegisteredDriver;
use crate::registry::{Drivers, Registry};
use crate::wipe::{self, Depth};
use crate::{Algorithm, Demand, DriverSession, Error, Key, Step};
use keyway_lock::Unpoisoned;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The part of a session that knows its drivers.
pub(crate) struct Placement {
    pub registry: Arc<Registry>,
    pub fast_path: FastPath,
    pub algorithms: SmallVec<[Algorithm; 4]>,
    pub keys: SmallVec<[OwnedKey; 1]>,
    pub demand: OwnedDemand,
    bindings: AppendVec<Binding>,
    tables: AppendVec<Table>,
    /// Index of the newest table.
    current: AtomicUsize,
    /// Timed requests that had a choice.
    tries: AtomicUsize,
    /// Held while a table is made.
    making: Mutex<()>,
}

/// One driver's part of a session.
pub(crate) struct Binding {
    pub driver: Arc<RegisteredDriver>,
    pub work: Arc<Work>,
    /// Whether the driver works beside the caller: it may have to wait for a place there.
    pub beside: bool,
    /// Opened when it is first used.
    state: OnceLock<Result<Box<dyn DriverSession>, Error>>,
}

/// Bindings to choose from, by their indices.
type Candidates = SmallVec<[u32; 4]>;

/// The candidates that there were at some epoch.
struct Table {
    /// The last epoch at which they were these.
    epoch: AtomicU64,
    /// The only candidate, or the first.
    first: u32,
    /// Whether all candidates compute in the caller's own time.
    local: bool,
    candidates: Candidates,
}

/// Open while the session's first binding is the only candidate, or the best one. Then a request
/// goes to it at once. Only sessions of one algorithm that count nothing have it.
pub(crate) struct FastPath {
    /// Whether the session may ever have it.
    allowed: bool,
    /// The epoch at which it is open; 0 for never.
    epoch: AtomicU64,
    /// For requests of at most so many bytes.
    bytes_max: AtomicUsize,
    /// The session's algorithm; without meaning for a chain.
    pub algorithm: Algorithm,
    pub limits: LengthLimits,
}

/// Where the scheduler puts a request.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub binding: u32,
    /// Nanoseconds that it is expected to occupy the driver.
    pub service: u32,
    /// Whether there was only one candidate.
    pub sole: bool,
    /// Whether all candidates compute in the caller's own time. Then the choice depends on nothing
    /// but the request.
    pub local: bool,
}

/// The expected cost of one candidate.
struct Estimate {
    binding: u32,
    /// Nanoseconds until it has finished the request.
    finish: f64,
    service: u32,
}

#[derive(Clone)]
pub(crate) enum OwnedDemand {
    Any,
    Software,
    Hardware,
    Named(String),
    /// Exactly this one, to measure it.
    Exactly(Arc<RegisteredDriver>),
}

/// Choices that may fall on drivers that are gone. After so many, only open bindings are
/// candidates.
const ATTEMPTS: usize = 4;
/// One in so many timed requests goes to a candidate that may not be the best.
const TRY_EVERY: usize = 8;
/// A candidate that is expected to take so many times as long as the best is not tried.
const TRY_FACTOR_MAX: f64 = 16.0;
/// Sizes at which candidates are compared, in bytes. At the last one, the cost of a byte outweighs
/// all others.
const SIZES: [usize; 4] = [0, 1 << 10, 1 << 12, 1 << 20];
/// Two measurements that differ by less than this factor count as equal.
const MARGIN: f64 = 1.2;
/// The margin for large sizes, where it costs next to nothing to choose anew for each request.
const LARGE_MARGIN: f64 = 1.05;
/// About how many nanoseconds it costs to choose. For less gain it is not worth it.
const CHOICE_NS: f64 = 40.0;

const NOT_HELD: Error = Error::InvalidKey("no driver that is there holds one of that name");
const TOO_MANY_CHANGES: Error =
    Error::Exhausted("drivers came and went more often than a session can follow");

impl Placement {
    /// Places a session on the first driver that does not decline its key as unsupported. `counted`
    /// says that every request must be counted by the session.
    pub fn new(
        registry: &Arc<Registry>,
        steps: &[Step<'_>],
        demand: OwnedDemand,
        counted: bool,
    ) -> Result<Self, Error> {
        let algorithm = match steps {
            [step] => Some(step.algorithm),
            _ => None,
        };
        let any = algorithm.unwrap_or(Algorithm::Random);
        let placement = Placement {
            registry: registry.clone(),
            fast_path: FastPath {
                allowed: algorithm.is_some() && !counted,
                epoch: AtomicU64::new(0),
                bytes_max: AtomicUsize::new(0),
                algorithm: any,
                limits: any.length_limits(),
            },
            algorithms: steps.iter().map(|step| step.algorithm).collect(),
            keys: steps.iter().map(|step| OwnedKey::new(step.key)).collect(),
            demand,
            bindings: AppendVec::new(),
            tables: AppendVec::new(),
            current: AtomicUsize::new(0),
            tries: AtomicUsize::new(0),
            making: Mutex::new(()),
        };
        placement.first_table()?;
        Ok(placement)
    }

    /// The binding that a request of so many bytes goes to while the fast path is open.
    #[inline(always)]
    pub fn fast_binding(&self, bytes: usize) -> Option<(&Binding, &dyn DriverSession)> {
        let is_open = self.fast_path.epoch.load(Ordering::Acquire) == self.registry.epoch();
        if !is_open || bytes > self.fast_path.bytes_max.load(Ordering::Relaxed) {
            return None;
        }
        let binding = self.binding(0)?;
        Some((binding, binding.state()?))
    }

    #[inline]
    pub fn binding(&self, index: u32) -> Option<&Binding> {
        self.bindings.get(index as usize)
    }

    /// The only candidate, or the one that was registered first.
    pub fn first(&self) -> Option<&Binding> {
        self.binding(self.table().map_or(0, |table| table.first))
    }

    /// One that was opened, be its driver there or not: what it says of the key holds for every
    /// one.
    pub fn opened(&self) -> Option<&dyn DriverSession> {
        self.bindings.iter().find_map(Binding::state)
    }

    pub fn has_key(&self) -> bool {
        !self.keys.iter().all(|key| matches!(key, OwnedKey::None))
    }

    /// Chooses the candidate with the earliest predicted finish. `ahead` is the nanoseconds of work
    /// that the caller's own processor has to do first.
    ///
    /// Now and then a `timed` request goes to another candidate that is not much slower. So a
    /// driver that was measured at a bad moment is measured again.
    pub fn pick(&self, bytes: usize, mode: Mode, ahead: f64, timed: bool) -> Result<Choice, Error> {
        let mut opened_only = false;
        for attempt in 0.. {
            let timed = timed && attempt == 0;
            if let Some(choice) = self.try_pick(bytes, mode, ahead, timed, opened_only)? {
                return Ok(choice);
            }
            // If drivers die as fast as they come, one that is open already is good enough.
            opened_only = attempt >= ATTEMPTS && !opened_only;
        }
        Err(Error::Gone)
    }

    /// `None` if the choice fell on a driver that has gone.
    fn try_pick(
        &self,
        bytes: usize,
        mode: Mode,
        ahead: f64,
        timed: bool,
        opened_only: bool,
    ) -> Result<Option<Choice>, Error> {
        let table = self.table()?;
        if let [only] = *table.candidates {
            let binding = self.binding(only).ok_or(Error::Gone)?;
            if binding.state().is_some() {
                let service = binding.work.costs.predict(Mode::Batched, bytes);
                let (service, local) = (service as u32, binding.driver.on_caller);
                return Ok(Some(Choice { binding: only, service, sole: true, local }));
            }
        }
        let candidates = table.candidates.iter();
        let estimates = candidates.filter_map(|&index| {
            let binding = self.binding(index).filter(|binding| binding.may_run(opened_only))?;
            Some(binding.estimate(index, bytes, mode, ahead))
        });
        let best = estimates.clone().min_by(|a, b| a.finish.total_cmp(&b.finish));
        let Some(best) = best else {
            // Perhaps a driver came while the last one went.
            if opened_only || table.epoch.load(Ordering::Acquire) != self.registry.epoch() {
                return Ok(None);
            }
            return Err(self.no_candidate(table));
        };
        let tried = self.candidate_to_try(timed, table).and_then(|turn| {
            estimates.clone().nth(turn).filter(|it| it.finish < best.finish * TRY_FACTOR_MAX)
        });
        let local = table.local && tried.as_ref().is_none_or(|it| it.binding == best.binding);
        let Estimate { binding, service, .. } = tried.unwrap_or(best);
        match self.open_binding(binding) {
            Ok(()) => Ok(Some(Choice { binding, service, sole: false, local })),
            Err(Error::Gone) => {
                if let Some(binding) = self.binding(binding) {
                    self.registry.mark_dead(&binding.driver);
                }
                Ok(None)
            }
            // It cannot be chosen from now on; the others can.
            Err(_) if table.candidates.len() > 1 => Ok(None),
            Err(Error::Unsupported(_)) if self.has_named_key() => Err(Error::Gone),
            Err(error) => Err(error),
        }
    }

    /// For one in some timed requests, which candidate's turn it is to be measured again.
    fn candidate_to_try(&self, timed: bool, table: &Table) -> Option<usize> {
        if !timed {
            return None;
        }
        let count = self.tries.fetch_add(1, Ordering::Relaxed);
        let turn = count / TRY_EVERY % table.candidates.len();
        (count % TRY_EVERY == TRY_EVERY - 1).then_some(turn)
    }

    /// Why there is no candidate.
    fn no_candidate(&self, table: &Table) -> Error {
        if self.has_named_key() {
            // That other drivers declined it says nothing: they never held it.
            return Error::Gone;
        }
        let failed = |index: &u32| match self.binding(*index)?.state.get()? {
            Err(error) => Some(*error),
            Ok(_) => None,
        };
        table.candidates.iter().find_map(failed).unwrap_or(Error::Gone)
    }

    /// Whether a single request of so many bytes would run on this stack.
    pub fn runs_here(&self, bytes: usize) -> bool {
        let choice = self.pick(bytes, Mode::Single, 0.0, false);
        choice.is_ok_and(|choice| {
            self.binding(choice.binding).is_some_and(|binding| binding.driver.on_caller)
        })
    }

    /// The table of the registry's epoch.
    fn table(&self) -> Result<&Table, Error> {
        let current = self.tables.get(self.current.load(Ordering::Acquire));
        match current {
            Some(table) if table.epoch.load(Ordering::Acquire) == self.registry.epoch() => {
                Ok(table)
            }
            _ => self.new_table(),
        }
    }

    /// The drivers to choose from, and whether any driver there is could meet the demand.
    fn drivers(&self) -> (Drivers, bool) {
        if let OwnedDemand::Exactly(driver) = &self.demand {
            let open = driver.opener.is_none() || driver.is_alive();
            return (open.then(|| driver.clone()).into_iter().collect(), true);
        }
        let (demand, has_named_key) = (self.demand.view(), self.has_named_key());
        let (mut drivers, known) = self.registry.fitting(&self.algorithms, demand, has_named_key);
        let is_chain = self.algorithms.len() > 1;
        if is_chain && (drivers.is_empty() || demand == Demand::Any) {
            drivers.push(self.registry.chain.clone());
        }
        (drivers, known)
    }

    pub fn has_named_key(&self) -> bool {
        self.keys.iter().any(|key| matches!(key, OwnedKey::Named(_)))
    }

    /// A generated key is where it was made and nowhere else.
    fn is_bound_once(&self) -> bool {
        self.keys.iter().any(|key| matches!(key, OwnedKey::Generate))
    }

    /// Offers the key to the drivers in order, until one does not decline it as unsupported.
    fn first_table(&self) -> Result<(), Error> {
        let epoch = self.registry.epoch();
        let (drivers, known) = self.drivers();
        let mut candidates = Candidates::new();
        let mut refused = None;
        for driver in drivers {
            if candidates.is_empty() {
                let index = self.bind(driver)?;
                match self.open_binding(index) {
                    Ok(()) => candidates.push(index),
                    Err(Error::Unsupported(algorithm)) => {
                        refused = Some(Error::Unsupported(algorithm));
                    }
                    Err(Error::Gone) => {}
                    Err(error) => return Err(error),
                }
            } else if !self.is_bound_once() {
                candidates.push(self.bind(driver)?);
            }
        }
        if candidates.is_empty() {
            return Err(match (known, refused) {
                (false, _) => Error::NoSuchDriver,
                _ if self.has_named_key() => NOT_HELD,
                (_, Some(error)) => error,
                _ => Error::Unsupported(
                    self.algorithms.first().copied().unwrap_or(Algorithm::Random),
                ),
            });
        }
        self.set_table(epoch, candidates).map(drop)
    }

    #[cold]
    fn new_table(&self) -> Result<&Table, Error> {
        let _making = self.making.lock().unpoisoned();
        let epoch = self.registry.epoch();
        if let Some(table) = self.tables.get(self.current.load(Ordering::Acquire))
            && table.epoch.load(Ordering::Acquire) == epoch
        {
            return Ok(table);
        }
        let mut candidates = Candidates::new();
        for driver in self.drivers().0 {
            // One that could not be opened is tried anew: the steps of a chain may be there by now.
            let opens = |known: &Binding| !matches!(known.state.get(), Some(Err(_)));
            let is_its = |known: &Binding| Arc::ptr_eq(&known.driver, &driver) && opens(known);
            match self.bindings.iter().position(is_its) {
                Some(index) => candidates.push(index as u32),
                None if !self.is_bound_once() => candidates.push(self.bind(driver)?),
                None => {}
            }
        }
        self.set_table(epoch, candidates)
    }

    fn set_table(&self, epoch: u64, candidates: Candidates) -> Result<&Table, Error> {
        if let [_, _, ..] = *candidates {
            for binding in candidates.iter().filter_map(|index| self.binding(*index)) {
                let Binding { driver, work, .. } = binding;
                (self.registry.hooks.calibrate)(&self.registry, driver, work, &self.algorithms);
            }
        }
        let on_caller = |index: &u32| self.binding(*index).is_some_and(|b| b.driver.on_caller);
        let (first, local) =
            (candidates.first().copied().unwrap_or(0), candidates.iter().all(on_caller));
        let current = self.current.load(Ordering::Acquire);
        let index = match self.tables.get(current) {
            // The drivers that came or went are not this session's.
            Some(table) if table.candidates == candidates => {
                table.epoch.store(epoch, Ordering::Release);
                current
            }
            _ => {
                let table = Table { epoch: AtomicU64::new(epoch), first, local, candidates };
                self.tables.push(table).map_err(|_| TOO_MANY_CHANGES)?
            }
        };
        self.current.store(index, Ordering::Release);
        let table = self.tables.get(index).ok_or(TOO_MANY_CHANGES)?;
        self.set_fast_path(table);
        Ok(table)
    }

    /// Opens or closes the fast path after costs have changed.
    pub fn update_fast_path(&self) {
        if let Ok(table) = self.table() {
            self.set_fast_path(table);
        }
    }

    /// Goes by what was measured until now, so that one bad measurement neither closes the fast
    /// path for good nor keeps it open.
    fn set_fast_path(&self, table: &Table) {
        let allowed = self.fast_path.allowed;
        let bytes_max = if allowed { self.first_is_best(&table.candidates) } else { None };
        let epoch = bytes_max.map_or(0, |_| table.epoch.load(Ordering::Acquire));
        self.fast_path.bytes_max.store(bytes_max.unwrap_or(0), Ordering::Relaxed);
        self.fast_path.epoch.store(epoch, Ordering::Release);
    }

    /// Up to which size the first binding is expected to finish a single request before all other
    /// candidates. `None` if it is not at any size, or not a candidate.
    fn first_is_best(&self, candidates: &[u32]) -> Option<usize> {
        let cost = |index: u32, bytes| match self.binding(index) {
            Some(binding) => binding.work.costs.predict(Mode::Single, bytes),
            None => f64::MAX,
        };
        let [0, others @ ..] = candidates else { return None };
        if others.is_empty() {
            return Some(usize::MAX);
        }
        let beaten = |bytes: usize| {
            let margin = if bytes == 0 { MARGIN } else { LARGE_MARGIN };
            others.iter().any(|other| cost(*other, bytes) * margin + CHOICE_NS < cost(0, bytes))
        };
        self.binding(0).filter(|first| first.driver.on_caller)?;
        let best = SIZES.into_iter().take_while(|bytes| !beaten(*bytes)).last()?;
        Some(if best == SIZES[SIZES.len() - 1] { usize::MAX } else { best })
    }

    fn bind(&self, driver: Arc<RegisteredDriver>) -> Result<u32, Error> {
        let work = driver.work(&self.algorithms);
        let beside = !driver.on_caller;
        let binding = Binding { driver, work, beside, state: OnceLock::new() };
        self.bindings.push(binding).map(|index| index as u32).map_err(|_| TOO_MANY_CHANGES)
    }

    fn open_binding(&self, index: u32) -> Result<(), Error> {
        let binding = self.binding(index).ok_or(TOO_MANY_CHANGES)?;
        let state = binding.state.get_or_init(|| {
            let steps = self.steps();
            let open = || match &binding.driver.opener {
                Some(opener) => opener.open(&steps),
                None => {
                    (self.registry.hooks.open_chain)(&self.registry, &steps, self.demand.view())
                }
            };
            let state = match self.has_key() {
                true => wipe::after(Depth::opened(&self.algorithms), open),
                false => open(),
            };
            if let [Step { key: Key::Generate | Key::Extract { .. }, .. }] = steps[..] {
                // To open such a session is cryptographic work, so it counts as an operation.
                binding.work.count(0, &state);
            }
            state
        });
        state.as_ref().map(drop).map_err(|error| *error)
    }

    /// The steps with their keys.
    fn steps(&self) -> SmallVec<[Step<'_>; 1]> {
        let pairs = self.algorithms.iter().zip(&self.keys);
        pairs.map(|(algorithm, key)| Step { algorithm: *algorithm, key: key.view() }).collect()
    }
}

impl Binding {
    #[inline]
    pub fn state(&self) -> Option<&dyn DriverSession> {
        match self.state.get()? {
            Ok(state) => Some(&**state),
            Err(_) => None,
        }
    }

    /// Whether its driver is there and was not found unable to open the session. With
    /// `opened_only`, it must have opened it.
    fn may_run(&self, opened_only: bool) -> bool {
        self.driver.is_alive()
            && match self.state.get() {
                Some(state) => state.is_ok(),
                None => !opened_only,
            }
    }

    fn estimate(&self, index: u32, bytes: usize, mode: Mode, ahead: f64) -> Estimate {
        let (driver, costs) = (&self.driver, &self.work.costs);
        let single = costs.predict(Mode::Single, bytes);
        let batched = costs.predict(Mode::Batched, bytes);
        let load = Load { on_caller: driver.on_caller, wait: driver.wait() };
        Estimate {
            binding: index,
            finish: finish(load, single, batched, mode, ahead),
            service: batched as u32,
        }
    }
}

impl OwnedDemand {
    pub fn new(demand: Demand<'_>) -> Self {
        match demand {
            Demand::Any => OwnedDemand::Any,
            Demand::Software => OwnedDemand::Software,
            Demand::Hardware => OwnedDemand::Hardware,
            Demand::Named(name) => OwnedDemand::Named(name.to_owned()),
        }
    }

    fn view(&self) -> Demand<'_> {
        match self {
            OwnedDemand::Any | OwnedDemand::Exactly(_) => Demand::Any,
            OwnedDemand::Software => Demand::Software,
            OwnedDemand::Hardware => Demand::Hardware,
            OwnedDemand::Named(name) => Demand::Named(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::Linear;
    use crate::{Driver, Engine, NONCE_BYTES, Parameters, Request};

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

    /// A driver that was measured at a bad moment loses the fast path until it is measured again.
    #[test]
    fn the_fast_path_is_closed_and_opened_by_what_is_measured() {
        let builder = Engine::builder().driver(Arc::new(Nothing("test-first")));
        let engine = builder.driver(Arc::new(Nothing("test-other"))).sample(1).build();
        let costs = |driver, fixed| {
            let cost = Linear { fixed, per_byte: 0.0 };
            engine.set_cost(driver, &[Algorithm::Aes128Gcm], cost, cost).unwrap();
        };
        costs("test-first", 100.0);
        costs("test-other", 200.0);
        let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 16]));
        let session = engine.session(parameters).unwrap();
        let is_open = || {
            let placement = &session.inner().placement;
            placement.fast_path.epoch.load(Ordering::Relaxed) == placement.registry.epoch()
        };
        assert!(is_open());
        for (fixed, open) in [(10_000.0, false), (100.0, true), (210.0, true), (400.0, false)] {
            costs("test-first", fixed);
            session.seal(&[0; NONCE_BYTES], &[], &mut [0; 100]).unwrap();
            assert_eq!(is_open(), open, "{fixed} ns");
        }
    }
}
