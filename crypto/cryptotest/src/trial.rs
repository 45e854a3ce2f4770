//! One operation over and over, by some threads, every result checked.

use crate::interrupt::Interrupt;
use crate::load::{Entry, Errors, LOST, Load};
use crate::subject::Subject;
use crate::work::Work;
use keyway_engine::Engine;
use keyway_lock::Unpoisoned;
use keyway_meter::{Distribution, counter, histogram};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

/// Bytes that one thread's operations take, in a processor's nearest caches.
const THREAD_BYTES_ONE: usize = 64 << 10;
/// The size of a round for several threads, which need longer ones, so that they do run at the same
/// time.
const THREAD_BYTES_SEVERAL: usize = 4 << 20;
/// How often an operation is run in one round where nothing is checked.
const REPEATS: usize = 16;
/// The engine times one request in so many unless told otherwise.
const SAMPLE: u32 = 1_024;
/// The stages of a request that the engine times.
const STAGES: [&str; 3] = ["queue", "run", "deliver"];
/// The engine's own name for running a chain step by step.
const CHAIN: &str = "chain";

/// The way each work and size is measured.
pub struct Trial<'a> {
    /// On which it is done.
    pub engine: &'a Engine,
    /// How operations get to it.
    pub entry: Entry,
    /// Threads that do so at the same time; 1 or more.
    pub threads: usize,
    /// How long it takes, checks included, where no number is given.
    pub seconds: f64,
    /// Operations of all threads together, instead of a time.
    pub count: Option<u64>,
    /// Whether every result is checked.
    pub verify: bool,
    /// Whether the stages of requests are timed.
    pub profile: bool,
    /// Ends it early, with what there is by then.
    pub interrupt: &'a Interrupt,
}

/// How one work of one size went.
pub struct Figures {
    /// Threads that did it at the same time.
    pub threads: usize,
    /// The work that was measured.
    pub work: Work,
    /// Bytes that an operation works on.
    pub bytes: usize,
    /// The count of all threads together.
    pub operations: u64,
    /// The time of one thread, on average.
    pub seconds: f64,
    /// Operations a second of all threads together.
    pub per_second: f64,
    /// Share of the requests that found their driver full.
    pub busy: f64,
    /// How many of each error.
    pub errors: Errors,
    /// Operations by driver.
    pub drivers: Vec<(String, u64)>,
    /// If it was asked for.
    pub profile: Option<Profile>,
}

/// The times of the stages of a request.
pub struct Profile {
    /// The stages of each driver.
    pub stages: Vec<StageTimes>,
    /// Nanoseconds an operation of one thread with every request timed: the median of the rounds,
    /// so that what else the machine does is not in it.
    pub with: f64,
    /// That time with none timed.
    pub without: f64,
}

/// The time of one stage of the requests on one driver.
pub struct StageTimes {
    /// The driver.
    pub driver: String,
    /// `queue`, `run` or `deliver`.
    pub stage: &'static str,
    /// In nanoseconds.
    pub nanoseconds: Distribution,
}

/// The part of one thread.
#[derive(Default)]
struct Share {
    operations: u64,
    took: Duration,
    /// Nanoseconds an operation of each round, where they are asked for.
    rounds: Vec<f64>,
}

