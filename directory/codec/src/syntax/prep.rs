//! Preparation of strings for comparison, RFC 4518.
//!
//! The steps are those of its section 2. Two points where the letter of 2006 is not kept:
//!
//! - The repertoire is that of the Unicode tables linked in, not of Unicode 3.2, so that names and
//!   signs of the years since match. Code points that are unassigned in *these* tables are
//!   prohibited, so that a later version of the tables does not change a normal form (the stability
//!   policy of Unicode holds for assigned ones).
//! - The inner blanks of a substring become two, as those of the value do; the RFC's example with
//!   one could never match.

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{is_combining_mark, is_public_assigned};

/// Whether case is significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// It is.
    Exact,
    /// It is not: characters are case folded.
    Ignore,
}

/// The part that a string is: a whole value, or a piece of a substring assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// An attribute value, or the assertion of another rule than a substring rule.
    Whole,
    /// The beginning of a value.
    Initial,
    /// A piece within a value.
    Any,
    /// The end of a value.
    Final,
}

/// Prepares a string in which blanks are insignificant as § 2.6.1 says.
///
/// `None` if it is not UTF-8 or holds a prohibited character: the assertion is Undefined.
#[must_use]
pub fn string(value: &[u8], case: Case, part: Part) -> Option<Vec<u8>> {
    let mut spaced = Spaced::new(value.len(), part);
    if value.is_ascii() {
        ascii(value, case)
            .for_each(|byte| if byte == b' ' { spaced.blank() } else { spaced.push(byte) });
        return Some(spaced.finish());
    }
    let text = normalized(value, case)?;
    let mut buffer = [0; 4];
    for (c, significant) in significant(&text, |c| c == ' ') {
        if significant {
            c.encode_utf8(&mut buffer).bytes().for_each(|byte| spaced.push(byte));
        } else {
            spaced.blank();
        }
    }
    Some(spaced.finish())
}

/// Prepares a telephone number: case is ignored, blanks and hyphens are removed (§ 2.6.3).
///
/// `None` as for [`string`].
#[must_use]
pub fn telephone_number(value: &[u8]) -> Option<Vec<u8>> {
    if value.is_ascii() {
        return Some(
            ascii(value, Case::Ignore).filter(|byte| !matches!(byte, b' ' | b'-')).collect(),
        );
    }
    let text = normalized(value, Case::Ignore)?;
    let kept =
        significant(&text, |c| c == ' ' || is_hyphen(c)).filter(|(_, significant)| *significant);
    Some(kept.map(|(c, _)| c).collect::<String>().into_bytes())
}

/// Steps 2 and 3 for ASCII: mapping is all there is to do.
fn ascii(value: &[u8], case: Case) -> impl Iterator<Item = u8> {
    value.iter().filter_map(move |byte| match byte {
        b'\t'..=b'\r' => Some(b' '),
        0..=0x1f | 0x7f => None,
        _ if case == Case::Ignore => Some(byte.to_ascii_lowercase()),
        _ => Some(*byte),
    })
}

/// Steps 1 to 5: transcode, map, normalize, prohibit; bidirectional characters are ignored.
fn normalized(value: &[u8], case: Case) -> Option<String> {
    let mapped = str::from_utf8(value).ok()?.chars().filter_map(map);
    let text: String = match case {
        Case::Exact => mapped.nfkc().collect(),
        // Definition D146 of Unicode, composed. It does what table B.2 of RFC 3454 does, which
        // folds with NFKC in mind, for all characters there are now.
        Case::Ignore => {
            mapped.nfd().default_case_fold().nfkd().default_case_fold().nfkc().collect()
        }
    };
    text.chars().all(|c| is_public_assigned(c) && c != char::REPLACEMENT_CHARACTER).then_some(text)
}

/// Step 2: a character, a blank in its place, or nothing.
fn map(c: char) -> Option<char> {
    match c {
        '\u{9}'..='\u{d}' | '\u{85}' => Some(' '),
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' => Some(' '),
        '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        // Control characters and those with a control function.
        '\0'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' => None,
        '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}' => None,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2063}' | '\u{206a}'..='\u{206f}' => None,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' => None,
        '\u{e0001}' | '\u{e0020}'..='\u{e007f}' => None,
        // Soft hyphens, the grapheme joiner, variation selectors (for which the RFC's text says
        // FF00 where it means FE00) and the object replacement character.
        '\u{ad}' | '\u{1806}' | '\u{34f}' | '\u{180b}'..='\u{180d}' => None,
        '\u{fe00}'..='\u{fe0f}' | '\u{fffc}' => None,
        // Characters of the same kinds, younger than the RFC's lists.
        '\u{61c}' | '\u{180f}' | '\u{2064}' | '\u{2066}'..='\u{2069}' => None,
        '\u{e0100}'..='\u{e01ef}' => None,
        c => Some(c),
    }
}

/// Each character, and whether it is significant: one that `blank` knows is not, unless a
/// combining mark follows it (§ 2.6).
fn significant(text: &str, blank: impl Fn(char) -> bool) -> impl Iterator<Item = (char, bool)> {
    let following = text.chars().skip(1).map(Some).chain([None]);
    text.chars()
        .zip(following)
        .map(move |(c, following)| (c, !blank(c) || following.is_some_and(is_combining_mark)))
}

fn is_hyphen(c: char) -> bool {
    matches!(c, '-' | '\u{58a}' | '\u{2010}' | '\u{2011}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}')
}

/// Builds a string with its runs of blanks as § 2.6.1 wants them.
struct Spaced {
    out: Vec<u8>,
    part: Part,
    begun: bool,
    blank: bool,
}

impl Spaced {
    fn new(length: usize, part: Part) -> Self {
        Spaced { out: Vec::with_capacity(length + 2), part, begun: false, blank: false }
    }

    fn blank(&mut self) {
        self.blank = true;
    }

    fn push(&mut self, byte: u8) {
        if self.begun {
            if self.blank {
                self.out.extend_from_slice(b"  ");
            }
        } else if self.blank || matches!(self.part, Part::Whole | Part::Initial) {
            self.out.push(b' ');
        }
        self.begun = true;
        self.blank = false;
        self.out.push(byte);
    }

    fn finish(mut self) -> Vec<u8> {
        if !self.begun {
            self.out.extend_from_slice(if self.part == Part::Whole { b"  " } else { b" " });
        } else if self.blank || matches!(self.part, Part::Whole | Part::Final) {
            self.out.push(b' ');
        }
        self.out
    }
}

#[cfg(test)]
mod tests;
