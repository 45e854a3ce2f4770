//! A scenario: what is asked of which server, how often, for how long, and what must come of it.
//!
//! It is written as TOML (the guide, `docs/guide/load.md`, has every key), read into this checked
//! form, and never changed afterwards.

mod account;
mod connections;
mod context;
mod data;
mod files;
mod job;
pub(crate) mod monitors;
mod operation;
mod parts;
mod phases;
mod secrets;
pub(crate) mod section;
mod target;
mod template;

use crate::error::Error;
use crate::limits::{JOBS_MAX, SCENARIO_BYTES_MAX, THREADS_MAX};
use crate::rule::Rule;
use crate::schedule::{Arrivals, Phase, Rate, length};
use crate::source::Source;
use crate::target::Url;
use crate::trust::{Trust, read};
use files::{Files, confined};
use secrets::without_passwords;
use section::{Document, ROOT, Section};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeTable;

pub(crate) use operation::parent;
pub use parts::Threshold;
pub(crate) use parts::{Group, Job, Lifetime, Operation, Step, Take};
pub use phases::Find;

/// The part of a rate's trial that only warms up, of the time that it is held.
const WARM_UP: f64 = 0.2;

/// A scenario, checked.
#[derive(Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// The servers; connections are opened to one after the other.
    pub urls: Vec<Url>,
    /// How they are known.
    pub trust: Trust,
    /// Whether TLS begins with StartTLS on `ldap://`.
    pub start_tls: bool,
    /// A TLS handshake that takes longer is counted as slow.
    pub slow_tls: Duration,
    /// How starts are spread over a second.
    pub arrivals: Arrivals,
    /// An operation without an answer for so long has failed.
    pub timeout: Duration,
    /// How long is waited, after the last start, for what is still under way.
    pub drain: Duration,
    /// Threads; without a number one for each core.
    pub threads: Option<usize>,
    /// The parts of the run.
    pub phases: Vec<Phase>,
    /// The search for the knee, if there is to be one.
    pub find: Option<Find>,
    /// The one rate that is held, and how long, instead of what was read.
    pub(crate) held: Option<(f64, Duration)>,
    /// The rules for the result.
    pub thresholds: Vec<Threshold>,
    /// The text it was read from, with passwords left out.
    pub text: String,
    /// The files that it was read from, and those that it names.
    pub inputs: Vec<PathBuf>,
    /// The number of this agent, of how many; work is shared out by these.
    pub(crate) share: (u64, u64),
    pub(crate) sources: Vec<Source>,
    pub(crate) groups: Vec<Group>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) monitors: Vec<monitors::Monitor>,
}

