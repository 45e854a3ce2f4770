//! Standard output: words for people, or with `--json` a line for programs.

use crate::failure::Failure;
use crate::text::{self, misleads};
use keyway_lock::Unpoisoned;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Mutex;

/// Writes a line (or several) of text.
///
/// # Errors
/// If the reader is gone, or the output is a file on a full disk.
pub fn text(text: impl Display) -> Result<(), Failure> {
    write(format_args!("{text}")).map_err(|why| Failure::output(&why))
}

/// Writes one JSON value on a line of its own.
///
/// # Errors
/// As [`text()`].
pub fn json(value: &Value) -> Result<(), Failure> {
    write_json(value).map_err(|why| Failure::output(&why))
}

/// Writes one JSON value on a line of standard error: where standard output has something else.
///
/// # Errors
/// As [`text()`].
pub fn aside(value: &Value) -> Result<(), Failure> {
    writeln!(io::stderr().lock(), "{}", text::json(value)).map_err(|why| Failure::output(&why))
}

/// The form in which a failure is reported, and the output it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// A line for people, on standard error.
    Text,
    /// A line for programs, on standard output.
    Json,
    /// A line for programs, on standard error: standard output has something else.
    JsonOnStandardError,
}

/// Says why the program ends.
pub fn failure(failure: &Failure, mode: OutputMode) {
    let (error, status) = (failure.to_string(), failure.status());
    let value = json!({ "event": "failed", "error": error, "status": status });
    let said = match mode {
        OutputMode::Text => false,
        OutputMode::Json => write_json(&value).is_ok(),
        OutputMode::JsonOnStandardError => aside(&value).is_ok(),
    };
    if !said {
        note(failure);
    }
}

/// Writes text, for those who care what went wrong.
pub fn write(text: impl Display) -> io::Result<()> {
    line(&plain(&text.to_string()))
}

/// Writes one JSON value, for those who care what went wrong.
pub fn write_json(value: &Value) -> io::Result<()> {
    line(&text::json(value))
}

fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Text that a terminal can be given, wherever it comes from: what that would take for a command, and what
/// makes text look like another, becomes `\u{1b}`. Lines and tabulators stay.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_meant = |c: char| !matches!(c, '\n' | '\t') && misleads(c);
    if !text.contains(is_meant) {
        return Cow::Borrowed(text);
    }
    let one = |c: char| match is_meant(c) {
        true => format!("\\u{{{:x}}}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(one).collect())
}

/// Takes remarks.
type Listener = Box<dyn Fn(String) + Send>;

/// Where remarks go while something else has the terminal.
static ASIDE: Mutex<Option<Listener>> = Mutex::new(None);

/// Has remarks go elsewhere than to standard error, or there again.
pub fn divert_notes(to: Option<Listener>) {
    *ASIDE.lock().unpoisoned() = to;
}

/// A remark on standard error that is not the reason for an end.
pub fn note(text: impl Display) {
    if let Some(to) = &*ASIDE.lock().unpoisoned() {
        return to(plain(&text.to_string()).into_owned());
    }
    // With nowhere to say it there is nothing to be done.
    let _ = writeln!(io::stderr().lock(), "keyway: {}", plain(&text.to_string()));
}

/// A number with its thousands apart: 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An argument as a shell reads it.
pub fn shell(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn a_terminal_gets_no_commands() {
        assert_eq!(plain("a\tb\nü"), "a\tb\nü");
        assert_eq!(plain("\u{1b}[31m\u{9b}\u{202e}\r"), "\\u{1b}[31m\\u{9b}\\u{202e}\\u{d}");
        let value = json!({ "a": "\u{1b}\u{9b}\u{202e}" });
        let said = text::json(&value);
        assert_eq!(said, r#"{"a":"\u001b\u009b\u202e"}"#);
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), value);
    }

    #[test]
    fn a_shell_reads_it_back() {
        assert_eq!(shell("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
    }
}
