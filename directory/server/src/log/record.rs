//! A line of a log, before it is written.

use std::fmt;
use std::time::SystemTime;

/// Which log a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Operations and connections of clients.
    Access,
    /// Events that concern the server itself.
    Error(Severity),
    /// Changes: who, what, when.
    Audit,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warning,
    /// Something does not work or is lost.
    Error,
}

/// Which operations get into the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// None.
    Off = 0,
    /// Those that failed or were refused, and connections that were.
    Refused = 1,
    /// All, and the beginning and end of each connection.
    Everything = 2,
}

/// A line to be.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub at: SystemTime,
    /// Where it belongs.
    pub kind: LogKind,
    /// The event, as a word for programs.
    pub event: &'a str,
    /// The facts of it, in this order.
    pub fields: &'a [Field<'a>],
}

/// A name, which is a word for programs, and its value.
pub type Field<'a> = (&'static str, Value<'a>);

/// The value of a field.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// The field is left out.
    None,
    /// A number; its unit is in the field's name.
    Number(u64),
    /// Text, from anywhere: it may have any character in it.
    Text(&'a str),
    /// Text that is made when it is written.
    Shown(&'a (dyn fmt::Display + Sync)),
    /// Several texts.
    List(&'a [String]),
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("-"),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
            Value::Shown(shown) => write!(f, "{shown}"),
            Value::List(list) => list.fmt(f),
        }
    }
}

impl<'a> Value<'a> {
    /// A text, or nothing if it is empty.
    pub fn filled(text: &'a str) -> Value<'a> {
        if text.is_empty() { Value::None } else { Value::Text(text) }
    }
}
