//! The instructions that a value is made of, and what they write.

use crate::cursor::{Cursor, Frame};
use crate::entry::Entry;
use crate::error::MakeError;
use crate::limits::ENTRY_BYTES_MAX;
use crate::list::{List, Pick};
use crate::number::{push, push_hex, push_padded, push_signed};
use crate::plan::{Kind, Plan};
use crate::random::{Random, permuted};
use crate::{exec, names, time};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

/// Part of a value.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    First,
    Last,
    Sequential { start: i64, over_all: bool },
    Letters { letters: Letters, least: u64, most: u64 },
    Number { least: i64, span: u64, width: usize },
    Telephone,
    Month { characters: usize },
    Guid,
    /// Random bytes, as they are or in base64.
    Bytes { least: u64, most: u64, base64: bool },
    Choice { list: Arc<List>, pick: Pick },
    Attribute { lines: Vec<usize>, characters: Option<usize> },
    Dn { part: isize, underscore: bool },
    Rdn { part: Option<usize> },
    /// 1 is the parent.
    Ancestor { depth: usize, underscore: bool },
    /// The lines of the attribute in each kind that may be the parent.
    Parent { lines: Vec<Vec<usize>>, characters: Option<usize> },
    Loop { first: i64 },
    Encoded { charset: Charset, base64: bool, pieces: Vec<Piece> },
    Field(usize),
    Exec(Vec<String>),
    /// The name of an entry of [`crate::plan::Line::reference`].
    Reference,
    Zipf(Pick),
    Normal { mean: f64, deviation: f64, least: i64, most: i64 },
    Timestamp { from: u64, to: u64 },
    Unique { letters: Letters, length: u32, size: u64, key: u64 },
}

/// What random characters are taken from.
#[derive(Clone, Debug)]
pub(crate) enum Letters {
    Ascii(Vec<u8>),
    Wide(Vec<char>),
}

/// What `<base64>` encodes text in first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Latin1,
    Utf16 { little: bool, mark: bool },
}

/// Whether a line is there.
#[derive(Debug)]
pub(crate) enum Condition {
    /// Where a random number below 2^32 is below this.
    Presence(u64),
    /// Where one of these lines is (with this value), or is not.
    If { lines: Vec<usize>, value: Option<Vec<u8>>, present: bool },
}

/// What `<ref>` refers to.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) kind: usize,
    /// How many there are.
    pub(crate) total: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// How the sizes between are distributed.
    pub(crate) sizes: Pick,
}

/// A walk through the entries that a line refers to, none of which it meets twice.
#[derive(Clone, Copy, Default)]
pub(crate) struct Walk {
    start: u64,
    step: u64,
}

impl Reference {
    /// How many are referred to.
    pub(crate) fn times(&self, random: &mut Random) -> u64 {
        let span = self.most.saturating_sub(self.least).saturating_add(1);
        (self.least + self.sizes.choose(span, 0, random)).min(self.total)
    }

    pub(crate) fn walk(&self, random: &mut Random) -> Walk {
        let start = random.below(self.total);
        let mut step = random.below(self.total).max(1);
        while common_divisor(step, self.total) != 1 {
            step += 1;
        }
        Walk { start, step }
    }

