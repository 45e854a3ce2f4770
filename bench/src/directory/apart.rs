//! A server on one core and its clients on another, as if these were on another machine.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::thread::available_parallelism;

/// Processes that are held apart, until this is dropped.
pub struct Apart {
    servers: Vec<u32>,
    before: CpuSet,
}

/// Whether there are cores enough.
pub fn is_possible() -> bool {
    available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

impl Apart {
    /// Puts all threads of these processes on the first core that this one may use, and this thread and those that
    /// it starts on the second.
    pub fn put(servers: &[u32]) -> Result<Apart, String> {
        let before = sched_getaffinity(None).map_err(|why| format!("the cores: {why}"))?;
        let cores: Vec<usize> =
            (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core)).take(2).collect();
        let [first, second] = cores.as_slice() else { return Err("there is one core only".into()) };
        let apart = Apart { servers: servers.to_vec(), before };
        for server in servers {
            put_threads(*server, &only(*first))?;
        }
        sched_setaffinity(None, &only(*second)).map_err(|why| format!("core {second}: {why}"))?;
        Ok(apart)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // What cannot be undone makes later figures worse, and is seen there.
        let _ = sched_setaffinity(None, &self.before);
        for server in &self.servers {
            let _ = put_threads(*server, &self.before);
        }
    }
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

fn put_threads(process: u32, cores: &CpuSet) -> Result<(), String> {
    let wrong = |why: &dyn std::fmt::Display| format!("the threads of process {process}: {why}");
    for thread in fs::read_dir(format!("/proc/{process}/task")).map_err(|why| wrong(&why))? {
        let name = thread.map_err(|why| wrong(&why))?.file_name();
        let id = name.to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
        sched_setaffinity(Some(id.ok_or_else(|| wrong(&"no number"))?), cores)
            .map_err(|why| wrong(&why))?;
    }
    Ok(())
}