impl Scenario {
    /// Reads a scenario's file; files that it names are looked for beside it.
    ///
    /// # Errors
    /// The fault, and its place.
    pub fn read(path: &Path) -> Result<Scenario, Error> {
        let bytes = read(path, SCENARIO_BYTES_MAX)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Error::Content(path.to_owned(), "it is not UTF-8".into()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut scenario = Scenario::parse(&text, &path.display().to_string(), folder)?;
        scenario.inputs.push(path.to_owned());
        Ok(scenario)
    }

    /// Reads a scenario's text, which errors call `name`; files that it names are looked for in
    /// `folder`.
    ///
    /// # Errors
    /// The fault, and its place.
    pub fn parse(text: &str, name: &str, folder: &Path) -> Result<Scenario, Error> {
        Scenario::parse_with(text, name, folder, false)
    }

    /// Reads a text that came from another machine: it may not name files outside `folder`.
    pub(crate) fn parse_confined(text: &str, name: &str, folder: &Path) -> Result<Scenario, Error> {
        confined(text, name)?;
        Scenario::parse_with(text, name, folder, true)
    }

    fn parse_with(
        text: &str,
        name: &str,
        folder: &Path,
        is_confined: bool,
    ) -> Result<Scenario, Error> {
        let document = Document { name, text };
        let table = DeTable::parse(text).map_err(|why| {
            document.error(&why.span().unwrap_or_default(), why.message().to_owned())
        })?;
        let root = Section::new(document, table.get_ref(), 0..0, ROOT);
        let files = Files { folder, is_confined, read: RefCell::default() };
        let scenario = Scenario::from(root, &files)?;
        let mut inputs = files::named(document, table.get_ref(), folder)?;
        inputs.extend(files.read.into_inner());
        Ok(Scenario { text: without_passwords(text, table.get_ref()), inputs, ..scenario })
    }

    fn from(mut root: Section<'_>, files: &Files<'_>) -> Result<Scenario, Error> {
        let folder = files.folder;
        root.keys(&[
            "name",
            "seed",
            "threads",
            "timeout",
            "drain",
            "arrivals",
            "target",
            "data",
            "connections",
            "phase",
            "job",
            "threshold",
            "monitor",
        ])?;
        let seed = root.whole("seed", 0..u64::MAX)?.unwrap_or(1);
        let name = root.text("name")?.unwrap_or("load").to_owned();
        let threads = root.whole("threads", 1..THREADS_MAX as u64 + 1)?;
        let timeout = root.time("timeout")?.unwrap_or(Duration::from_secs(10));
        let drain = root.time("drain")?.unwrap_or(Duration::from_secs(10));
        let arrivals = match root.text("arrivals")? {
            None | Some("even") => Arrivals::Even,
            Some("random") => Arrivals::Random,
            Some(other) => {
                return Err(
                    root.error(format!("arrivals are \"even\" or \"random\", not \"{other}\""))
                );
            }
        };
        let target = target::read(root.section("target")?, &root, folder)?;
        let sources = match root.section("data")? {
            Some(section) => data::read(&section, files, seed)?,
            None => Vec::new(),
        };
        let context = context::Context { sources: &sources, target: &target, folder };
        let mut groups = vec![connections::read(root.section("connections")?, None, &context)?];
        let mut jobs = Vec::new();
        let document = root.document();
        for value in root.list("job") {
            let section = Section::of(document, value, format!("job {}", jobs.len() + 1))?;
            if jobs.len() == JOBS_MAX {
                return Err(section.error(format!("a scenario has {JOBS_MAX} jobs at most")));
            }
            jobs.push(job::read(section, &mut groups, &context)?);
        }
        if jobs.is_empty() {
            return Err(root.error("there is no [[job]]; keyway load init writes examples"));
        }
        if jobs.iter().all(|job| job.weight == 0.0) {
            return Err(root.error("no job has a weight above 0"));
        }
        let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
        let monitors = monitors::read(&mut root, &context)?;
        let (phases, find) = phases::read(&mut root, &names)?;
        let thresholds = phases::thresholds(&mut root, &names)?;
        root.finish()?;
        let used = |group: usize| jobs.iter().any(|job| job.group == group);
        if !used(0) {
            // No job has the general ones.
            groups[0].connections = 0;
        }
        Ok(Scenario {
            name,
            seed,
            urls: target.urls,
            trust: target.trust,
            start_tls: target.start_tls,
            slow_tls: target.slow_tls,
            arrivals,
            timeout,
            drain,
            threads: threads.map(|threads| threads as usize),
            phases,
            find,
            held: None,
            thresholds,
            text: String::new(),
            inputs: Vec::new(),
            share: (0, 1),
            sources,
            groups,
            jobs,
            monitors,
        })
    }

    /// Holds a rate for so long, warm-up apart, instead of what was read.
    pub(crate) fn hold(&mut self, rate: f64, length: Duration) {
        let level = Rate::Line { from: rate, to: rate };
        let warm_up = length.mul_f64(WARM_UP);
        self.phases = vec![
            Phase { length: warm_up, rate: level, record: false, most: None },
            Phase { length, rate: level, record: true, most: None },
        ];
        self.held = Some((rate, length));
    }

    /// Makes this the part of one agent of several.
    pub(crate) fn share_out(&mut self, agent: u64, agents: u64) {
        self.share = (agent, agents);
        self.sources.iter_mut().for_each(|source| source.share = (agent, agents));
    }

    /// The fewest connections that any of its jobs has.
    pub(crate) fn fewest_connections(&self) -> usize {
        let counts = self.groups.iter().map(|group| group.connections);
        counts.filter(|count| *count > 0).min().unwrap_or_default()
    }

    /// Adds a rule that must not come true.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn fail_if(&mut self, rule: &str) -> Result<(), Error> {
        let names: Vec<String> = self.job_names().map(str::to_owned).collect();
        let that = Rule::parse(rule, &names).map_err(Error::Usage)?;
        self.thresholds.push(Threshold { that, is_negated: true, abort_after: None });
        Ok(())
    }

    /// The names of its jobs.
    pub fn job_names(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().map(|job| job.name.as_str())
    }

    /// How long starts are made.
    #[must_use]
    pub fn length(&self) -> Duration {
        length(&self.phases)
    }

    /// Whether a job of these connections has steps on a second one.
    pub(crate) fn needs_second(&self, group: usize) -> bool {
        let on_second =
            |step: &Step| matches!(step, Step::Operation(operation) if operation.on_second);
        self.jobs.iter().any(|job| job.group == group && job.steps.iter().any(on_second))
    }

    /// Whether there is a job with a weight on these connections.
    pub(crate) fn has_work(&self, group: usize) -> bool {
        self.jobs.iter().any(|job| job.group == group && job.weight > 0.0)
    }

    /// A job by the weights of all, or of those on these connections.
    pub(crate) fn pick_job(&self, random: &mut fastrand::Rng, group: Option<usize>) -> usize {
        if self.jobs.len() == 1 {
            return 0;
        }
        let jobs = || {
            let jobs = self.jobs.iter().enumerate();
            jobs.filter(|(_, job)| group.is_none_or(|group| group == job.group))
        };
        let mut left = random.f64() * jobs().map(|(_, job)| job.weight).sum::<f64>();
        let mut last = 0;
        for (index, job) in jobs().filter(|(_, job)| job.weight > 0.0) {
            last = index;
            left -= job.weight;
            if left < 0.0 {
                break;
            }
        }
        last
    }

    /// How many sequences can be under way at a time.
    pub(crate) fn virtual_users(&self) -> usize {
        self.groups.iter().map(|group| group.connections * group.in_flight).sum()
    }

    /// Connections, without second ones.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.groups.iter().map(|group| group.connections).sum()
    }
}