    fn at(&self, walk: Walk, copy: u64) -> u64 {
        let far = u128::from(walk.start) + u128::from(walk.step) * u128::from(copy);
        (far % u128::from(self.total.max(1))) as u64
    }
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// What a value is made for.
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

/// Which value of a line it is.
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
        others: &mut Option<&mut Cursor>,
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
            Piece::Number { least, span, width } => {
                push_signed(text, least.wrapping_add_unsigned(random.below(*span)), *width);
            }
            Piece::Telephone => push_telephone(text, random.below(10_000_000_000)),
            Piece::Month { characters } => {
                let month = time::MONTHS.get(random.below(12) as usize).copied().unwrap_or_default();
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
                    let to = end_of(entry.text.get(from..to).unwrap_or_default(), *characters) + from;
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
                if let (Some(reference), Some(others)) = (turn.reference, others.as_deref_mut()) {
                    others.seek_of(
                        scene.plan,
                        reference.kind,
                        reference.at(turn.walk, turn.copy),
                    )?;
                    entry.text.extend_from_slice(others.dn().as_bytes());
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

    /// Appends itself, if it is the same in every entry.
    pub(crate) fn write_fixed(&self, text: &mut Vec<u8>) {
        if let Piece::Text(plain) = self {
            text.extend_from_slice(plain);
        }
    }

    /// Whether all it can write is safe in a line of LDIF, and whether it begins and ends so.
    pub(crate) fn shape(&self, lines_are_plain: &dyn Fn(&[usize]) -> bool, plan: &Plan) -> Shape {
        match self {
            Piece::Text(text) => Shape {
                safe: crate::list::is_safe(text),
                starts: crate::list::starts_well(text),
                ends: crate::list::ends_well(text),
            },
            Piece::First => Shape::all(plan.first_names.is_plain),
            Piece::Last => Shape::all(plan.last_names.is_plain),
            Piece::Choice { list, .. } => Shape::all(list.is_plain),
            Piece::Letters { letters: Letters::Ascii(letters), least, .. } => {
                let well = letters.iter().all(|it| !b" :<".contains(it)) && *least > 0;
                Shape { safe: crate::list::is_safe(letters), starts: well, ends: well }
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

/// What can be said of all that a piece writes.
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

impl Letters {
    pub(crate) fn new(text: &str) -> Letters {
        match text.is_ascii() {
            true => Letters::Ascii(text.as_bytes().to_vec()),
            false => Letters::Wide(text.chars().collect()),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Letters::Ascii(letters) => letters.len() as u64,
            Letters::Wide(letters) => letters.len() as u64,
        }
    }

    #[inline]
    fn push_at(&self, out: &mut Vec<u8>, at: usize) {
        match self {
            Letters::Ascii(letters) => out.extend(letters.get(at)),
            Letters::Wide(letters) => {
                let letter = letters.get(at).copied().unwrap_or_default();
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    fn push(&self, out: &mut Vec<u8>, count: u64, random: &mut Random) {
        let size = self.len();
        let mut drawn = 0;
        for turn in 0..count {
            // One draw has enough for two of at most 2^16 letters.
            drawn = if turn % 2 == 0 { random.next() } else { drawn << 32 };
            let at = ((drawn >> 32) * size) >> 32;
            self.push_at(out, at as usize);
        }
    }
}

impl Charset {
    pub(crate) fn named(name: &str) -> Option<Charset> {
        let utf16 = |little, mark| Some(Charset::Utf16 { little, mark });
        match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "utf8" | "usascii" | "ascii" => Some(Charset::Utf8),
            "iso88591" | "latin1" => Some(Charset::Latin1),
            "utf16le" | "unicodelittleunmarked" => utf16(true, false),
            "utf16be" | "unicodebigunmarked" => utf16(false, false),
            "utf16" | "unicode" | "unicodebig" => utf16(false, true),
            "unicodelittle" => utf16(true, true),
            _ => None,
        }
    }

    fn push(self, out: &mut Vec<u8>, text: &[u8], base64: bool) {
        let text = String::from_utf8_lossy(text);
        let bytes: Vec<u8> = match self {
            Charset::Utf8 => text.into_owned().into_bytes(),
            Charset::Latin1 => text.chars().map(|it| u8::try_from(it).unwrap_or(b'?')).collect(),
            Charset::Utf16 { little, mark } => {
                let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
                let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
                units.flat_map(bytes).collect()
            }
        };
        match base64 {
            true => out.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
            false => out.extend_from_slice(&bytes),
        }
    }
}

/// `+1 225 216 5900`
fn push_telephone(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(b"+1 ");
    push_padded(out, number / 10_000_000, 3);
    out.push(b' ');
    push_padded(out, number / 10_000 % 1_000, 3);
    out.push(b' ');
    push_padded(out, number % 10_000, 4);
}

/// RFC 9562, version 4.
fn push_guid(out: &mut Vec<u8>, high: u64, low: u64) {
    let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    push_hex(out, high >> 32, 8);
    out.push(b'-');
    push_hex(out, high >> 16, 4);
    out.push(b'-');
    push_hex(out, high, 4);
    out.push(b'-');
    push_hex(out, low >> 48, 4);
    out.push(b'-');
    push_hex(out, low, 12);
}

fn push_bytes(out: &mut Vec<u8>, count: u64, base64: bool, random: &mut Random) {
    // Base64 is asked for in characters.
    let count = if base64 { count * 3 / 4 } else { count } as usize;
    let from = out.len();
    while out.len() < from + count {
        out.extend_from_slice(&random.next().to_le_bytes());
    }
    out.truncate(from + count);
    if base64 {
        let bytes = out.split_off(from);
        out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    }
}

/// Where so many characters of a value end.
fn end_of(value: &[u8], characters: Option<usize>) -> usize {
    let Some(characters) = characters else { return value.len() };
    let starts = value.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
    starts.map(|(at, _)| at).nth(characters).unwrap_or(value.len())
}

fn push_dn(out: &mut Vec<u8>, dn: &str, underscore: bool) {
    let from = out.len();
    out.extend_from_slice(dn.as_bytes());
    if underscore {
        for byte in out.get_mut(from..).unwrap_or_default() {
            *byte = if *byte == b',' { b'_' } else { *byte };
        }
    }
}

/// The first so many RDNs of a name, or with a negative number the last so many; all for 0.
fn rdns(dn: &str, part: isize) -> &str {
    match part {
        0 => dn,
        1.. => {
            let end = commas(dn).nth(part as usize - 1).unwrap_or(dn.len());
            dn.get(..end).unwrap_or(dn)
        }
        _ => {
            let skipped = (commas(dn).count() + 1).saturating_sub(part.unsigned_abs());
            without(dn, skipped)
        }
    }
}

/// A name without its first so many RDNs.
fn without(dn: &str, count: usize) -> &str {
    match count {
        0 => dn,
        count => commas(dn).nth(count - 1).and_then(|at| dn.get(at + 1..)).unwrap_or_default(),
    }
}

/// Where the RDNs of a name end, but for the last.
fn commas(dn: &str) -> impl Iterator<Item = usize> {
    let mut escaped = false;
    dn.bytes().enumerate().filter_map(move |(at, byte)| {
        let is_escaped = escaped;
        escaped = byte == b'\\' && !is_escaped;
        (byte == b',' && !is_escaped).then_some(at)
    })
}

/// The RDN, or the so-many-th of its parts, counted from 1.
fn values_of_rdn(rdn: &str, part: Option<usize>) -> &str {
    let Some(part) = part else { return rdn };
    let mut escaped = false;
    let mut parts = rdn.split(move |sign: char| {
        let is_escaped = escaped;
        escaped = sign == '\\' && !is_escaped;
        sign == '+' && !is_escaped
    });
    parts.nth(part.saturating_sub(1)).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_names() {
        let dn = r"cn=a\,b+sn=c,ou=d,dc=e";
        assert_eq!(rdns(dn, 0), dn);
        assert_eq!(rdns(dn, 1), r"cn=a\,b+sn=c");
        assert_eq!(rdns(dn, -2), "ou=d,dc=e");
        assert_eq!((rdns(dn, 9), rdns(dn, -9)), (dn, dn));
        assert_eq!((without(dn, 2), without(dn, 3)), ("dc=e", ""));
        assert_eq!(values_of_rdn(rdns(dn, 1), Some(2)), "sn=c");
        assert_eq!(values_of_rdn(rdns(dn, 1), Some(1)), r"cn=a\,b");
    }

    #[test]
    fn values_are_cut_at_characters() {
        assert_eq!(end_of("Žofie".as_bytes(), Some(1)), 2);
        assert_eq!(end_of(b"ab", Some(5)), 2);
        assert_eq!(end_of(b"ab", None), 2);
    }

    #[test]
    fn charsets() {
        let mut out = Vec::new();
        Charset::named("UnicodeLittleUnmarked").unwrap().push(&mut out, b"\"a\"", true);
        assert_eq!(out, b"IgBhACIA");
        assert_eq!(Charset::named("EBCDIC"), None);
    }
}
