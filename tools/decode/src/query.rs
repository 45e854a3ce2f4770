//! The choice of operations: an LDAP filter (RFC 4515) over their attributes.
//!
//! `(&(op=search)(code>=1)(latency>=10ms)(filter=*mail*))`. Text is compared without regard to case;
//! a field that an operation has not, such as the latency of one without an answer, is matched by
//! nothing but a `!`.

mod field;

use crate::operation::Operation;
use field::{FIELDS, Field, Kind, Value};
use keyway_codec::Filter;
use keyway_codec::definitions::nearest;
use std::borrow::Cow;
use std::fmt;

pub use field::help;
pub(crate) use field::{end, mechanism, scope, user};

/// A filter that was understood.
#[derive(Debug, Clone)]
pub struct Query {
    root: Node,
}

#[derive(Debug, Clone)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Test(Field, Test),
}

#[derive(Debug, Clone)]
enum Test {
    Present,
    Equal(Vec<u8>),
    /// The text at the beginning, the texts within, and the text at the end.
    Pieces(Vec<u8>, Vec<Vec<u8>>, Vec<u8>),
    Contains(Vec<u8>),
    Number(Order, u64),
    TextOrder(Order, Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Same,
    AtLeast,
    AtMost,
}

/// Why a filter is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError(String);

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueryError {}

impl Query {
    /// Reads a filter.
    ///
    /// # Errors
    /// If it is none, names a field that there is not, or has a value that a field cannot have.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let filter = Filter::parse(text).map_err(|why| QueryError(format!("{why}, in {text}")))?;
        Ok(Query { root: Node::new(&filter)? })
    }

    /// Whether an operation is meant.
    #[must_use]
    pub fn matches(&self, operation: &Operation<'_>) -> bool {
        self.root.matches(operation)
    }
}

impl Node {
    fn new(filter: &Filter<'_>) -> Result<Self, QueryError> {
        let all = |terms: &[Filter<'_>]| terms.iter().map(Node::new).collect::<Result<_, _>>();
        Ok(match filter {
            Filter::And(terms) => Node::And(all(terms)?),
            Filter::Or(terms) => Node::Or(all(terms)?),
            Filter::Not(term) => Node::Not(Box::new(Node::new(term)?)),
            Filter::Present(name) => Node::Test(field(name)?, Test::Present),
            Filter::Equality { attribute, value } => ordered(attribute, Order::Same, value)?,
            Filter::GreaterOrEqual { attribute, value } => {
                ordered(attribute, Order::AtLeast, value)?
            }
            Filter::LessOrEqual { attribute, value } => ordered(attribute, Order::AtMost, value)?,
            Filter::Approx { attribute, value } => {
                Node::Test(field(attribute)?, Test::Contains(value.to_vec()))
            }
            Filter::Substrings { attribute, initial, any, last } => {
                let owned = |piece: &Option<Cow<'_, [u8]>>| {
                    piece.as_ref().map(|piece| piece.to_vec()).unwrap_or_default()
                };
                let any = any.iter().map(|piece| piece.to_vec()).collect();
                Node::Test(field(attribute)?, Test::Pieces(owned(initial), any, owned(last)))
            }
            Filter::Extensible { .. } => {
                return Err(QueryError(
                    "':=' means nothing here: use = ~= (contains) >= <= and *".to_owned(),
                ));
            }
        })
    }

    fn matches(&self, operation: &Operation<'_>) -> bool {
        match self {
            Node::And(terms) => terms.iter().all(|term| term.matches(operation)),
            Node::Or(terms) => terms.iter().any(|term| term.matches(operation)),
            Node::Not(term) => !term.matches(operation),
            Node::Test(field, test) => field.any(operation, &mut |value| test.holds(&value)),
        }
    }
}

fn field(name: &str) -> Result<Field, QueryError> {
    if let Some(field) = Field::named(name) {
        return Ok(field);
    }
    let names = || FIELDS.iter().map(|(name, ..)| *name);
    Err(QueryError(match nearest(name, names()) {
        Some(meant) => format!("there is no field {name}; {meant} is one"),
        None => {
            let all: Vec<_> = names().collect();
            format!("there is no field {name}; there are {}", all.join(", "))
        }
    }))
}

fn ordered(name: &str, order: Order, value: &[u8]) -> Result<Node, QueryError> {
    let field = field(name)?;
    let text = String::from_utf8_lossy(value);
    let number = |number: Option<u64>, like: &str| {
        number
            .map(|number| Test::Number(order, number))
            .ok_or_else(|| QueryError(format!("{name} is a {like}, which '{text}' is not")))
    };
    let test = match field.kind() {
        Kind::Time => number(duration_ns(&text), "time such as 10ms, 250us or 1.5s")?,
        Kind::Number => number(text.parse().ok(), "number")?,
        Kind::Code => number(code(&text), "result code, as a number or by its name")?,
        Kind::Text if order == Order::Same => {
            known(name, field, &text)?;
            Test::Equal(value.to_vec())
        }
        Kind::Text => Test::TextOrder(order, value.to_vec()),
    };
    Ok(Node::Test(field, test))
}

