//! The bounds of a run in memory, in count and in time.

use std::time::Duration;

/// The longest answer that is read, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes that are asked for in one read.
pub const READ_BYTES: usize = 256 << 10;
/// Connections of one run, second ones included.
pub const CONNECTIONS_MAX: usize = 100_000;
/// Operations in flight on one connection.
pub const IN_FLIGHT_MAX: usize = 4_096;
/// Starts that wait for a free connection, on one thread. More are counted as not started.
pub const BACKLOG_MAX: usize = 4_000_000;
/// Threads of one run.
pub const THREADS_MAX: usize = 1_024;
/// The highest rate, in sequences a second.
pub const RATE_MAX: f64 = 1e8;
/// The longest that a phase may last.
pub const PHASE_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Phases of a scenario; a list of steps makes several.
pub const PHASES_MAX: usize = 1_000;
/// Jobs of a scenario.
pub const JOBS_MAX: usize = 100;
/// Steps of a job.
pub const STEPS_MAX: usize = 100;
/// Values in the texts of one job.
pub const VARIABLES_MAX: usize = 1_000;
/// A scenario, in bytes.
pub const SCENARIO_BYTES_MAX: u64 = 1 << 20;
/// A file of values, in bytes.
pub const VALUES_BYTES_MAX: u64 = 1 << 30;
/// A file of certificates, in bytes.
pub const CERTIFICATES_BYTES_MAX: u64 = 16 << 20;
/// A file with a password, in bytes.
pub const PASSWORD_BYTES_MAX: u64 = 4 << 10;
/// A result that is read again, in bytes.
pub const RESULT_BYTES_MAX: u64 = 256 << 20;
/// The longest random text.
pub const RANDOM_CHARACTERS_MAX: usize = 1 << 20;
/// The longest latency that a histogram tells apart from longer ones.
pub const LATENCY_MAX: Duration = Duration::from_secs(3_600);
/// How long all connections together may take to open before a run begins.
pub const CONNECT_MAX: Duration = Duration::from_secs(60);
/// The first pause after a connection could not be opened; each further one is twice as long.
pub const RETRY_FIRST: Duration = Duration::from_millis(10);
/// The longest of these pauses.
pub const RETRY_MAX: Duration = Duration::from_millis(200);
/// How often is looked whether an operation has run out of time.
pub const TIMEOUT_LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long an interrupted run waits for answers that are due.
pub const INTERRUPTED_DRAIN_MAX: Duration = Duration::from_secs(1);
/// Seconds that a result has a line of each for; later ones are in the sums only.
pub const SECONDS_KEPT_MAX: usize = 200_000;
/// The share of a core above which a thread of ours may have been the limit.
pub const BUSY_SHARE: f64 = 0.9;
/// How late our own starts may be (p99) before we may have been the limit.
pub const LAG_MAX: Duration = Duration::from_millis(1);
/// After how many seconds of a run is looked whether there is any use in going on.
pub const FUTILE_AFTER_S: u64 = 3;
/// The share of failures above which there is none.
pub const FUTILE_SHARE: f64 = 0.95;
/// Users that are asked of a server where no option says who they are.
pub const USERS_ASKED_MAX: u32 = 1_000;
/// Bytes of their names.
pub const USERS_ASKED_BYTES_MAX: usize = 256 << 10;
/// How long one trial of a job may take before a run.
pub const TRIAL_MAX: Duration = Duration::from_secs(30);
/// Probes of one search for the knee.
pub const PROBES_MAX: usize = 64;
/// Kinds of failure of one job that are told apart, each with a histogram of 200 KiB.
pub const FAULT_KINDS_MAX: usize = 64;
/// Monitors of a scenario.
pub const MONITORS_MAX: usize = 32;
/// Attributes that one of them looks at.
pub const MONITOR_ATTRIBUTES_MAX: usize = 16;
/// How often a monitor looks.
pub const MONITOR_EVERY: Duration = Duration::from_secs(1);
/// How long a monitor waits for an answer.
pub const MONITOR_PATIENCE: Duration = Duration::from_secs(2);
/// How long a change may take to be seen elsewhere.
pub const REPLICATION_MAX: Duration = Duration::from_secs(30);
/// Agents of one run.
pub const AGENTS_MAX: usize = 256;
/// A message between an agent and the hub that has called it, in bytes.
pub const AGENT_MESSAGE_BYTES_MAX: usize = 64 << 20;
/// How long an agent tries to reach who has called it.
pub const AGENT_CONNECT_MAX: Duration = Duration::from_secs(5);
/// Those that call at a time and have not said yet who they are.
pub const AGENTS_GREETED_MAX: usize = 64;
/// How long one of the two may say nothing before it counts as lost.
pub const AGENT_SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often who has called an agent makes sure of it.
pub const AGENT_PING_EVERY: Duration = Duration::from_secs(2);
/// From all agents' being ready to the first start.
pub const AGENT_HEAD_START: Duration = Duration::from_millis(500);
/// How often clocks are compared; the quickest answer counts.
pub const AGENT_CLOCK_LOOKS: usize = 8;
/// How long an agent waits before it calls again.
pub const AGENT_CALL_EVERY: Duration = Duration::from_secs(1);

/// From one look for a server that is waited for to the next.
pub const WAIT_PAUSE: Duration = Duration::from_millis(200);
