//! Load that the page has started: one run at a time, on one server or on two that are raced.

use crate::limits::{RUN_SECONDS_MAX, TEXT_BYTES_MAX};
use crate::order::{Order, check_rate};
use keyway_load::{
    Barrier, Event, Interrupt, Options, RateOverride, SAMPLES, Sample, Scenario, Second, Url,
    probe, run_at, summary, survey,
};
use keyway_lock::Unpoisoned;
use rustls::crypto::CryptoProvider;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// The samples that a page may start; the others are files to begin with.
const NAMES: [&str; 6] = ["search", "auth", "bind", "modify", "add-delete", "mixed"];

/// A server that may be put under load.
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its address and account now; or why there is none.
    pub options: Box<dyn Fn() -> Result<Options, String> + Send + Sync>,
}

/// The scenarios and servers that a page may choose, and the run under way.
pub struct Races {
    targets: Vec<Target>,
    /// Scenarios of files, by their names.
    files: Vec<(String, PathBuf)>,
    provider: Arc<CryptoProvider>,
    last: Mutex<Race>,
}

/// The run that was started last.
#[derive(Default)]
struct Race {
    number: u64,
    scenario: String,
    rate: Option<f64>,
    seconds: f64,
    lanes: Vec<Arc<Lane>>,
}

/// One server's part in it.
struct Lane {
    target: String,
    interrupt: Interrupt,
    rate_override: RateOverride,
    course: Mutex<Course>,
}

#[derive(Default)]
struct Course {
    state: State,
    seconds: VecDeque<Second>,
    /// Connections that are open, of how many, and why not the others.
    connections: Option<(usize, usize, Option<String>)>,
    /// Its result, or the reason of its failure.
    words: String,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Opening,
    Running,
    Ended,
    Failed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Opening => "opening",
            State::Running => "running",
            State::Ended => "ended",
            State::Failed => "failed",
        }
    }
}

impl Races {
    /// With servers, scenarios in files, and the cryptography of TLS.
    #[must_use]
    pub fn new(
        targets: Vec<Target>,
        files: Vec<(String, PathBuf)>,
        provider: Arc<CryptoProvider>,
    ) -> Races {
        Races { targets, files, provider, last: Mutex::default() }
    }

    /// Starts a run.
    ///
    /// # Errors
    /// If one goes already, or it cannot be begun like that.
    pub(crate) fn start(&self, order: &Order) -> Result<(), String> {
        order.check(self.targets.len())?;
        let is_free = |last: &Race| match last.lanes.iter().any(|lane| lane.is_going()) {
            true => Err("a run goes already; stop it first".to_owned()),
            false => Ok(()),
        };
        is_free(&self.last())?;
        let targets = order.targets.iter().filter_map(|at| self.targets.get(*at));
        let made = targets.map(|target| Ok((target.name.clone(), self.scenario(order, target)?)));
        let made: Vec<(String, Scenario)> = made.collect::<Result<_, String>>()?;
        // Servers were asked meanwhile.
        let mut last = self.last();
        is_free(&last)?;
        let mut lanes = Vec::new();
        let barriers = Barrier::of(made.len());
        for ((target, mut scenario), barrier) in made.into_iter().zip(barriers) {
            let lane = Arc::new(Lane {
                target,
                interrupt: Interrupt::default(),
                rate_override: RateOverride::default(),
                course: Mutex::default(),
            });
            if let Some(rate) = order.rate {
                lane.rate_override.set(rate);
            }
            let (run, provider) = (lane.clone(), self.provider.clone());
            let named = thread::Builder::new().name("race".to_owned());
            let spawned = named.spawn(move || run.run(&mut scenario, barrier, &provider));
            if let Err(why) = spawned {
                lanes.iter().for_each(|lane: &Arc<Lane>| lane.interrupt.end());
                return Err(format!("cannot start a thread: {why}"));
            }
            lanes.push(lane);
        }
        let (scenario, rate, seconds) = (order.scenario.clone(), order.rate, order.seconds);
        *last = Race { number: last.number + 1, scenario, rate, seconds, lanes };
        Ok(())
    }

