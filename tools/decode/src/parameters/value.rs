//! A value that was taken apart.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, json};

/// The contents of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
    /// A number, and what it means.
    Named(i64, String),
    /// Yes or no.
    Flag(bool),
    /// Octets that nothing more is known of.
    Octets(Vec<u8>),
    /// Fields by their names.
    Fields(Vec<(&'static str, Value)>),
    /// Any number of values of a kind.
    List(Vec<Value>),
}

impl Value {
    /// Tells of all that is not made of parts: by its path, such as `keys[0].attribute`, and as
    /// octets of text, which may not be fit for a terminal. The path is empty where the value has
    /// no parts.
    pub fn leaves(&self, tell: &mut dyn FnMut(&str, &[u8])) {
        self.leaves_below(String::new(), tell);
    }

    fn leaves_below(&self, path: String, tell: &mut dyn FnMut(&str, &[u8])) {
        match self {
            Value::Fields(fields) => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    value.leaves_below(format!("{path}{dot}{name}"), tell);
                }
            }
            Value::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    value.leaves_below(format!("{path}[{index}]"), tell);
                }
            }
            Value::Text(text) => tell(&path, text.as_bytes()),
            Value::Number(number) => tell(&path, number.to_string().as_bytes()),
            Value::Named(number, name) => tell(&path, format!("{number} ({name})").as_bytes()),
            Value::Flag(flag) => tell(&path, flag.to_string().as_bytes()),
            Value::Octets(octets) => tell(&path, octets),
        }
    }

    /// As JSON. Octets that are no UTF-8 are `{"base64": "..."}`; a number with a meaning is
    /// `{"number": n, "name": "..."}`.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) => text.as_str().into(),
            Value::Number(number) => (*number).into(),
            Value::Named(number, name) => json!({ "number": number, "name": name }),
            Value::Flag(flag) => (*flag).into(),
            Value::Octets(octets) => match std::str::from_utf8(octets) {
                Ok(text) => text.into(),
                Err(_) => json!({ "base64": STANDARD.encode(octets) }),
            },
            Value::Fields(fields) => {
                let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.json()));
                serde_json::Value::Object(fields.collect::<Map<_, _>>())
            }
            Value::List(values) => values.iter().map(Value::json).collect(),
        }
    }
}
