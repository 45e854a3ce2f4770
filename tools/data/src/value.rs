//! The output of the instructions.

use crate::dn::{push_dn, rdns, values_of_rdn, without};
use crate::entry::{Entry, Frame};
use crate::error::MakeError;
use crate::letters::{push_bytes, push_guid, push_telephone};
use crate::limits::ENTRY_BYTES_MAX;
use crate::number::{push, push_signed};
use crate::piece::Piece;
use crate::plan::{Kind, Plan};
use crate::random::{Random, permuted};
use crate::reference::{Reference, Walk};
use crate::{exec, names, time};

/// Appends the name of another entry, by its kind and its number among those of that kind.
pub(crate) type SomeName<'a> = &'a mut dyn FnMut(usize, u64, &mut Vec<u8>) -> Result<(), MakeError>;

/// The entry that a value is made for.
pub(crate) struct Scene<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) kind: &'a Kind,
    /// The entry's own frame.
    pub(crate) index: u64,
    pub(crate) ordinal: u64,
    pub(crate) names: u64,
    pub(crate) in_parent: u64,
    /// The entries above it, the topmost first.
    pub(crate) above: &'a [Frame],
}

/// The turn of one of a line's values.
pub(crate) struct Turn<'a> {
    pub(crate) copy: u64,
    pub(crate) walk: Walk,
    pub(crate) reference: Option<&'a Reference>,
}

impl Piece {
    /// Appends itself to the text of an entry.
    #[inline]
    pub(crate) fn write(
        &self,
        scene: &Scene<'_>,
        turn: &Turn<'_>,
        random: &mut Random,
        entry: &mut Entry,
        others: &mut Option<SomeName<'_>>,
    ) -> Result<(), MakeError> {
        let text = &mut entry.text;
        match self {
            Piece::Text(plain) => text.extend_from_slice(plain),
            Piece::First => text.extend_from_slice(names::first(scene.plan, scene.names)),
            Piece::Last => names::push_last(scene.plan, scene.names, text),
            Piece::Sequential { start, over_all } => {
                let count = if *over_all { scene.ordinal } else { scene.in_parent };
                push_signed(text, start.wrapping_add_unsigned(count), 1);
            }
            Piece::Letters { letters, least, most } => {
                letters.push(text, random.between(*least, *most), random);
            }
            Piece::Number { least, span, form } => {
                form.push(text, least.wrapping_add_unsigned(random.below(*span)));
            }
            Piece::Telephone => push_telephone(text, random.below(10_000_000_000)),
            Piece::Month { characters } => {
                let month =
                    time::MONTHS.get(random.below(12) as usize).copied().unwrap_or_default();
                text.extend_from_slice(month.get(..*characters).unwrap_or(month).as_bytes());
            }
            Piece::Guid => push_guid(text, random.next(), random.next()),
            Piece::Bytes { least, most, base64 } => {
                push_bytes(text, random.between(*least, *most), *base64, random);
            }
            Piece::Choice { list, pick } => {
                let at = pick.choose(list.len() as u64, scene.ordinal, random);
                text.extend_from_slice(list.get(at as usize));
            }
            Piece::Attribute { lines, characters } => {
                if let Some((from, to)) = entry.first_of(lines) {
                    let to =
                        end_of(entry.text.get(from..to).unwrap_or_default(), *characters) + from;
                    entry.text.extend_from_within(from..to);
                }
            }
            Piece::Dn { part, underscore } => push_dn(text, rdns(&entry.dn, *part), *underscore),
            Piece::Rdn { part } => {
                text.extend_from_slice(values_of_rdn(rdns(&entry.dn, 1), *part).as_bytes());
            }
            Piece::Ancestor { depth, underscore } => {
                push_dn(text, ancestor(scene.above, &entry.dn, *depth), *underscore);
            }
            Piece::Parent { lines, characters } => {
                let parent = scene.above.last();
                let lines = parent.and_then(|parent| lines.get(parent.kind));
                if let (Some(parent), Some(lines)) = (parent, lines)
                    && let Some((from, to)) = parent.entry.first_of(lines)
                {
                    let value = parent.entry.text.get(from..to).unwrap_or_default();
                    let value = value.get(..end_of(value, *characters)).unwrap_or_default();
                    text.extend_from_slice(value);
                }
            }
            Piece::Loop { first } => push_signed(text, first.wrapping_add_unsigned(turn.copy), 1),
            Piece::Encoded { charset, base64, pieces } => {
                let from = text.len();
                for piece in pieces {
                    piece.write(scene, turn, random, entry, others)?;
                }
                let inner = entry.text.split_off(from);
                charset.push(&mut entry.text, &inner, *base64);
            }
            Piece::Field(field) => {
                let rows = scene.plan.table.as_deref().map(|table| table.rows.as_slice());
                let row = rows.and_then(|rows| rows.get(scene.ordinal as usize));
                let field = row.and_then(|row| row.get(*field));
                text.extend_from_slice(field.map(String::as_bytes).unwrap_or_default());
            }
            Piece::Exec(command) => text.extend_from_slice(&exec::output(command)?),
            Piece::Reference => {
                if let (Some(reference), Some(name)) = (turn.reference, others) {
                    name(reference.kind, reference.at(turn.walk, turn.copy), text)?;
                }
            }
            Piece::Zipf(pick) => push(text, pick.choose(0, 0, random) + 1),
            Piece::Normal { mean, deviation, least, most } => {
                let drawn = mean + deviation * random.normal() as f64 / 65_536.0;
                push_signed(text, (drawn.round() as i64).clamp(*least, *most), 1);
            }
            Piece::Timestamp { from, to } => {
                time::push_generalized(text, random.between(*from, *to));
            }
            Piece::Unique { letters, length, size, key } => {
                let mut number = permuted(scene.ordinal % size, *size, *key);
                for _ in 0..*length {
                    letters.push_at(text, (number % letters.len()) as usize);
                    number /= letters.len();
                }
            }
        }
        match entry.text.len() <= ENTRY_BYTES_MAX {
            true => Ok(()),
            false => Err(MakeError::TooLarge { entry: scene.index, attribute: String::new() }),
        }
    }
}

/// The name of the entry so many above; of branches also of those that no template makes.
fn ancestor<'a>(above: &'a [Frame], own: &'a str, depth: usize) -> &'a str {
    match above.len().checked_sub(depth).and_then(|at| above.get(at)) {
        Some(frame) => &frame.entry.dn,
        None => match above.first() {
            Some(top) => without(&top.entry.dn, depth - above.len()),
            None => without(own, depth),
        },
    }
}

/// Where so many characters of a value end.
fn end_of(value: &[u8], characters: Option<usize>) -> usize {
    let Some(characters) = characters else { return value.len() };
    let starts = value.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
    starts.map(|(at, _)| at).nth(characters).unwrap_or(value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_at_characters() {
        assert_eq!(end_of("Žofie".as_bytes(), Some(1)), 2);
        assert_eq!(end_of(b"ab", Some(5)), 2);
        assert_eq!(end_of(b"ab", None), 2);
    }
}
