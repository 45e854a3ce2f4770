//! A process that `keyway up` has started: this program again, which knows of its supervisor.

use crate::limits::{IDLE_LOOKS_STARTING_MAX, SILENT_LOOKS_ENDING_MAX, SILENT_LOOKS_MAX};
use keyway_host::failure::{Failure, plain};
use keyway_host::supervised::{self, Inherited, MOVED, Moved, READY, RELOAD};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

/// The exit status of a program of ours that has panicked.
const PANICKED: i32 = 101;
/// Variables of an init system: they are meant for this process only.
const OF_THE_INIT_SYSTEM: [&str; 4] =
    ["NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// This program, to be started again.
pub struct Program {
    path: PathBuf,
    called: OsString,
}

impl Program {
    /// # Errors
    /// If the system does not say where it is.
    pub fn new() -> Result<Program, Failure> {
        let path = std::env::current_exe()
            .map_err(|why| Failure::new(format!("cannot find this program: {}", plain(&why))))?;
        let called = std::env::args_os().next().unwrap_or_else(|| path.clone().into());
        Ok(Program { path, called })
    }

    /// A command of it.
    pub fn command(&self, name: &str) -> Command {
        // It may have been replaced since, or taken away.
        let path = if self.path.exists() { self.path.clone() } else { "/proc/self/exe".into() };
        let mut command = Command::new(path);
        command.arg0(&self.called).arg(name);
        for name in OF_THE_INIT_SYSTEM {
            command.env_remove(name);
        }
        command
    }
}

/// The exit status of a process that has ended by itself.
pub fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// A running process.
pub struct Process {
    child: Child,
    channel: UnixStream,
    /// The channel again, to wait for its messages.
    waiting: tokio::net::UnixStream,
    /// Since when it serves.
    serves: Option<Instant>,
    /// Looks in a row at which it had said nothing since the one before.
    silent: u32,
    /// Looks in a row at which it had done nothing, and the processor time that it had taken by the last one.
    idle: u32,
    worked: Option<u64>,
    /// It may wait for something from outside before it is ready.
    may_wait: bool,
    /// It has said that it listens where it was told to, and the supervisor has not asked yet.
    has_moved: bool,
}

impl Process {
    /// Starts a command, and leaves these files open for it; `inherited` tells it their numbers, and
    /// is given that of its end of the channel.
    ///
    /// The process ends with the thread that calls this.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        mut command: Command,
        files: &[BorrowedFd<'_>],
        inherited: impl FnOnce(i32) -> Inherited,
    ) -> io::Result<Process> {
        let (channel, its) = UnixStream::pair()?;
        channel.set_nonblocking(true)?;
        // To close one that came with a byte could take as long as a process that was taken over likes.
        let _ = keyway_ring::refuse_files(&channel);
        let waiting = tokio::net::UnixStream::from_std(channel.try_clone()?)?;
        let inherited = serde_json::to_string(&inherited(its.as_raw_fd()))?;
        command.arg("--inherited").arg(inherited);
        let all: Vec<_> = files.iter().copied().chain([its.as_fd()]).collect();
        // No other thread starts a process meanwhile.
        all.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::empty()))?;
        let child = command.spawn();
        all.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::CLOEXEC))?;
        Ok(Process {
            child: child?,
            channel,
            waiting,
            serves: None,
            silent: 0,
            idle: 0,
            worked: None,
            may_wait: false,
            has_moved: false,
        })
    }

    /// Before it is ready it may wait for as long as a source that it reads likes: it does not count as
    /// hung then.
    pub fn let_wait(&mut self) {
        self.may_wait = true;
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How long it has served.
    pub fn served(&self) -> Duration {
        self.serves.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits until it is ready; `false` if it ends before.
    pub async fn ready(&mut self) -> bool {
        let mut said = [0];
        while self.serves.is_none() {
            match self.waiting.read(&mut said).await {
                Ok(1) => self.hear(&said),
                _ => return false,
            }
        }
        true
    }

    /// Whether it has been ready by now.
    pub fn was_ready(&mut self) -> bool {
        self.listen();
        self.serves.is_some()
    }

    /// Whether it hangs: it serves and has said nothing for long, or is to start and has done nothing. To be
    /// asked every [`ALIVE_LOOK_EVERY`](crate::limits::ALIVE_LOOK_EVERY).
    pub fn hangs(&mut self) -> bool {
        self.silent += 1;
        self.listen();
        match self.serves {
            Some(_) => self.silent > SILENT_LOOKS_MAX,
            None => !self.may_wait && self.is_idle(),
        }
    }

    /// A start may take long (an import, an index) and says nothing meanwhile, but it works or waits for
    /// the disk.
    fn is_idle(&mut self) -> bool {
        // Where /proc does not show it, nothing is known.
        let Some(Work { ticks, waits_for_disk }) = work_of(self.child.id()) else { return false };
        let works = self.worked.replace(ticks) != Some(ticks) || waits_for_disk;
        self.idle = if works { 0 } else { self.idle + 1 };
        self.idle > IDLE_LOOKS_STARTING_MAX
    }

    /// Whether a process that was asked to end hangs: it may take longer.
    pub fn hangs_ending(&mut self) -> bool {
        self.silent += 1;
        self.listen();
        self.silent > SILENT_LOOKS_ENDING_MAX
    }

    /// Kills one that hangs.
    pub fn kill(&mut self) {
        // One that has ended meanwhile is noticed as ever.
        let _ = self.child.kill();
    }

    /// Hears all that it has said by now.
    fn listen(&mut self) {
        let mut said = [0; 64];
        while let Ok(bytes @ 1..) = (&self.channel).read(&mut said) {
            self.hear(&said[..bytes]);
        }
    }

    fn hear(&mut self, said: &[u8]) {
        self.silent = 0;
        if said.contains(&READY) {
            self.serves.get_or_insert_with(Instant::now);
        }
        self.has_moved |= said.contains(&MOVED);
    }

    /// Has it read its files again, and gives it listeners that are elsewhere now.
    pub fn reload(&self, moved: &Moved) {
        let all = moved.messages().into_iter().chain([(RELOAD, None)]);
        // One that is so far behind has enough to do.
        for (said, file) in all {
            let _ = supervised::say(&self.channel, said, file);
        }
    }

    /// Waits until it says that it listens there. It does not return if the process ends.
    pub async fn moved(&mut self) {
        let mut said = [0; 64];
        while !std::mem::take(&mut self.has_moved) {
            match self.waiting.read(&mut said).await {
                Ok(bytes @ 1..) => self.hear(&said[..bytes]),
                _ => std::future::pending().await,
            }
        }
    }

    /// Asks for an end in good order.
    pub fn ask_to_end(&self) {
        let _ = self.channel.shutdown(std::net::Shutdown::Write);
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for the end of one that has closed its channel.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// The failure that it told of, if its output comes here: the error and the exit status.
    pub fn failure(&mut self) -> Option<Failure> {
        let mut said = String::new();
        self.child.stdout.take()?.read_to_string(&mut said).ok()?;
        let said: Value = serde_json::from_str(said.lines().last()?).ok()?;
        let status = said["status"].as_u64().and_then(|status| u8::try_from(status).ok());
        Some(Failure::with_status(said["error"].as_str()?, status?))
    }
}

/// The state of a process.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    /// The processor time that it has taken, in ticks.
    ticks: u64,
    /// A thread of it waits for a disk.
    waits_for_disk: bool,
}

/// The state of a process, by proc_pid_stat(5); `None` where it does not.
fn work_of(id: u32) -> Option<Work> {
    // The state and what follows are behind the name, which is in brackets.
    let stat = |path: PathBuf| Some(fs::read_to_string(path).ok()?.rsplit_once(") ")?.1.to_owned());
    let folder = PathBuf::from(format!("/proc/{id}"));
    let whole = stat(folder.join("stat"))?;
    let mut times = whole.split(' ').skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    let mut threads = fs::read_dir(folder.join("task")).ok()?.flatten();
    let waits_for_disk = threads
        .any(|thread| stat(thread.path().join("stat")).is_some_and(|stat| stat.starts_with('D')));
    Some(Work { ticks, waits_for_disk })
}

/// Whether a process did not end by itself.
pub fn is_crash(status: ExitStatus) -> bool {
    status.code().is_none_or(|code| code == PANICKED)
}

/// How a process has ended, in words.
pub fn words(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(0)) => "has ended".to_owned(),
        (None, Some(PANICKED)) => "has panicked".to_owned(),
        (None, code) => format!("has ended with status {}", code.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_does_is_seen() {
        let own = || work_of(std::process::id()).unwrap().ticks;
        let before = own();
        while own() == before {
            std::hint::black_box([0_u8; 4096]);
        }
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(work_of(child.id()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(work_of(child.id()), None);
    }
}