impl Share {
    fn per_second(&self) -> f64 {
        self.operations as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// The median of all threads' rounds; 0 if there are none.
fn median(shares: &[Share]) -> f64 {
    let mut rounds: Vec<f64> = shares.iter().flat_map(|share| share.rounds.clone()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(0.0)
}

impl Trial<'_> {
    /// Runs one work of one size. It goes in rounds: all threads run theirs at the same time, which
    /// is measured; then all check what they got and make it ready again, which is not.
    pub fn measure(&self, subject: &Arc<Subject>, size: usize) -> Figures {
        let drivers = self.driver_names();
        let label = subject.work.to_string();
        let before = meters(&drivers, &label);
        let earlier = self.profile.then(|| stages(&drivers, &label));
        let kept = if self.threads > 1 { THREAD_BYTES_SEVERAL } else { THREAD_BYTES_ONE };
        let (barrier, finished) = (Barrier::new(self.threads), AtomicUsize::new(0));
        let all = Mutex::new((Vec::new(), Vec::new(), 0, Errors::new()));
        std::thread::scope(|scope| {
            for index in 0..self.threads {
                let (barrier, finished, all) = (&barrier, &finished, &all);
                scope.spawn(move || {
                    let interrupt = self.interrupt;
                    let mut load =
                        Load::new(self.engine, subject, size, self.entry, kept, interrupt);
                    let quota = self.count.map(|count| part(count, self.threads, index));
                    let rounds = Rounds { quota, leads: index == 0, barrier, finished };
                    let (plain, timed, total) = self.rounds(&mut load, &rounds);
                    let mut all = all.lock().unpoisoned();
                    all.0.push(plain);
                    all.1.push(timed);
                    all.2 += total;
                    for (name, number) in std::mem::take(&mut load.errors) {
                        *all.3.entry(name).or_default() += number;
                    }
                });
            }
        });
        self.engine.set_sample(SAMPLE);
        let all = all.into_inner().unpoisoned();
        let (plain, timed, total, errors) = all;
        let shares = if self.profile { &timed } else { &plain };
        let after = meters(&drivers, &label);
        let profile = earlier.map(|earlier| {
            let now = stages(&drivers, &label).into_iter().zip(earlier);
            let new = now.map(|(now, before)| StageTimes {
                nanoseconds: now.nanoseconds.since(&before.nanoseconds),
                ..now
            });
            Profile {
                stages: new.filter(|stage| stage.nanoseconds.count > 0).collect(),
                with: median(&timed),
                without: median(&plain),
            }
        });
        let (mut busy, mut shares_of_drivers) = (0, Vec::new());
        for (name, (after, before)) in drivers.iter().zip(after.iter().zip(&before)) {
            busy += after[1].wrapping_sub(before[1]);
            let operations = after[0].wrapping_sub(before[0]);
            if operations > 0 {
                shares_of_drivers.push((name.clone(), operations));
            }
        }
        let took: f64 = shares.iter().map(|share| share.took.as_secs_f64()).sum();
        Figures {
            threads: self.threads,
            work: subject.work.clone(),
            bytes: size,
            operations: shares.iter().map(|share| share.operations).sum(),
            seconds: took / self.threads as f64,
            per_second: shares.iter().map(Share::per_second).sum(),
            busy: busy as f64 / u64::max(total, 1) as f64,
            errors,
            drivers: shares_of_drivers,
            profile,
        }
    }

    /// All that count operations of their own.
    fn driver_names(&self) -> Vec<String> {
        let names = self.engine.drivers().into_iter().map(|driver| driver.name);
        names.chain([CHAIN.to_owned()]).collect()
    }

    /// One thread's rounds until all threads have their quota or the time is over; how they went
    /// without and with every request timed, and how many operations that were with those that do
    /// not count. Where stages are timed every other round is without, to say what it costs.
    fn rounds(&self, load: &mut Load, shared: &Rounds<'_>) -> (Share, Share, u64) {
        let (mut plain, mut timed, mut total) = (Share::default(), Share::default(), 0);
        let repeats = if self.verify { 1 } else { REPEATS };
        let mut left = shared.quota.unwrap_or(u64::MAX);
        let (begun, mut is_finished) = (Instant::now(), false);
        for round in 0u64.. {
            let sampled = self.profile && round % 2 == 1;
            if shared.leads && self.profile {
                self.engine.set_sample(u32::from(sampled));
            }
            shared.barrier.wait();
            let most = if is_finished { 0 } else { left.min((load.operations() * repeats) as u64) };
            let (number, took) = load.run(most as usize);
            shared.barrier.wait();
            total += number as u64;
            // Without a quota the first round is left out: it finds everything cold.
            if shared.quota.is_some() || round > 0 {
                let share = if sampled { &mut timed } else { &mut plain };
                share.operations += number as u64;
                share.took += took;
                if self.profile && number > 0 {
                    share.rounds.push(took.as_secs_f64() * 1e9 / number as f64);
                }
            }
            if shared.quota.is_some() && sampled == self.profile {
                left -= number as u64;
            }
            if self.verify {
                load.verify();
            }
            load.renew();
            let is_late = round > 1 && begun.elapsed().as_secs_f64() >= self.seconds;
            let is_over = left == 0
                || (shared.quota.is_none() && is_late)
                || self.interrupt.came()
                || load.errors.contains_key(LOST);
            if is_over && !is_finished {
                is_finished = true;
                shared.finished.fetch_add(1, Ordering::Relaxed);
            }
            shared.barrier.wait();
            if shared.finished.load(Ordering::Relaxed) == self.threads {
                break;
            }
        }
        (plain, timed, total)
    }
}

/// The state that the threads of a measurement have in common.
struct Rounds<'a> {
    /// Operations of this thread; `None` where time decides.
    quota: Option<u64>,
    /// Whether this thread does what is done once.
    leads: bool,
    barrier: &'a Barrier,
    /// Threads that have done their part.
    finished: &'a AtomicUsize,
}

/// One thread's part of a number.
fn part(number: u64, threads: usize, index: usize) -> u64 {
    let (threads, index) = (threads as u64, index as u64);
    number / threads + u64::from(index < number % threads)
}

/// The engine's counts for one work: operations, and requests that found a driver full.
fn meters(drivers: &[String], label: &str) -> Vec<[u64; 2]> {
    let read = |driver: &String| {
        ["operations", "busy"]
            .map(|what| counter(&format!("engine.{driver}.{label}.{what}")).value())
    };
    drivers.iter().map(read).collect()
}

/// The engine's times for one work, by driver and stage.
fn stages(drivers: &[String], label: &str) -> Vec<StageTimes> {
    let read = |driver: &String, stage: &'static str| {
        let nanoseconds = histogram(&format!("engine.{driver}.{label}.{stage}")).read();
        StageTimes { driver: driver.clone(), stage, nanoseconds }
    };
    drivers.iter().flat_map(|driver| STAGES.map(|stage| read(driver, stage))).collect()
}

impl Figures {
    /// Bytes that all operations worked on.
    pub fn bytes_in_all(&self) -> u64 {
        self.operations * self.bytes as u64
    }

    /// Microseconds that one operation took one thread.
    pub fn us_per_operation(&self) -> f64 {
        self.seconds * self.threads as f64 * 1e6 / f64::max(self.operations as f64, 1.0)
    }

    /// Throughput of all threads together, in 10^6 bits per second.
    pub fn mbit_per_second(&self) -> f64 {
        self.per_second * self.bytes as f64 * 8e-6
    }

    /// How many errors there were of any kind.
    pub fn errors_in_all(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl Profile {
    /// The cost of timing an operation, in nanoseconds.
    pub fn cost(&self) -> f64 {
        self.with - self.without
    }
}