/// Refuses a value that a field never has.
fn known(name: &str, field: Field, text: &str) -> Result<(), QueryError> {
    let Some(values) = field.values() else { return Ok(()) };
    if values.iter().any(|value| value.eq_ignore_ascii_case(text)) {
        return Ok(());
    }
    Err(QueryError(match nearest(text, values.iter().copied()) {
        Some(meant) => format!("{name} is never '{text}'; {meant} is one it can be"),
        None => format!("{name} is never '{text}'; it can be {}", values.join(", ")),
    }))
}

/// Nanoseconds of `10ms`; a number without a unit is of milliseconds.
fn duration_ns(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" | "" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some((number * unit).round() as u64)
}

fn code(text: &str) -> Option<u64> {
    use keyway_codec::message::ResultCode;
    let named = ResultCode::ALL.iter().find(|code| code.name().eq_ignore_ascii_case(text));
    text.parse().ok().or(named.map(|code| u64::from(code.code())))
}

impl Test {
    fn holds(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Test::Present, _) => true,
            (Test::Number(order, wanted), Value::Number(number)) => match order {
                Order::Same => number == wanted,
                Order::AtLeast => number >= wanted,
                Order::AtMost => number <= wanted,
            },
            (Test::Equal(wanted), Value::Text(text)) => text.eq_ignore_ascii_case(wanted),
            (Test::Contains(piece), value) => with_text(value, |text| find(text, piece).is_some()),
            (Test::Pieces(initial, any, last), value) => {
                with_text(value, |text| has_pieces(text, initial, any, last))
            }
            (Test::TextOrder(order, wanted), Value::Text(text)) => {
                let ordering = text.to_ascii_lowercase().cmp(&wanted.to_ascii_lowercase());
                if *order == Order::AtLeast { ordering.is_ge() } else { ordering.is_le() }
            }
            _ => false,
        }
    }
}

fn with_text(value: &Value<'_>, holds: impl Fn(&[u8]) -> bool) -> bool {
    match value {
        Value::Text(text) => holds(text),
        Value::Number(number) => holds(number.to_string().as_bytes()),
    }
}

fn has_pieces(text: &[u8], initial: &[u8], any: &[Vec<u8>], last: &[u8]) -> bool {
    let begins = text.get(..initial.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(initial));
    if !begins {
        return false;
    }
    let mut rest = text.get(initial.len()..).unwrap_or_default();
    for piece in any {
        let Some(at) = find(rest, piece) else { return false };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    rest.len() >= last.len()
        && rest.get(rest.len() - last.len()..).is_some_and(|end| end.eq_ignore_ascii_case(last))
}

fn find(text: &[u8], piece: &[u8]) -> Option<usize> {
    if piece.is_empty() {
        return Some(0);
    }
    text.windows(piece.len()).position(|window| window.eq_ignore_ascii_case(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration_ns("10ms"), Some(10_000_000));
        assert_eq!(duration_ns("1.5s"), Some(1_500_000_000));
        assert_eq!(duration_ns("250us"), Some(250_000));
        assert_eq!(duration_ns("3"), Some(3_000_000));
        for bad in ["", "ms", "10 parsecs", "1.2.3s", "-1ms"] {
            assert_eq!(duration_ns(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let why = |text| Query::parse(text).unwrap_err().to_string();
        assert!(why("(latancy>=1ms)").contains("latency is one"));
        assert!(why("(latency>=fast)").contains("a time such as 10ms"));
        assert!(why("(code=nosuch)").contains("result code"));
        assert!(why("(zzzzzzzzz=1)").contains("there are op, "));
        assert!(why("(op:=search)").contains("means nothing here"));
        assert!(why("op=search").contains("begins with '('"));
        assert!(why("(op=serch)").contains("search is one"));
        assert!(why("(scope=tree)").contains("base, one, sub"));
        assert!(Query::parse("(op=passwd)").is_ok() && Query::parse("(op=*sea*)").is_ok());
        assert!(Query::parse("(result=Success)").is_ok());
        assert!(Query::parse("(code>=invalidCredentials)").is_ok());
    }

    #[test]
    fn pieces_come_in_order() {
        let has = |text: &str, initial: &str, any: &[&str], last: &str| {
            let any: Vec<_> = any.iter().map(|piece| piece.as_bytes().to_vec()).collect();
            has_pieces(text.as_bytes(), initial.as_bytes(), &any, last.as_bytes())
        };
        assert!(has("(MAIL=a)", "", &["mail"], ""));
        assert!(has("abcde", "a", &["c"], "e"));
        assert!(!has("abc", "ab", &[], "bc"));
        assert!(!has("acb", "", &["b", "c"], ""));
    }
}
