//! The formats of a line: text for people, JSON, or what the journal takes. Whatever clients sent, a
//! line is a line (see [`escape`](crate::escape)).
//!
//! A busy server writes one for every request, so this is made by hand where `write!` would do.

use crate::escape::{Escaped, Needs, needs};
use crate::settings::Form;
use keyway_server::log::{LogKind, Record, Severity, Value};
use std::cell::RefCell;
use std::fmt::{Display, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use time::UtcDateTime;

thread_local! {
    /// The last second that a line was of, and how it is written.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// Appends a line and its end. In the journal's form that is an empty line.
pub fn line(out: &mut Vec<u8>, record: &Record<'_>, form: Form) {
    match form {
        Form::Text => text(out, record),
        Form::Json => json(out, record),
        Form::Journal => journal(out, record),
    }
}

/// `TIME KIND EVENT name=value ...`
fn text(out: &mut Vec<u8>, record: &Record<'_>) {
    time(out, record.at);
    put(out, &[" ", kind(record.kind), " ", record.event]);
    for (name, value) in record.fields {
        match value {
            Value::None => {}
            Value::Number(value) => {
                named(out, name);
                number(out, *value);
            }
            Value::Text(text) => word(out, name, text),
            Value::Shown(shown) => word(out, name, &shown.to_string()),
            Value::List(list) => {
                named(out, name);
                out.push(b'"');
                let mut escaped = Escaped::new(out, Form::Text);
                for (index, text) in list.iter().enumerate() {
                    // Writing to memory cannot fail, here and below.
                    let _ = escaped.write_str(if index > 0 { ", " } else { "" });
                    let _ = escaped.write_str(text);
                }
                out.push(b'"');
            }
        }
    }
    out.push(b'\n');
}

/// ` name=value`, the value in quotation marks unless it is one plain word.
fn word(out: &mut Vec<u8>, name: &str, text: &str) {
    named(out, name);
    match needs(text) {
        Needs::Nothing => out.extend_from_slice(text.as_bytes()),
        _ => string(out, text, Form::Text),
    }
}

/// A text in quotation marks.
fn string(out: &mut Vec<u8>, text: &str, form: Form) {
    out.push(b'"');
    escaped(out, text, form);
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, text: &str, form: Form) {
    match needs(text) {
        Needs::Escapes => {
            let _ = Escaped::new(out, form).write_str(text);
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

fn json(out: &mut Vec<u8>, record: &Record<'_>) {
    put(out, &["{\"time\":\""]);
    time(out, record.at);
    put(out, &["\",\"log\":\"", log(record.kind)]);
    if let LogKind::Error(severity) = record.kind {
        put(out, &["\",\"severity\":\"", of(severity)]);
    }
    put(out, &["\",\"event\":\"", record.event, "\""]);
    for (name, value) in record.fields {
        if matches!(value, Value::None) {
            continue;
        }
        put(out, &[",\"", name, "\":"]);
        match value {
            Value::None => {}
            Value::Number(value) => number(out, *value),
            Value::Text(text) => string(out, text, Form::Json),
            Value::Shown(shown) => string(out, &shown.to_string(), Form::Json),
            Value::List(list) => {
                for (index, text) in list.iter().enumerate() {
                    out.push(if index > 0 { b',' } else { b'[' });
                    string(out, text, Form::Json);
                }
                put(out, &[if list.is_empty() { "[]" } else { "]" }]);
            }
        }
    }
    put(out, &["}\n"]);
}

/// The native protocol of systemd's journal: `NAME=value` lines. The message is the line as text, so
/// that a reader of the journal's messages sees all of it.
fn journal(out: &mut Vec<u8>, record: &Record<'_>) {
    let priority = match record.kind {
        LogKind::Error(Severity::Error) => "3",
        LogKind::Error(Severity::Warning) => "4",
        _ => "6",
    };
    put(out, &["PRIORITY=", priority, "\nSYSLOG_IDENTIFIER=keyway\nMESSAGE="]);
    text(out, record);
    put(out, &["KEYWAY_LOG=", log(record.kind), "\nKEYWAY_EVENT=", record.event, "\n"]);
    for (name, value) in record.fields {
        match value {
            Value::None => {}
            Value::Number(value) => {
                field(out, name);
                number(out, *value);
                out.push(b'\n');
            }
            Value::Text(text) => journal_text(out, name, text),
            Value::Shown(shown) => journal_text(out, name, shown),
            // A field that is there several times has several values.
            Value::List(list) => list.iter().for_each(|text| journal_text(out, name, text)),
        }
    }
    out.push(b'\n');
}

fn journal_text(out: &mut Vec<u8>, name: &str, text: impl Display) {
    field(out, name);
    escaped(out, &text.to_string(), Form::Text);
    out.push(b'\n');
}

/// `KEYWAY_NAME=`
fn field(out: &mut Vec<u8>, name: &str) {
    put(out, &["KEYWAY_"]);
    out.extend(name.bytes().map(|byte| byte.to_ascii_uppercase()));
    out.push(b'=');
}

/// ` name=`; single bytes are not worth a copy each.
fn named(out: &mut Vec<u8>, name: &str) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

fn number(out: &mut Vec<u8>, mut number: u64) {
    let (mut digits, mut at) = ([0; 20], 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

fn log(kind: LogKind) -> &'static str {
    match kind {
        LogKind::Access => "access",
        LogKind::Audit => "audit",
        LogKind::Error(_) => "error",
    }
}

/// The log, and how bad it is where it may be.
fn kind(kind: LogKind) -> &'static str {
    match kind {
        LogKind::Error(severity) => of(severity),
        kind => log(kind),
    }
}

fn of(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// RFC 3339 in UTC, to the microsecond.
fn time(out: &mut Vec<u8>, at: SystemTime) {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    SECOND.with_borrow_mut(|(second, shown)| {
        if *second != since.as_secs() || shown.is_empty() {
            (*second, *shown) = (since.as_secs(), second_of(at));
        }
        out.extend_from_slice(shown.as_bytes());
    });
    let mut micros = since.subsec_micros();
    let mut digits = *b".000000Z";
    for digit in digits[1..7].iter_mut().rev() {
        *digit = b'0' + (micros % 10) as u8;
        micros /= 10;
    }
    out.extend_from_slice(&digits);
}

fn second_of(at: SystemTime) -> String {
    let at = UtcDateTime::from(at);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LOG_TEXT_BYTES_MAX;
    use std::time::Duration;

    fn line_of(form: Form, fields: &[(&'static str, Value<'_>)]) -> String {
        let at = UNIX_EPOCH + Duration::from_micros(1_800_000_000_000_042);
        let mut out = Vec::new();
        let kind = LogKind::Error(Severity::Warning);
        line(&mut out, &Record { at, kind, event: "test", fields }, form);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_a_line_whatever_is_in_it() {
        let evil = "a\nb\r\u{1b}[2J\u{2028}\u{202e}\"\\\u{85}";
        let list = [evil.to_owned(), "x".to_owned()];
        let fields = [
            ("n", Value::Number(7)),
            ("word", Value::Text("1.2.3.4:5")),
            ("none", Value::None),
            ("empty", Value::Text("")),
            ("evil", Value::Text(evil)),
            ("list", Value::List(&list)),
        ];
        let escaped = r#"a\u{a}b\u{d}\u{1b}[2J\u{2028}\u{202e}\"\\\u{85}"#;
        assert_eq!(
            line_of(Form::Text, &fields),
            format!(
                "2027-01-15T08:00:00.000042Z warning test n=7 word=1.2.3.4:5 empty=\"\" \
                 evil=\"{escaped}\" list=\"{escaped}, x\"\n"
            )
        );
        let json = line_of(Form::Json, &fields);
        assert_eq!(json.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["evil"], evil);
        assert_eq!(value["list"], serde_json::json!([evil, "x"]));
        assert_eq!(value["severity"], "warning");
        assert!(json.is_ascii());
        let journal = line_of(Form::Journal, &fields);
        let (message, rest) = journal.split_once("\nKEYWAY_LOG=error\n").unwrap();
        let text = line_of(Form::Text, &fields);
        let head = "PRIORITY=4\nSYSLOG_IDENTIFIER=keyway\nMESSAGE=";
        assert_eq!(message, format!("{head}{}", text.trim_end()));
        assert_eq!(
            rest,
            format!(
                "KEYWAY_EVENT=test\nKEYWAY_N=7\nKEYWAY_WORD=1.2.3.4:5\nKEYWAY_EMPTY=\n\
                 KEYWAY_EVIL={escaped}\nKEYWAY_LIST={escaped}\nKEYWAY_LIST=x\n\n"
            )
        );
    }

    #[test]
    fn numbers_and_times() {
        for value in [0, 9, 10, 1_234_567_890, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
        for (nanos, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_000_000_000_999_999_999, "2001-09-09T01:46:40.999999Z"),
            (1_000_000_000_000_007_000, "2001-09-09T01:46:40.000007Z"),
        ] {
            let mut out = Vec::new();
            time(&mut out, UNIX_EPOCH + Duration::from_nanos(nanos));
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "ä".repeat(LOG_TEXT_BYTES_MAX);
        for form in [Form::Text, Form::Json, Form::Journal] {
            let line = line_of(form, &[("dn", Value::Text(&long))]);
            assert!(line.len() < 2 * (LOG_TEXT_BYTES_MAX + 200), "{}", line.len());
            assert!(line.contains("ä..."), "{line}");
        }
    }
}