    fn scenario(&self, order: &Order, target: &Target) -> Result<Scenario, String> {
        let mut options = order.fill((target.options)()?);
        // Entries that are added have names that no earlier run had.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        options.fresh = u64::try_from(since.as_millis()).unwrap_or_default().saturating_mul(1_000);
        let name = order.scenario.as_str();
        if let Some((_, file)) = self.files.iter().find(|(file, _)| file == name) {
            return from_file(file, &options);
        }
        let sample = Sample::named(name).filter(|sample| NAMES.contains(&sample.name));
        let sample = sample.ok_or("choose a scenario of the list")?;
        if sample.needs_admin() && options.admin.is_none() {
            return Err(format!(
                "{name} needs an administrator, and keyway web was started without an account for it \
                 (--load-bind-dn, --load-password-file)"
            ));
        }
        survey(&mut options, &self.provider).map_err(|why| why.to_string())?;
        parsed(sample, &options)
    }

    /// Asks for the end of the run.
    pub(crate) fn stop(&self) {
        self.last().lanes.iter().for_each(|lane| lane.interrupt.end());
    }

    /// Changes the rate of the run, or of one of its lanes.
    ///
    /// # Errors
    /// If it is none, or nothing goes that has one.
    pub(crate) fn set_rate(&self, rate: f64, lane: Option<usize>) -> Result<(), String> {
        check_rate(rate)?;
        let mut last = self.last();
        if last.rate.is_none() || !last.lanes.iter().any(|lane| lane.is_going()) {
            return Err("no run goes that has a rate".into());
        }
        let chosen = last.lanes.iter().enumerate();
        chosen
            .filter(|(at, _)| lane.is_none_or(|lane| lane == *at))
            .for_each(|(_, lane)| lane.rate_override.set(rate));
        last.rate = Some(rate);
        Ok(())
    }

    /// The scenarios and servers, and the progress of the last run: its seconds from a number on.
    pub(crate) fn json(&self, after: u64) -> Value {
        let last = self.last();
        let about = |name: &str| Sample::named(name).map(|sample| sample.about);
        let samples = NAMES.iter().filter(|name| SAMPLES.iter().any(|it| it.name == **name));
        let mut scenarios: Vec<Value> =
            samples.map(|name| json!({ "name": name, "about": about(name) })).collect();
        let files = self.files.iter();
        scenarios.extend(
            files.map(|(name, path)| json!({ "name": name, "about": path.display().to_string() })),
        );
        let target = |target: &Target| {
            let (base, why) = match (target.options)() {
                Ok(options) => (Some(options.base), None),
                Err(why) => (None, Some(why)),
            };
            json!({ "name": target.name, "base": base, "why": why })
        };
        json!({
            "scenarios": scenarios,
            "targets": self.targets.iter().map(target).collect::<Vec<_>>(),
            "run": (last.number > 0).then(|| json!({
                "number": last.number,
                "scenario": last.scenario,
                "rate": last.rate,
                "seconds": last.seconds,
                "going": last.lanes.iter().any(|lane| lane.is_going()),
                "lanes": last.lanes.iter().map(|lane| lane.json(after)).collect::<Vec<_>>(),
            })),
        })
    }

    fn last(&self) -> MutexGuard<'_, Race> {
        self.last.lock().unpoisoned()
    }
}

impl Drop for Races {
    fn drop(&mut self) {
        self.stop();
    }
}

fn parsed(sample: &Sample, options: &Options) -> Result<Scenario, String> {
    let text = sample.text(options);
    let scenario = Scenario::parse(&text, sample.name, Path::new(""));
    let mut scenario = scenario.map_err(|why| why.to_string())?;
    scenario.trust.own_ca.clone_from(&options.own_ca);
    Ok(scenario)
}

