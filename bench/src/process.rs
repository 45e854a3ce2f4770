//! A server under measurement: started, watched, stopped.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

/// A child process that is ended (SIGTERM, then waited for) when dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Process, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|why| format!("cannot start {name}: {why}"))?;
        Ok(Process { child })
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Processor time of all living threads of these processes so far, to the nanosecond where the kernel
/// keeps it (schedstat), else in ticks of 10 ms.
pub fn processor_time(processes: &[u32]) -> Duration {
    processes.iter().map(|process| of_one(*process)).sum()
}

fn of_one(process: u32) -> Duration {
    let tasks = format!("/proc/{process}/task");
    let of = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    let nanoseconds = match fs::read_dir(tasks) {
        Ok(tasks) => tasks.flatten().filter_map(of).sum(),
        Err(_) => 0,
    };
    match nanoseconds {
        0 => ticks(process),
        n => Duration::from_nanos(n),
    }
}

fn ticks(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // utime and stime of proc(5).
    both(&stat, 14)
}

/// Processor time of all children that were waited for, in ticks of 10 ms.
pub fn children_time() -> Duration {
    // cutime and cstime of proc(5).
    both(&fs::read_to_string("/proc/self/stat").unwrap_or_default(), 16)
}

/// Two times in ticks, of which the first is this field of proc(5), counted from 1.
fn both(stat: &str, first: usize) -> Duration {
    // The name is the second, and may have blanks in it.
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let field = |n: usize| after_name.split(' ').nth(n).and_then(|t| t.parse::<u64>().ok());
    let ticks = field(first - 3).unwrap_or(0) + field(first - 2).unwrap_or(0);
    Duration::from_millis(10 * ticks)
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(id) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(id)
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
