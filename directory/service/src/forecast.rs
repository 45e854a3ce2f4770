//! How long hashing the clear passwords of an import will take: it is what an import with many of
//! them mostly does, and better known before than wondered about.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyway_host::failure::{Failure, plain};
use keyway_host::output::grouped;
use keyway_password::{Given, Passwords, classify};
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};
use tokio::runtime;
use zeroize::Zeroizing;

/// Shorter work needs no line.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// How many clear passwords there are, and how fast they are hashed here.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// Clear passwords.
    pub passwords: u64,
    /// How long one takes, with all threads of the slow class at work.
    pub each: Duration,
    /// How many threads those are.
    pub threads: usize,
}

impl Forecast {
    /// For so many passwords; `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be hashed.
    pub fn of(count: u64, passwords: &Passwords) -> Result<Option<Forecast>, Failure> {
        match count {
            0 => Ok(None),
            _ => Ok(Some(Forecast { passwords: count, ..Forecast::measure(passwords)? })),
        }
    }

    /// Hashes a password on each thread at once.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn measure(passwords: &Passwords) -> Result<Forecast, Failure> {
        let bad = |why: keyway_password::Error| Failure::new(format!("cannot hash: {why}"));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = runtime::Builder::new_current_thread()
            .build()
            .map_err(|why| Failure::new(format!("cannot hash: {}", plain(&why))))?;
        let started = Instant::now();
        let password = || Zeroizing::new(b"how long does this take?".to_vec());
        let running: Vec<_> = (0..threads)
            .map(|_| passwords.hash(password()))
            .collect::<Result<_, _>>()
            .map_err(bad)?;
        for hash in running {
            runtime.block_on(hash).map_err(bad)?;
        }
        let each = started.elapsed() / u32::try_from(threads).unwrap_or(u32::MAX);
        Ok(Forecast { passwords: 0, each, threads })
    }

    /// How long all of them take.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.each.as_secs_f64() * self.passwords as f64)
    }

    /// Whether it takes long enough to be worth a line.
    pub fn is_worth_saying(&self) -> bool {
        self.duration() >= WORTH_SAYING
    }

    fn rate(&self) -> u64 {
        (1.0 / self.each.as_secs_f64().max(1e-9)).round() as u64
    }

    /// The text if the number is not known.
    pub fn of_a_stream(&self) -> String {
        format!(
            "there are clear passwords in it, which are hashed: {} a second on {}; how many there \
             are is not known before they are read",
            grouped(self.rate()),
            threads(self.threads)
        )
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, rate) = (grouped(self.passwords), grouped(self.rate()));
        write!(
            f,
            "{count} clear passwords are to be hashed, {rate} a second on {}: about {}",
            threads(self.threads),
            rough(self.duration())
        )
    }
}

fn threads(count: usize) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

/// A duration as people say it.
fn rough(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..=119 => format!("{} s", seconds.max(1)),
        seconds @ 120..=7_199 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}

/// Counts clear passwords in LDIF, behind the first `done` records. A long value goes on in the
/// next line, but its first one tells what it is.
///
/// # Errors
/// The input's.
pub fn clear_passwords(input: impl Read, done: u64) -> std::io::Result<u64> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let (mut records, mut clear) = (0, 0);
    let mut line = Zeroizing::new(Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(clear);
        }
        if after(&line, b"dn").is_some() {
            records += 1;
        } else if records > done && after(&line, b"userPassword").is_some_and(is_clear) {
            clear += 1;
        }
    }
}

/// The text behind an attribute's description, options or not, and its first colon.
fn after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    if !start.eq_ignore_ascii_case(name) {
        return None;
    }
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let (options, rest) = rest.split_at(colon);
    (options.is_empty() || options.starts_with(b";")).then(|| rest.get(1..).unwrap_or_default())
}

fn is_clear(value: &[u8]) -> bool {
    let is_clear = |value: &[u8]| matches!(classify(value), Ok(Given::Password(_)));
    match value.strip_prefix(b":") {
        None => is_clear(value.trim_ascii()),
        // For a value that continues in the next line, whole groups of four are enough.
        Some(encoded) => {
            let encoded = encoded.trim_ascii();
            let whole = encoded.get(..encoded.len() / 4 * 4).unwrap_or_default();
            STANDARD.decode(whole).map(Zeroizing::new).is_ok_and(|value| is_clear(&value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_passwords_are_counted() {
        let ldif = "version: 1\n\ndn: o=x\no: x\nuserPassword: one\n\n\
            DN:: bz15\r\nuserpassword: two\r\nUSERPASSWORD;lang-en: three\r\n\r\n\
            dn: o=z\nuserPassword: {SSHA}rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV\n\
            userPassword: {SHA}\n  x\nuserPassword: {CRYPT}!\nuserPassword:: e1NTSEF9IQ==\n\
            userPassword:: Zm91cg==\nuserPasswordish: no\ndescription: userPassword: no\n";
        let counted = |done| clear_passwords(ldif.as_bytes(), done).unwrap();
        assert_eq!([counted(0), counted(1), counted(2), counted(3)], [4, 3, 1, 0]);
    }

    #[test]
    fn durations_as_people_say_them() {
        let said = |seconds| rough(Duration::from_secs(seconds));
        assert_eq!([said(0), said(17), said(121), said(9_000)], ["1 s", "17 s", "3 min", "2.5 h"]);
    }
}
