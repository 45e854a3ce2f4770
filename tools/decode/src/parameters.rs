//! Values of controls and extended operations, by name and field.
//!
//! A table (`known`) says what each looks like. A value that is not what its table says is shown
//! as octets: nothing of it is lost.

mod form;
mod known;
mod value;

use crate::direction::Direction;
use form::Form;
use known::{CONTROLS, Known, OPERATIONS};

pub use value::Value;

/// The octets in the place of a value that is hidden.
pub const STAR: &[u8] = b"*";

/// The name of a control, such as `paged-results`. `None` of one that is not known.
#[must_use]
pub fn control_name(oid: &str) -> Option<&'static str> {
    known(&CONTROLS, oid).map(|known| known.name)
}

/// The short name of an extended operation, or an intermediate response, such as `whoami`.
#[must_use]
pub fn extended_name(oid: &str) -> Option<&'static str> {
    known(&OPERATIONS, oid).map(|known| known.name)
}

/// All names of extended operations.
pub(crate) fn extended_names() -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().map(|known| known.name)
}

/// Whether neither the request's value nor the response's can hold a password, or what is as good
/// as one.
pub(crate) fn is_harmless(oid: &str) -> bool {
    known(&OPERATIONS, oid).is_some_and(|known| !known.secret)
}

/// Whether a control's value is as good as a password.
pub(crate) fn is_secret_control(oid: &str) -> bool {
    known(&CONTROLS, oid).is_some_and(|known| known.secret)
}

/// A control's value by its fields.
#[must_use]
pub fn control(oid: &str, octets: &[u8], direction: Direction) -> Value {
    explained(known(&CONTROLS, oid), octets, direction)
}

/// The value of an extended operation's request or response, or of an intermediate response, by
/// its fields.
#[must_use]
pub fn extended(oid: &str, octets: &[u8], direction: Direction) -> Value {
    explained(known(&OPERATIONS, oid), octets, direction)
}

fn known(table: &'static [Known], oid: &str) -> Option<&'static Known> {
    table.iter().find(|known| known.oid == oid)
}

fn explained(known: Option<&Known>, octets: &[u8], direction: Direction) -> Value {
    let form = match (known, direction) {
        (Some(known), Direction::Request) => &known.request,
        (Some(known), Direction::Response) => &known.response,
        (None, _) => &Form::Octets,
    };
    // Where a password is hidden, all of the value is.
    if octets == STAR {
        return Value::Text("*".to_owned());
    }
    form.read(octets).unwrap_or_else(|| Value::Octets(octets.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_codec::ber::{ENUMERATED, INTEGER, OCTET_STRING, SEQUENCE, Writer, context};

    fn lines(value: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        value.leaves(&mut |path, octets| {
            lines.push(format!("{path}: {}", octets.escape_ascii()));
        });
        lines
    }

    #[test]
    fn tables_name_each_once() {
        for table in [&CONTROLS[..], &OPERATIONS[..]] {
            for (index, one) in table.iter().enumerate() {
                assert!(one.oid.split('.').all(|arc| arc.parse::<u64>().is_ok()), "{}", one.oid);
                assert!(table[..index].iter().all(|other| other.oid != one.oid), "{}", one.oid);
                assert!(table[..index].iter().all(|other| other.name != one.name), "{}", one.name);
            }
        }
    }

    #[test]
    fn a_page_has_a_size_and_a_cookie() {
        let mut octets = Vec::new();
        let mut writer = Writer::new(&mut octets);
        let mark = writer.begin(SEQUENCE);
        writer.integer(INTEGER, 500);
        writer.octets(OCTET_STRING, b"\xff\x01");
        writer.end(mark);
        let paged = "1.2.840.113556.1.4.319";
        assert_eq!(control_name(paged), Some("paged-results"));
        let value = control(paged, &octets, Direction::Request);
        assert_eq!(lines(&value), ["size: 500", "cookie: \\xff\\x01"]);
        assert_eq!(
            value.json(),
            serde_json::json!({ "size": 500, "cookie": { "base64": "/wE=" } })
        );
        // A value that is cut off, or followed by something else, is not explained.
        for bad in [&octets[..octets.len() - 1], &[&octets[..], b"x"].concat()] {
            assert_eq!(control(paged, bad, Direction::Request), Value::Octets(bad.to_vec()));
        }
    }

    #[test]
    fn lists_flags_and_names_are_told() {
        let sort = b"\x30\x11\x30\x0f\x04\x02sn\x80\x060.9.99\x81\x01\xff";
        let value = control("1.2.840.113556.1.4.473", sort, Direction::Request);
        assert_eq!(lines(&value), ["[0].attribute: sn", "[0].rule: 0.9.99", "[0].reverse: true"]);
        let search = b"\x30\x09\x02\x01\x05\x01\x01\xff\x01\x01\x00";
        let value = control("2.16.840.1.113730.3.4.3", search, Direction::Request);
        let told = ["changeTypes: 5 (add, modify)", "changesOnly: true", "returnECs: false"];
        assert_eq!(lines(&value), told);
        let mut octets = Vec::new();
        let mut writer = Writer::new(&mut octets);
        let mark = writer.begin(SEQUENCE);
        writer.integer(context(1), 0);
        writer.end(mark);
        let policy = "1.3.6.1.4.1.42.2.27.8.5.1";
        assert_eq!(
            lines(&control(policy, &octets, Direction::Response)),
            ["error: 0 (passwordExpired)"]
        );
        octets.clear();
        let mut writer = Writer::new(&mut octets);
        let mark = writer.begin(SEQUENCE);
        writer.integer(ENUMERATED, 3);
        writer.octets(OCTET_STRING, &[0x11; 16]);
        writer.end(mark);
        let state = control("1.3.6.1.4.1.4203.1.9.1.2", &octets, Direction::Response);
        let uuid = "entryUUID: 11111111-1111-1111-1111-111111111111";
        assert_eq!(lines(&state), ["state: 3 (delete)", uuid]);
    }

    #[test]
    fn hidden_values_stay_hidden() {
        let value = extended("1.3.6.1.4.1.4203.666.6.5", b"*", Direction::Request);
        assert_eq!(lines(&value), [": *"]);
        assert!(is_harmless("1.3.6.1.1.21.3") && !is_harmless("1.3.6.1.4.1.4203.666.6.5"));
        assert!(!is_harmless("1.2.3") && !is_harmless("1.3.6.1.4.1.4203.1.11.1"));
    }

    #[test]
    fn deep_nesting_ends() {
        let deep: Vec<u8> =
            std::iter::repeat_n([0xa2, 0x84, 0, 0, 0, 0], 10_000).flatten().collect();
        let assertion = control("1.3.6.1.1.12", &deep, Direction::Request);
        assert_eq!(assertion, Value::Octets(deep));
    }
}
