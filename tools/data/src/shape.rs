//! The properties that are known beforehand of all output of a piece.

use crate::letters::Letters;
use crate::list::{Pick, ends_well, is_safe, starts_well};
use crate::piece::Piece;
use crate::plan::Plan;

/// The properties of all output of a piece.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) safe: bool,
    /// Not empty, and its first sign may begin a value.
    pub(crate) starts: bool,
    /// Not empty, and its last sign is no blank.
    pub(crate) ends: bool,
}

impl Shape {
    fn all(well: bool) -> Shape {
        Shape { safe: well, starts: well, ends: well }
    }
}

impl Piece {
    /// Whether all it can write is safe in a line of LDIF, and whether it begins and ends so.
    pub(crate) fn shape(&self, lines_are_plain: &dyn Fn(&[usize]) -> bool, plan: &Plan) -> Shape {
        match self {
            Piece::Text(text) => {
                Shape { safe: is_safe(text), starts: starts_well(text), ends: ends_well(text) }
            }
            Piece::First => Shape::all(plan.first_names.is_plain),
            Piece::Last => Shape::all(plan.last_names.is_plain),
            Piece::Choice { list, .. } => Shape::all(list.is_plain),
            Piece::Letters { letters: Letters::Ascii(letters), least, .. } => {
                let well = letters.iter().all(|it| !b" :<".contains(it)) && *least > 0;
                Shape { safe: is_safe(letters), starts: well, ends: well }
            }
            Piece::Unique { letters: Letters::Ascii(_), .. }
            | Piece::Sequential { .. }
            | Piece::Number { .. }
            | Piece::Telephone
            | Piece::Guid
            | Piece::Loop { .. }
            | Piece::Zipf(_)
            | Piece::Normal { .. }
            | Piece::Timestamp { .. } => Shape::all(true),
            Piece::Month { characters } => Shape::all(*characters > 0),
            Piece::Bytes { least, base64: true, .. } => Shape::all(*least > 0),
            Piece::Attribute { lines, characters: None } => Shape::all(lines_are_plain(lines)),
            // Cut off, it may end in a blank.
            Piece::Attribute { lines, characters: Some(1..) } => {
                let plain = lines_are_plain(lines);
                Shape { safe: plain, starts: plain, ends: false }
            }
            _ => Shape::all(false),
        }
    }

    /// Whether chance is in it.
    pub(crate) fn is_drawn(&self) -> bool {
        match self {
            Piece::Letters { .. }
            | Piece::Telephone
            | Piece::Month { .. }
            | Piece::Guid
            | Piece::Bytes { .. }
            | Piece::Reference
            | Piece::Zipf(_)
            | Piece::Normal { .. }
            | Piece::Timestamp { .. } => true,
            Piece::Number { span, .. } => *span > 1,
            Piece::Choice { list, pick } => list.len() > 1 && !matches!(pick, Pick::Sequential),
            Piece::Encoded { pieces, .. } => pieces.iter().any(Piece::is_drawn),
            _ => false,
        }
    }
}
