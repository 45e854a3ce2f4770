//! Counts of all events. Tallies of threads and of seconds are added up, histograms and all: no
//! percentile is ever made of percentiles.

use crate::latencies::{Latencies, add, buckets, latencies};
use crate::limits::FAULT_KINDS_MAX;
use crate::scenario::{Job, Scenario};
use keyway_codec::message::ResultCode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How a sequence failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// The server answered with a result code that was not expected.
    Code(u32),
    /// With further codes, after [`FAULT_KINDS_MAX`] kinds of failure.
    OtherCodes,
    /// It answered as if all was well, but without any of the entries that there are.
    Empty,
    /// With too few or too many of them.
    WrongEntries,
    /// No entry had the value that one should have.
    WrongValue,
    /// It sent what is not LDAP, or answers another question.
    Malformed,
    /// It closed the connection instead of answering.
    Disconnected,
    /// It did not let us connect.
    Refused,
    /// Our own machine had no port left for another connection.
    NoPorts,
    /// A connection was not open in time.
    ConnectTimedOut,
    /// TLS did not come about.
    TlsFailed,
    /// It did not in time.
    TlsTimedOut,
    /// The bind that the connection begins with was refused.
    BindRefused(u32),
    /// No answer in time.
    TimedOut,
    /// No answer until the run's end.
    Unanswered,
    /// Not begun until the run's end: no connection was free.
    Unstarted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Fault::Code(code) => return write!(f, "{}", ResultCode::from_code(*code)),
            Fault::BindRefused(code) => {
                return write!(f, "connection's bind: {}", ResultCode::from_code(*code));
            }
            Fault::OtherCodes => "further result codes",
            Fault::Empty => "empty answer",
            Fault::WrongEntries => "wrong number of entries",
            Fault::WrongValue => "wrong value",
            Fault::Malformed => "malformed answer",
            Fault::Disconnected => "disconnected",
            Fault::Refused => "connection refused",
            Fault::NoPorts => "no local port left",
            Fault::ConnectTimedOut => "connect timed out",
            Fault::TlsFailed => "TLS failed",
            Fault::TlsTimedOut => "TLS timed out",
            Fault::TimedOut => "timed out",
            Fault::Unanswered => "unanswered at the end",
            Fault::Unstarted => "not started",
        };
        f.write_str(name)
    }
}

/// Sequences that failed alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failed {
    /// How many.
    pub count: u64,
    /// How long after their intended starts.
    #[serde(with = "buckets")]
    pub latencies: Latencies,
}

/// The counts of one job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobTally {
    /// Starts that came due.
    pub due: u64,
    /// Those that were made.
    pub started: u64,
    /// Sequences that went right: the time from the intended start to the last answer.
    #[serde(with = "buckets")]
    pub response: Latencies,
    /// Those of them that were done before the last start.
    pub in_time: u64,
    /// For each step the time from the request to its answer, right or wrong.
    #[serde(with = "buckets::list")]
    pub service: Vec<Latencies>,
    /// Sequences that failed, by step and reason.
    pub failed: BTreeMap<(usize, Fault), Failed>,
}

impl JobTally {
    fn new(steps: usize) -> JobTally {
        JobTally {
            due: 0,
            started: 0,
            response: latencies(),
            in_time: 0,
            service: (0..steps).map(|_| latencies()).collect(),
            failed: BTreeMap::new(),
        }
    }

    /// Counts one that failed.
    pub(crate) fn fail(&mut self, step: usize, fault: Fault, after_ns: u64) {
        let failed = self.kind(step, fault);
        failed.count += 1;
        failed.latencies.saturating_record(after_ns);
    }

    /// Those that failed alike. Codes are the server's to choose, and so have a limit.
    fn kind(&mut self, step: usize, fault: Fault) -> &mut Failed {
        let is_new = !self.failed.contains_key(&(step, fault));
        let fault = match fault {
            Fault::Code(_) if is_new && self.failed.len() >= FAULT_KINDS_MAX => Fault::OtherCodes,
            fault => fault,
        };
        let new = || Failed { count: 0, latencies: latencies() };
        self.failed.entry((step, fault)).or_insert_with(new)
    }

    /// How many failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.failed.values().map(|failed| failed.count).sum()
    }

    /// Adds another tally of the same job.
    pub(crate) fn add(&mut self, more: &JobTally) {
        self.due += more.due;
        self.started += more.started;
        self.in_time += more.in_time;
        add(&mut self.response, &more.response);
        for (sum, more) in self.service.iter_mut().zip(&more.service) {
            add(sum, more);
        }
        for ((step, fault), more) in &more.failed {
            let sum = self.kind(*step, *fault);
            sum.count += more.count;
            add(&mut sum.latencies, &more.latencies);
        }
    }
}

/// The counts of a phase, job by job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhaseTally {
    /// In the order of the scenario.
    pub jobs: Vec<JobTally>,
}

impl PhaseTally {
    pub(crate) fn new(scenario: &Scenario) -> PhaseTally {
        let jobs = scenario.jobs.iter().map(|job| JobTally::new(job.steps.len())).collect();
        PhaseTally { jobs }
    }

    pub(crate) fn add(&mut self, more: &PhaseTally) {
        for (sum, more) in self.jobs.iter_mut().zip(&more.jobs) {
            sum.add(more);
        }
    }

