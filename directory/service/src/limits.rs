//! How long the processes wait for one another, and what they keep of the system.

use keyway_ldapd::Limits;
use rustix::process::{Resource, getrlimit};
use std::time::Duration;

/// Room that is kept for a start of cryptod on a full disk, in bytes: a file system may want a whole group of
/// inodes to make its socket.
pub const START_RESERVE_BYTES: u64 = 1 << 20;
/// Files that a server has open beside its connections: store, logs, listeners, connections that are
/// making room for others (64), and room to spare.
pub const FILES_BESIDE_CONNECTIONS: usize = 128;
/// How long a start waits for the cryptod that it is a client of, and how often it looks.
pub const CRYPTOD_WAIT: Duration = Duration::from_secs(5);
/// See [`CRYPTOD_WAIT`].
pub const CRYPTOD_LOOK_EVERY: Duration = Duration::from_millis(50);
/// The pause before a process that has ended is started again for the second time in a row; each further
/// one is twice as long. The first time there is none.
pub const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// How often in a row a process is started again.
pub const RESTARTS_MAX: u32 = 6;
/// For how long a process has to serve so that its end is not in a row with those before.
pub const RESTART_FORGET: Duration = Duration::from_secs(10);
/// The pause before ldapd opens a store again that takes no more changes: a full disk may do that again and again,
/// and what is in the store is to be read meanwhile.
pub const STORE_AGAIN_PAUSE: Duration = Duration::from_secs(2);
/// How often its supervisor looks whether it has.
pub const ALIVE_LOOK_EVERY: Duration = Duration::from_secs(4);
/// After how many looks at which it has said nothing it counts as hung, and is killed. A machine that was
/// asleep makes one of them at most.
pub const SILENT_LOOKS_MAX: u32 = 3;
/// After how many of these it is killed once it was asked to end: what ends in good order may have
/// much to do, and says meanwhile that it is alive.
pub const SILENT_LOOKS_ENDING_MAX: u32 = 8;
/// How often a cryptod that runs separately is checked to be there.
pub const OTHER_CRYPTOD_LOOK_EVERY: Duration = Duration::from_secs(5);
/// How much of it `cn=monitor` shows.
pub const HISTORY_MONITORED_MAX: usize = 50;
/// How long a command that reads beside a server waits for one that is starting.
pub const START_WAIT: Duration = Duration::from_secs(10);
/// How long a command waits for a server to say whether it takes its configuration.
pub const RELOAD_WAIT: Duration = Duration::from_secs(30);
/// How often a command looks whether a server that starts or reloads has got so far.
pub const RELOAD_LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a command that follows the feed looks for changes.
pub const FEED_LOOK_EVERY: Duration = Duration::from_millis(200);
/// Bytes of the feed after which they are shown, before the store is read on.
pub const FEED_PIECE_BYTES: u64 = 1 << 20;
/// How often a command that waits looks whether it is to end.
pub const STOP_LOOK_EVERY: Duration = Duration::from_millis(100);
/// Tasks over LDAP that wait; one more is refused.
pub const TASKS_WAITING_MAX: usize = 16;
/// Tasks that have ended and are shown still.
pub const TASKS_KEPT_MAX: usize = 64;
/// Findings of a task that are told one by one.
pub const TASK_RESULT_LINES_MAX: usize = 100;
/// Bytes of an export that are gathered before the system is called.
pub const TASK_BUFFER_BYTES: usize = 256 << 10;
/// How long the end of a server waits for the end of a task.
pub const TASK_END_WAIT: Duration = Duration::from_secs(5);
/// Bytes of the feed after which a segment of a backup ends.
pub const SEGMENT_BYTES: usize = 16 << 20;
/// How often files of certificates are looked at.
pub const CERTIFICATES_LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long the other daemon of a take-over may take before it is said that it is waited for.
pub const TAKE_OVER_SAY_AFTER: Duration = Duration::from_secs(5);
/// After how many of these one that is to start and does nothing is killed.
pub const IDLE_LOOKS_STARTING_MAX: u32 = 8;

/// Lowers the number of connections to what this process may have of open files, so that connections make
/// room for others before the system refuses one. A line that says so, if it had to be lowered.
pub fn fit_open_files(limits: &mut Limits) -> Option<String> {
    // Without a limit there is no number.
    let files = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    fit(limits, files)
}

fn fit(limits: &mut Limits, files: usize) -> Option<String> {
    let connections_max = limits.connections_max;
    let beside = limits.connections_reserved.saturating_add(FILES_BESIDE_CONNECTIONS);
    let needed = connections_max.saturating_add(beside);
    if files >= needed {
        return None;
    }
    limits.connections_reserved = limits.connections_reserved.min(files / 8);
    let beside = limits.connections_reserved.saturating_add(FILES_BESIDE_CONNECTIONS);
    limits.connections_max = files.saturating_sub(beside).max(1);
    Some(format!(
        "the system lets this process have {files} files open, and connections_max = \
         {connections_max} needs {needed}: it serves {} connections at once. Raise the limit (ulimit \
         -Hn, LimitNOFILE= of a systemd unit) or lower connections_max",
        limits.connections_max
    ))
}
/// Most bytes of a file with certificates for a key.
pub const CHAIN_INPUT_BYTES_MAX: usize = 256 << 10;

/// Between two starts of a vhost-user device that ends, at first and at most; each is twice as long as the one before.
pub const DEVICE_PAUSE_MIN: Duration = Duration::from_millis(50);
/// See [`DEVICE_PAUSE_MIN`].
pub const DEVICE_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Lines that are said of one vhost-user device in this time.
pub const DEVICE_SAID: Duration = Duration::from_secs(60);
/// See [`DEVICE_SAID`].
pub const DEVICE_SAID_LINES: u32 = 16;
