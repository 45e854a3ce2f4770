//! `keyway log`: what a server has written down, chosen, or summed up.

use crate::value::{count, moment, size_within};
use clap::{Args, ValueEnum};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::show_unix_us;
use keyway_log::{LineCounts, Reader, Report, Selection, Summary};
use std::path::PathBuf;

/// Show what the logs say, or sum it up
///
/// Reads DIR/log/access.log, error.log and audit.log and those that were put aside (NAME.log.1 and so on),
/// in either form, in the order of time. A server may be writing them. Lines that went into systemd's
/// journal are read with --file - from journalctl -o cat or -o json.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  keyway log --since 1h
      all of the last hour
  keyway log --of audit --where dn=uid=eve,ou=People,dc=example,dc=com
      who changed an entry, and when
  keyway log --of access --where result=49 --since 2026-11-24T08 --until 2026-11-24T09
      binds that failed in that hour (times are UTC)
  keyway log failed-binds --since 1d
      by address and bind DN
  keyway log slowest
      the ten slowest kinds of search, and where their time went (access = \"everything\" writes all
      of them down)
  keyway log --slow 250 --since 1d
      operations that took a quarter of a second or longer
  keyway log changes --json
      who changed how much, for programs
  tail -F keyway-data/log/access.log | keyway log --file - --where from=10.0.0.7
      as they come
  journalctl -u keyway -o cat | keyway log failed-binds --file -
      out of the journal (to = \"journal\")

An operation's time_us is from the last byte of its request to its answer. What of it went where:
  queue_us    waiting: behind other requests, for the turn of a password check, for the committer
  plan_us     understanding it; rights and the choice of indexes
  store_us    reading entries and making answers of them; of a change, its transaction and sync
  crypto_us   checking and hashing passwords
  write_us    waiting until the client took answers; of what had to wait, the way back
A stage of less than a microsecond is left out.")]
pub struct Log {
    /// The lines, or a summary of them
    #[arg(value_enum, default_value = "lines")]
    pub what: What,
    /// The data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub data: PathBuf,
    /// Read these files instead of the data folder's, in this order; - is standard input
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Lines of these logs only
    #[arg(long = "of", value_enum, value_name = "LOG")]
    pub of: Vec<Which>,
    /// From this time on: RFC 3339 or its beginning (2026-11-24T08 is UTC), or so long ago (30s, 15m, 2h, 7d)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<String>,
    /// Up to this time, in the same forms
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<String>,
    /// Only lines whose field has this text in it; the event's name is the field "event"
    #[arg(long = "where", value_name = "FIELD=TEXT", value_parser = field)]
    pub fields: Vec<(String, String)>,
    /// Only operations that took at least so many milliseconds
    #[arg(long, value_name = "MS", value_parser = count)]
    pub slow: Option<u64>,
    /// How many rows of a summary
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = size_within::<0, { u64::MAX }>)]
    pub top: usize,
    /// A line of JSON for each
    #[arg(long)]
    pub json: bool,
}

/// The lines, or a summary of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The lines themselves
    Lines,
    /// Binds that failed, by address and bind DN
    FailedBinds,
    /// Kinds of search by the longest that one of them took, with the mean of each stage
    Slowest,
    /// Changes, by who made them and what they were
    Changes,
}

/// One of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// The requests of clients
    Access,
    /// The events of the server itself
    Error,
    /// Who changed what
    Audit,
}

impl Which {
    const ALL: [Which; 3] = [Which::Access, Which::Error, Which::Audit];

    fn name(self) -> &'static str {
        match self {
            Which::Access => "access",
            Which::Error => "error",
            Which::Audit => "audit",
        }
    }
}

/// Shows what is asked for.
///
/// # Errors
/// If there is no log, one cannot be read, or nothing reads what is shown.
pub fn run(arguments: &Log) -> Result<(), Failure> {
    let Log { since, until, fields, slow, .. } = arguments.clone();
    let selection = Selection { since, until, fields, slow_ms: slow };
    let mut reader = reader(arguments)?;
    let is_of =
        |log: &str| arguments.of.is_empty() || arguments.of.iter().any(|it| it.name() == log);
    let mut report = match arguments.what {
        What::Lines => None,
        What::FailedBinds => Some(Report::new(Summary::FailedBinds)),
        What::Slowest => Some(Report::new(Summary::Slowest)),
        What::Changes => Some(Report::new(Summary::Changes)),
    };
    while let Some(line) = reader.next_line()? {
        // A file that was named may have lines of any log.
        if !is_of(&line.log) || !selection.takes(&line) {
            continue;
        }
        match &mut report {
            Some(report) => report.add(&line),
            None if arguments.json => output::json(&line.json())?,
            None => output::text(&line.text)?,
        }
    }
    if let Some(report) = report {
        show(&report, arguments)?;
    }
    tell_of_strange(reader.counts(), arguments)
}

/// Files that were named may be of another kind, or be compressed.
fn tell_of_strange(counts: LineCounts, arguments: &Log) -> Result<(), Failure> {
    let LineCounts { understood, strange } = counts;
    if understood == 0 && strange > 0 && !arguments.files.is_empty() {
        return Err(Failure::new(
            "no line is one of a Keyway log; is it another file, or compressed? (zcat FILE | keyway log --file -)",
        ));
    }
    if strange > 0 {
        output::note(format_args!(
            "{} lines are none of a log, and were passed over",
            output::grouped(strange)
        ));
    }
    Ok(())
}

fn reader(arguments: &Log) -> Result<Reader, Failure> {
    if !arguments.files.is_empty() {
        return Ok(Reader::of_files(&arguments.files));
    }
    data::may_look(&arguments.data)?;
    let folder = arguments.data.join(name::LOG);
    let of = if arguments.of.is_empty() { &Which::ALL[..] } else { &arguments.of };
    Reader::of_folder(&folder, of.iter().map(|which| which.name())).ok_or_else(|| {
        Failure::new(format!(
            "there is no log in {}; name the server's folder with --data DIR, or a log with --file \
             ([log] in its keyway.toml may send them elsewhere)",
            folder.display()
        ))
    })
}

fn show(report: &Report, arguments: &Log) -> Result<(), Failure> {
    if !arguments.json {
        output::text(report.heading())?;
    }
    for (text, json) in report.rows(arguments.top) {
        match arguments.json {
            true => output::json(&json)?,
            false => output::text(text)?,
        }
    }
    report.remarks().into_iter().for_each(output::note);
    Ok(())
}

/// A time, as the log has it.
pub fn time(text: &str) -> Result<String, String> {
    moment(text).map(show_unix_us)
}

/// `FIELD=TEXT`
pub fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("it is not FIELD=TEXT, like result=49 or event=bind".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time("2026-11-24T08"), Ok("2026-11-24T08:00:00.000000Z".to_owned()));
        let (earlier, later) = (time("2h").unwrap(), time("15m").unwrap());
        assert!(earlier < later && later.starts_with("20"), "{earlier} {later}");
        for wrong in ["", "h", "2w", "-2h", "2026-x", "99999999999d", "é"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
