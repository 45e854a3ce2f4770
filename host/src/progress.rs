//! How far a long piece of work is: a bar on standard error, where that is a terminal.

use crate::output::grouped;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::time::Instant;

/// A bar. It draws itself at most twenty times a second, and not at all into a file or a pipe.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Work on this many bytes; `None` if their number is not known.
    pub fn bytes(what: &'static str, total: Option<u64>) -> Progress {
        match total {
            Some(total) => Progress::new(
                what,
                Some(total),
                "{prefix} [{bar:30}] {percent}%  {bytes} of {total_bytes}  {msg}",
            ),
            None => Progress::new(what, None, "{prefix} {spinner} {bytes}  {msg}"),
        }
    }

    /// Work on this many entries.
    pub fn entries(what: &'static str, total: u64) -> Progress {
        Progress::new(what, Some(total), "{prefix} [{bar:30}] {percent}%  {msg}")
    }

    /// Work in this many steps.
    pub fn steps(what: &'static str, total: u64) -> Progress {
        Progress::new(what, Some(total), "{prefix} [{bar:30}] {percent}%  {msg}")
    }

    fn new(what: &'static str, total: Option<u64>, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        Progress { bar, started: Instant::now() }
    }

    /// So far: the position in bytes or entries, and the records (an entry or a change each).
    pub fn at(&self, position: u64, records: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let rate = records as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!("{} records, {}/s", grouped(records), grouped(rate as u64)));
        self.bar.set_position(position);
    }

    /// It turns out that there are this many steps.
    pub fn of(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// So far: the steps that are done, and what is being done now.
    pub fn step(&self, done: u64, now: impl Display) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_message(now.to_string());
        self.bar.set_position(done);
    }

    /// Writes something else to the terminal.
    pub fn aside<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