    /// All jobs' response times in one.
    #[must_use]
    pub fn response(&self) -> Latencies {
        let mut all = latencies();
        for job in &self.jobs {
            add(&mut all, &job.response);
        }
        all
    }

    /// How many sequences failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.jobs.iter().map(JobTally::errors).sum()
    }

    /// How many starts came due.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.jobs.iter().map(|job| job.due).sum()
    }

    /// How many sequences went right.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.jobs.iter().map(|job| job.response.len()).sum()
    }
}

/// The counts of connections.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectionTally {
    /// Those that were ready to be used, and how long that took, with TLS and bind.
    #[serde(with = "buckets")]
    pub opening: Latencies,
    /// TLS handshakes of full length.
    pub tls_full: u64,
    /// Those that resumed a session.
    pub tls_resumed: u64,
    /// How long they took.
    #[serde(with = "buckets")]
    pub tls: Latencies,
    /// Those that took longer than is thought right.
    pub tls_slow: u64,
    /// Attempts that failed.
    pub not_opened: u64,
    /// Connections that the server closed while we wanted them.
    pub lost: u64,
    /// Answers that came after their operation had timed out.
    pub late_answers: u64,
    /// Bytes of LDAP received.
    pub bytes_in: u64,
    /// Bytes of LDAP sent.
    pub bytes_out: u64,
    /// Entries received.
    pub entries: u64,
}

impl ConnectionTally {
    pub(crate) fn new() -> ConnectionTally {
        ConnectionTally {
            opening: latencies(),
            tls_full: 0,
            tls_resumed: 0,
            tls: latencies(),
            tls_slow: 0,
            not_opened: 0,
            lost: 0,
            late_answers: 0,
            bytes_in: 0,
            bytes_out: 0,
            entries: 0,
        }
    }

    fn counts(&self) -> [u64; 9] {
        let (full, resumed, slow) = (self.tls_full, self.tls_resumed, self.tls_slow);
        let (not_opened, lost, late) = (self.not_opened, self.lost, self.late_answers);
        let (read, sent) = (self.bytes_in, self.bytes_out);
        [full, resumed, slow, not_opened, lost, late, read, sent, self.entries]
    }

    pub(crate) fn add(&mut self, more: &ConnectionTally) {
        add(&mut self.opening, &more.opening);
        add(&mut self.tls, &more.tls);
        self.tls_full += more.tls_full;
        self.tls_resumed += more.tls_resumed;
        self.tls_slow += more.tls_slow;
        self.not_opened += more.not_opened;
        self.lost += more.lost;
        self.late_answers += more.late_answers;
        self.bytes_in += more.bytes_in;
        self.bytes_out += more.bytes_out;
        self.entries += more.entries;
    }
}

/// The counts of one thread in one second.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SecondTally {
    pub(crate) thread: usize,
    /// Seconds from the run's beginning.
    pub(crate) second: u64,
    /// Sequences that ended in it, by the phase that they were to start in.
    pub(crate) phases: Vec<Option<PhaseTally>>,
    pub(crate) connections: ConnectionTally,
    /// How late we noticed that a start was due.
    #[serde(with = "buckets")]
    pub(crate) lag: Latencies,
    /// Processor time of the thread.
    pub(crate) cpu_ns: u64,
    /// How long it is about.
    pub(crate) length_ns: u64,
    /// Starts that wait for a connection.
    pub(crate) backlog: usize,
}

impl SecondTally {
    pub(crate) fn new(thread: usize, second: u64, scenario: &Scenario) -> SecondTally {
        SecondTally {
            thread,
            second,
            phases: scenario.phases.iter().map(|_| None).collect(),
            connections: ConnectionTally::new(),
            lag: latencies(),
            cpu_ns: 0,
            length_ns: 0,
            backlog: 0,
        }
    }

    /// The tally of a job in a phase.
    pub(crate) fn job(&mut self, scenario: &Scenario, phase: usize, job: usize) -> &mut JobTally {
        let phase = self.phases[phase].get_or_insert_with(|| PhaseTally::new(scenario));
        &mut phase.jobs[job]
    }

    /// Whether it is of this scenario, and has numbers that can be added up: an agent could say anything.
    pub(crate) fn fits(&self, scenario: &Scenario) -> bool {
        const MAX: u64 = 1 << 48;
        let job_fits = |(tally, job): (&JobTally, &Job)| {
            let steps = job.steps.len();
            let counts = [tally.due, tally.started, tally.in_time];
            tally.service.len() == steps
                && counts.iter().all(|count| *count < MAX)
                && tally.failed.len() <= FAULT_KINDS_MAX + 32 * steps
                && tally
                    .failed
                    .iter()
                    .all(|((step, _), failed)| *step < steps && failed.count < MAX)
        };
        let phase_fits = |phase: &PhaseTally| {
            phase.jobs.len() == scenario.jobs.len()
                && phase.jobs.iter().zip(&scenario.jobs).all(job_fits)
        };
        let ours = [self.cpu_ns, self.length_ns, self.backlog as u64];
        self.phases.len() == scenario.phases.len()
            && self.phases.iter().flatten().all(phase_fits)
            && ours.iter().chain(&self.connections.counts()).all(|count| *count < MAX)
    }
}
