//! A line of a log, read back from whatever form it has.

use serde_json::{Map, Value};

/// A line that was written.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// When: RFC 3339 in UTC, so that texts sort as times do.
    pub time: String,
    /// Which log: `access`, `audit`, or `error`.
    pub log: String,
    /// The event's name.
    pub event: String,
    /// Its fields, in order.
    pub fields: Vec<(String, String)>,
    /// As it stands in the file, without its end.
    pub text: String,
}

impl Line {
    /// Reads a line of either form, or an entry of the journal in JSON; `None` if it is none.
    pub fn parse(text: &str) -> Option<Line> {
        let text = text.trim_end_matches(['\n', '\r']);
        match text.starts_with('{') {
            true => from_json(text),
            false => from_text(text),
        }
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "event" => Some(&self.event),
            "log" => Some(&self.log),
            _ => self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value),
        }
    }

    /// The value of a field that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// As JSON, for programs.
    pub fn json(&self) -> Value {
        let mut object = Map::new();
        let parts = [("time", &self.time), ("log", &self.log), ("event", &self.event)];
        object.extend(parts.map(|(name, value)| (name.to_owned(), value.clone().into())));
        for (name, value) in &self.fields {
            // Numbers are those of the log; a DN of digits alone is none.
            let number = value.parse::<u64>().ok().filter(|_| is_number(name));
            object.insert(name.clone(), number.map_or_else(|| value.clone().into(), Value::from));
        }
        Value::Object(object)
    }
}

/// The fields that hold a number.
fn is_number(name: &str) -> bool {
    matches!(name, "connection" | "operation" | "result" | "lines" | "entries" | "port")
        || ["_us", "_ms", "_s", "_bytes", "_max"].iter().any(|unit| name.ends_with(unit))
}

fn from_json(text: &str) -> Option<Line> {
    let Value::Object(object) = serde_json::from_str(text).ok()? else { return None };
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let of = |name: &str| object.get(name).map(shown);
    // The journal's entries have the line as text for a message.
    if let Some(message) = of("MESSAGE") {
        return from_text(message.trim_end_matches('\n'));
    }
    let named = |name: &str| matches!(name, "time" | "log" | "event");
    let fields = object.iter().filter(|(name, _)| !named(name));
    Some(Line {
        time: of("time")?,
        log: of("log")?,
        event: of("event")?,
        fields: fields.map(|(name, value)| (name.clone(), shown(value))).collect(),
        text: text.to_owned(),
    })
}

fn from_text(text: &str) -> Option<Line> {
    let mut parts = text.splitn(4, ' ');
    let (time, kind, event) = (parts.next()?, parts.next()?, parts.next()?);
    let (log, severity) = match kind {
        "access" | "audit" => (kind, None),
        "info" | "warning" | "error" => ("error", Some(kind)),
        _ => return None,
    };
    let mut fields: Vec<_> =
        severity.map(|word| ("severity".to_owned(), word.to_owned())).into_iter().collect();
    fields.extend(values(parts.next().unwrap_or_default()));
    let (time, log, event) = (time.to_owned(), log.to_owned(), event.to_owned());
    Some(Line { time, log, event, fields, text: text.to_owned() })
}

/// `name=word name="text"`
fn values(mut rest: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (word, after) = after.split_once(' ').unwrap_or((after, ""));
                (word.to_owned(), after)
            }
        };
        fields.push((name.trim_start().to_owned(), value));
        rest = after;
    }
    fields
}

/// Text up to its quotation mark, and what is behind that. Only marks and backslashes are taken back:
/// what could mislead who reads it stays escaped.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, text.get(at + 1..).unwrap_or_default()),
            '\\' => match chars.next() {
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                Some((_, other)) => value.extend(['\\', other]),
                None => {}
            },
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let text = "2026-11-24T08:00:00.000001Z access bind connection=7 from=[::1]:5 \
                    dn=\"cn=a \\\"b\\\\\\u{a}\" result=49 time_us=12\n";
        let line = Line::parse(text).unwrap();
        assert_eq!((line.log.as_str(), line.event.as_str()), ("access", "bind"));
        assert_eq!(line.field("dn"), Some("cn=a \"b\\\\u{a}"));
        assert_eq!((line.number("time_us"), line.field("from")), (Some(12), Some("[::1]:5")));
        let again = Line::parse(&line.json().to_string()).unwrap();
        let sorted = |mut fields: Vec<(String, String)>| {
            fields.sort();
            fields
        };
        assert_eq!(sorted(again.fields), sorted(line.fields));
    }

    #[test]
    fn an_entry_of_the_journal_is_the_line_that_it_has() {
        let text = r#"t access bind dn="cn=\"a\"" result=49"#;
        let entry = serde_json::json!({
            "__REALTIME_TIMESTAMP": "1", "MESSAGE": text, "KEYWAY_EVENT": "bind"
        });
        assert_eq!(Line::parse(&entry.to_string()), Line::parse(text));
        assert_eq!(Line::parse(r#"{"MESSAGE":"Started keyway.service"}"#), None);
    }

    #[test]
    fn what_is_no_line_is_none_and_half_a_line_does_no_harm() {
        for text in ["", "\n", "{", "{}", "[1]", "2026 access", "2026 rubbish event a=b"] {
            assert_eq!(Line::parse(text), None, "{text:?}");
        }
        let half = Line::parse("2026-11-24 access bind dn=\"cn=\\").unwrap();
        assert_eq!(half.field("dn"), Some("cn="));
        assert!(Line::parse("t access search =x ==\"").is_some());
    }
}