/// The scenario that an order in JSON makes on a server with these options; for the fuzz target that
/// looks for orders beyond the limits.
#[doc(hidden)]
#[must_use]
pub fn scenario_of(order: &[u8], options: Options) -> Option<Scenario> {
    let order: Order = serde_json::from_slice(order).ok()?;
    order.check(2).ok()?;
    parsed(Sample::named(&order.scenario)?, &order.fill(options)).ok()
}

/// A scenario of a file, for another server; its phases stay as they are, but for a rate that was ordered.
fn from_file(file: &Path, options: &Options) -> Result<Scenario, String> {
    let mut scenario = Scenario::read(file).map_err(|why| why.to_string())?;
    if scenario.find.is_some() {
        return Err("a scenario that searches for the highest rate is for keyway load run".into());
    }
    let urls = options.urls.iter().map(|url| Url::parse(url));
    scenario.urls = urls.collect::<Result<_, _>>()?;
    scenario.start_tls = options.start_tls;
    scenario.trust.insecure = options.insecure;
    scenario.trust.ca.clone_from(&options.ca);
    scenario.trust.own_ca.clone_from(&options.own_ca);
    Ok(scenario)
}

impl Lane {
    /// Runs to the end, and says how it goes.
    fn run(&self, scenario: &mut Scenario, barrier: Barrier, provider: &Arc<CryptoProvider>) {
        let barrier = Some(barrier);
        let (interrupt, rate_override) = (&self.interrupt, &self.rate_override);
        let tried = probe(scenario, provider, interrupt).map_err(|why| why.to_string());
        if let Ok(Some(why)) | Err(why) = tried {
            let mut course = self.course();
            (course.state, course.words) = (State::Failed, why);
            return;
        }
        let outcome = run_at(scenario, provider, interrupt, rate_override, barrier, &mut |event| {
            let mut course = self.course();
            match event {
                Event::Begun { open, wanted, why_not, .. } => {
                    course.state = State::Running;
                    course.connections = Some((open, wanted, why_not));
                }
                Event::Second(second) => {
                    if course.seconds.len() >= RUN_SECONDS_MAX {
                        course.seconds.pop_front();
                    }
                    course.seconds.push_back(second.clone());
                }
                Event::Lost(_) | Event::Monitor(_) => {}
            }
        });
        let mut course = self.course();
        (course.state, course.words) = match outcome {
            Ok(outcome) => {
                let table = summary::table(scenario, &outcome);
                match outcome.ended_by {
                    Some(why) => (State::Failed, format!("{why}\n\n{table}")),
                    None => (State::Ended, table),
                }
            }
            Err(why) => (State::Failed, why.to_string()),
        };
    }

    fn is_going(&self) -> bool {
        matches!(self.course().state, State::Opening | State::Running)
    }

    fn json(&self, after: u64) -> Value {
        let course = self.course();
        let seconds = course.seconds.iter().filter(|second| second.number >= after).map(second);
        let mut words = course.words.clone();
        // A table of many jobs; a run that is over stays so.
        let end = words.floor_char_boundary(8 * TEXT_BYTES_MAX);
        words.truncate(end);
        json!({
            "target": self.target,
            "state": course.state.name(),
            "rate": self.rate_override.get(),
            "connections": course.connections.as_ref().map(|(open, wanted, why_not)| {
                json!({ "open": open, "wanted": wanted, "why_not": why_not })
            }),
            "seconds": seconds.collect::<Vec<_>>(),
            "words": words,
        })
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unpoisoned()
    }
}

fn second(second: &Second) -> Value {
    json!({
        "number": second.number,
        "due": second.due,
        "done": second.done,
        "errors": second.errors,
        "p50_ns": second.p50_ns,
        "p99_ns": second.p99_ns,
        "max_ns": second.max_ns,
        "lag_ns": second.lag_ns,
        "cpu_share": second.cpu_share,
        "backlog": second.backlog,
        "host": second.host,
    })
}
