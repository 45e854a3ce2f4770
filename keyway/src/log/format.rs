//! What a line looks like: text for people, or JSON. Whatever clients sent, a line is a line: what
//! could end it, or be taken for something else by who reads it, is escaped.

use super::settings::Form;
use crate::limits::LOG_TEXT_BYTES_MAX;
use keyway_server::log::{Book, Record, Severity, Value};
use std::fmt::{self, Write};
use std::time::SystemTime;
use time::UtcDateTime;

/// Appends a line and its end.
pub fn line(out: &mut Vec<u8>, record: &Record<'_>, form: Form) {
    // Writing to memory cannot fail.
    let _ = match form {
        Form::Text => text(&mut Bytes(out), record),
        Form::Json => json(&mut Bytes(out), record),
    };
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn text(out: &mut Bytes<'_>, record: &Record<'_>) -> fmt::Result {
    time(out, record.at)?;
    let kind = match record.book {
        Book::Access => "access",
        Book::Audit => "audit",
        Book::Error(severity) => word(severity),
    };
    write!(out, " {kind} {}", record.event)?;
    for (name, value) in record.fields {
        match value {
            Value::None => {}
            Value::Number(number) => write!(out, " {name}={number}")?,
            Value::Text(text) => quoted(out, name, format_args!("{text}"))?,
            Value::Shown(shown) => quoted(out, name, format_args!("{shown}"))?,
            Value::List(list) => {
                write!(out, " {name}=\"")?;
                let mut escaped = Escaped::new(out, Form::Text);
                for (index, text) in list.iter().enumerate() {
                    if index > 0 {
                        escaped.write_str(", ")?;
                    }
                    escaped.write_str(text)?;
                }
                out.write_char('"')?;
            }
        }
    }
    out.write_char('\n')
}

/// ` name=value`, the value in quotation marks unless it is one plain word.
fn quoted(out: &mut Bytes<'_>, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    write!(out, " {name}=\"")?;
    let start = out.0.len();
    Escaped::new(out, Form::Text).write_fmt(value)?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".:-_/[]@".contains(byte);
    if out.0.len() > start && out.0[start..].iter().all(plain) {
        out.0.remove(start - 1);
        return Ok(());
    }
    out.write_char('"')
}

fn json(out: &mut Bytes<'_>, record: &Record<'_>) -> fmt::Result {
    out.write_str("{\"time\":\"")?;
    time(out, record.at)?;
    match record.book {
        Book::Access => out.write_str("\",\"log\":\"access\"")?,
        Book::Audit => out.write_str("\",\"log\":\"audit\"")?,
        Book::Error(severity) => {
            write!(out, "\",\"log\":\"error\",\"severity\":\"{}\"", word(severity))?;
        }
    }
    write!(out, ",\"event\":\"{}\"", record.event)?;
    for (name, value) in record.fields {
        match value {
            Value::None => {}
            Value::Number(number) => write!(out, ",\"{name}\":{number}")?,
            Value::Text(text) => {
                write!(out, ",\"{name}\":")?;
                string(out, format_args!("{text}"))?;
            }
            Value::Shown(shown) => {
                write!(out, ",\"{name}\":")?;
                string(out, format_args!("{shown}"))?;
            }
            Value::List(list) => {
                write!(out, ",\"{name}\":[")?;
                for (index, text) in list.iter().enumerate() {
                    if index > 0 {
                        out.write_char(',')?;
                    }
                    string(out, format_args!("{text}"))?;
                }
                out.write_char(']')?;
            }
        }
    }
    out.write_str("}\n")
}

fn string(out: &mut Bytes<'_>, value: fmt::Arguments<'_>) -> fmt::Result {
    out.write_char('"')?;
    Escaped::new(out, Form::Json).write_fmt(value)?;
    out.write_char('"')
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// RFC 3339 in UTC, to the microsecond.
fn time(out: &mut Bytes<'_>, at: SystemTime) -> fmt::Result {
    let at = UtcDateTime::from(at);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let micros = at.microsecond();
    write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Escapes what goes through it, and drops what is more than one value may have.
struct Escaped<'a, 'b> {
    out: &'a mut Bytes<'b>,
    form: Form,
    bytes_left: usize,
}

impl<'a, 'b> Escaped<'a, 'b> {
    fn new(out: &'a mut Bytes<'b>, form: Form) -> Self {
        Escaped { out, form, bytes_left: LOG_TEXT_BYTES_MAX }
    }
}

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.bytes_left == 0 {
                return Ok(());
            }
            if c.len_utf8() > self.bytes_left {
                self.bytes_left = 0;
                return self.out.write_str("...");
            }
            self.bytes_left -= c.len_utf8();
            match (c, self.form) {
                ('"' | '\\', _) => write!(self.out, "\\{c}")?,
                (c, Form::Json) if misleads(c) => write!(self.out, "\\u{:04x}", u32::from(c))?,
                (c, Form::Text) if misleads(c) => write!(self.out, "\\u{{{:x}}}", u32::from(c))?,
                (c, _) => self.out.write_char(c)?,
            }
            if self.bytes_left == 0 {
                self.out.write_str("...")?;
            }
        }
        Ok(())
    }
}

/// Whether a character ends a line, moves a terminal's cursor, or makes text look like another.
fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn line_of(form: Form, fields: &[(&'static str, Value<'_>)]) -> String {
        let at = UNIX_EPOCH + Duration::from_micros(1_800_000_000_000_042);
        let mut out = Vec::new();
        let book = Book::Error(Severity::Warning);
        line(&mut out, &Record { at, book, event: "test", fields }, form);
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
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "ä".repeat(LOG_TEXT_BYTES_MAX);
        for form in [Form::Text, Form::Json] {
            let line = line_of(form, &[("dn", Value::Text(&long))]);
            assert!(line.len() < LOG_TEXT_BYTES_MAX + 200, "{}", line.len());
            assert!(line.contains("ä...\""), "{line}");
        }
    }
}
