//! The instructions that a value is made of.

use crate::letters::{Charset, Letters};
use crate::list::{List, Pick};
use crate::number::NumberForm;
use std::sync::Arc;

/// Part of a value.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    First,
    Last,
    Sequential {
        start: i64,
        over_all: bool,
    },
    Letters {
        letters: Letters,
        least: u64,
        most: u64,
    },
    Number {
        least: i64,
        span: u64,
        form: NumberForm,
    },
    Telephone,
    Month {
        characters: usize,
    },
    Guid,
    /// Random bytes, as they are or in base64.
    Bytes {
        least: u64,
        most: u64,
        base64: bool,
    },
    Choice {
        list: Arc<List>,
        pick: Pick,
    },
    Attribute {
        lines: Vec<usize>,
        characters: Option<usize>,
    },
    Dn {
        part: isize,
        underscore: bool,
    },
    Rdn {
        part: Option<usize>,
    },
    /// 1 is the parent.
    Ancestor {
        depth: usize,
        underscore: bool,
    },
    /// The lines of the attribute in each kind that may be the parent.
    Parent {
        lines: Vec<Vec<usize>>,
        characters: Option<usize>,
    },
    Loop {
        first: i64,
    },
    Encoded {
        charset: Charset,
        base64: bool,
        pieces: Vec<Piece>,
    },
    Field(usize),
    Exec(Vec<String>),
    /// The name of an entry of [`crate::plan::Line::reference`].
    Reference,
    Zipf(Pick),
    Normal {
        mean: f64,
        deviation: f64,
        least: i64,
        most: i64,
    },
    Timestamp {
        from: u64,
        to: u64,
    },
    Unique {
        letters: Letters,
        length: u32,
        size: u64,
        key: u64,
    },
}

/// Whether a line is there.
#[derive(Debug)]
pub(crate) enum Condition {
    /// Where a random number below 2^32 is below this.
    Presence(u64),
    /// Where one of these lines is (with this value), or is not.
    If { lines: Vec<usize>, value: Option<Vec<u8>>, present: bool },
}

impl Piece {
    /// Appends itself, if it is the same in every entry.
    pub(crate) fn write_fixed(&self, text: &mut Vec<u8>) {
        if let Piece::Text(plain) = self {
            text.extend_from_slice(plain);
        }
    }
}
