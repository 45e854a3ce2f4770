//! Text of a command line, as a value.

use crate::catalogue::Kind;
use toml::Value;

/// A value of this kind.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn read(kind: Kind, given: &[String]) -> Result<Value, String> {
    match (kind, given) {
        (Kind::Texts, [one]) if is_list(one) => toml(one),
        (Kind::Texts, all) => {
            Ok(Value::Array(all.iter().map(|it| text(it)).collect::<Result<_, _>>()?))
        }
        (Kind::Tables, [one]) if is_list(one) => toml(one),
        (Kind::Tables, all) => {
            Ok(Value::Array(all.iter().map(|it| table(it)).collect::<Result<_, _>>()?))
        }
        (_, [] | [_, _, ..]) => Err("it takes one value".into()),
        (Kind::Text, [one]) => text(one),
        (Kind::Number, [one]) => match toml(&one.replace('_', "")) {
            Ok(number @ Value::Integer(0..)) => Ok(number),
            Ok(Value::Integer(_)) => Err(format!("{one} is less than 0")),
            _ if !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(format!("{one} is too large"))
            }
            _ => Err(format!("\"{one}\" is not a whole number")),
        },
        (Kind::Truth, [one]) => match one.as_str() {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            _ => Err(format!("\"{one}\" is neither true nor false")),
        },
    }
}

fn is_list(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

/// A text with TOML's quotes, or without any.
fn text(given: &str) -> Result<Value, String> {
    let is_quoted =
        given.len() > 1 && given.starts_with(['"', '\'']) && given.ends_with(['"', '\'']);
    if is_quoted { toml(given) } else { Ok(Value::String(given.to_owned())) }
}

fn table(given: &str) -> Result<Value, String> {
    match toml(given)? {
        table @ Value::Table(_) => Ok(table),
        _ => Err(format!("\"{given}\" is not a table, as in {{ attributes = [\"uid\"] }}")),
    }
}

fn toml(text: &str) -> Result<Value, String> {
    let whole: toml::Table = format!("it = {text}")
        .parse()
        .map_err(|why: toml::de::Error| format!("\"{text}\" is no value: {}", why.message()))?;
    match whole.into_iter().next() {
        Some((_, value)) if text.lines().count() == 1 => Ok(value),
        _ => Err(format!("\"{text}\" is no value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_understood_by_their_kind() {
        let read = |kind, given: &[&str]| {
            let given: Vec<_> = given.iter().map(|&one| one.to_owned()).collect();
            read(kind, &given).map(|value| value.to_string()).ok()
        };
        let yes = |text: &str| Some(text.to_owned());
        assert_eq!(read(Kind::Text, &["a b"]), yes("\"a b\""));
        assert_eq!(read(Kind::Text, &["\"a b\""]), yes("\"a b\""));
        assert_eq!(read(Kind::Text, &["\"a\nb = 1\""]), None);
        assert_eq!(read(Kind::Text, &[]), None);
        assert_eq!(read(Kind::Number, &["1_000"]), yes("1000"));
        assert_eq!(read(Kind::Number, &["1\nx = 2"]), None);
        assert_eq!(read(Kind::Number, &["1.5"]), None);
        assert_eq!(read(Kind::Truth, &["true"]), yes("true"));
        assert_eq!(read(Kind::Texts, &["a", "b"]), yes("[\"a\", \"b\"]"));
        assert_eq!(read(Kind::Texts, &["[\"a\"]"]), yes("[\"a\"]"));
        assert_eq!(read(Kind::Texts, &["[]"]), yes("[]"));
        assert_eq!(read(Kind::Tables, &["{ a = 1 }"]), yes("[{ a = 1 }]"));
        assert_eq!(read(Kind::Tables, &["1"]), None);
    }
}
