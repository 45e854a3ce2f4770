//! How words sound, for approximate matches (RFC 4511 § 4.5.1.7.6 leaves open what those are).
//!
//! Each word of a text becomes a code of its consonants, after Lawrence Philips' Metaphone (1990):
//! spelling that is not heard is left out, letters that sound alike become one. Marks over letters
//! count for nothing. Words that have other signs than Latin letters, numbers above all, stand for
//! themselves.

use super::prep::{self, Case, Part};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Bytes of a code that are kept: longer words that begin alike are taken for one.
const CODE_BYTES_MAX: usize = 32;

/// The codes of the words of a text, in their order; none if it has no words.
///
/// `None` if it is no text, as [`prep::string`] says.
#[must_use]
pub fn sounds(value: &[u8]) -> Option<Vec<String>> {
    let prepared = String::from_utf8(prep::string(value, Case::Ignore, Part::Whole)?).ok()?;
    let plain: String = prepared.nfd().filter(|c| !is_combining_mark(*c)).collect();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    Some(words.map(sound).collect())
}

/// Whether codes that are asked for are among those of a value, in the same order.
#[must_use]
pub fn sounds_like(held: &[String], asked: &[String]) -> bool {
    let mut held = held.iter();
    asked.iter().all(|code| held.any(|one| one == code))
}

/// The code of one word in lower case.
fn sound(word: &str) -> String {
    let mut code = match word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => Word(word.as_bytes()).code(),
        false => word.to_owned(),
    };
    if code.is_empty() {
        // A letter that is not heard is all there is.
        code = word.to_owned();
    }
    code.truncate(code.floor_char_boundary(CODE_BYTES_MAX));
    code
}

/// ASCII letters in lower case.
struct Word<'w>(&'w [u8]);

impl Word<'_> {
    fn code(&self) -> String {
        let mut out = String::new();
        let mut at = self.start(&mut out);
        while let Some(letter) = self.0.get(at).copied() {
            let is_double = at > 0 && letter == self.at(at, -1) && letter != b'c';
            at += if is_double { 1 } else { self.letter(letter, at, &mut out) };
        }
        out
    }

    /// The letter so far from a place; 0 beyond the ends.
    fn at(&self, place: usize, offset: isize) -> u8 {
        let place = place.checked_add_signed(offset);
        place.and_then(|place| self.0.get(place)).copied().unwrap_or_default()
    }

    fn follows(&self, place: usize, letters: &str) -> bool {
        self.0.get(place..).is_some_and(|rest| rest.starts_with(letters.as_bytes()))
    }

    /// Letters with another sound at the beginning of a word; how many they are.
    fn start(&self, out: &mut String) -> usize {
        match (self.at(0, 0), self.at(0, 1)) {
            (b'k' | b'g' | b'p', b'n') | (b'w', b'r') | (b'a', b'e') => 1,
            (b'x', _) => {
                out.push('S');
                1
            }
            (b'w', b'h') => {
                out.push('W');
                2
            }
            _ => 0,
        }
    }

    /// Appends what is heard of a letter; how many letters that takes.
    fn letter(&self, letter: u8, at: usize, out: &mut String) -> usize {
        let next = self.at(at, 1);
        let (heard, taken) = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => (self.first_vowel(letter, out), 1),
            b'b' if next == 0 && self.at(at, -1) == b'm' => ("", 1),
            b'b' => ("B", 1),
            b'c' => self.c(at),
            b'd' if next == b'g' && is_front(self.at(at, 2)) => ("J", 2),
            b'd' => ("T", if next == b't' { 2 } else { 1 }),
            b'f' | b'v' => ("F", 1),
            b'g' => self.g(at),
            b'h' if at > 0 && matches!(self.at(at, -1), b'c' | b's' | b'p' | b't' | b'g') => {
                ("", 1)
            }
            b'h' => (if is_vowel(next) { "H" } else { "" }, 1),
            b'j' => ("J", 1),
            b'k' => ("K", 1),
            b'l' => ("L", 1),
            b'm' => ("M", 1),
            b'n' => ("N", 1),
            b'p' if next == b'h' => ("F", 2),
            b'p' => ("P", 1),
            b'q' => ("K", 1),
            b'r' => ("R", 1),
            b's' if self.follows(at, "sch") => ("X", 3),
            b's' if next == b'h' => ("X", 2),
            b's' if self.follows(at, "sio") || self.follows(at, "sia") => ("X", 1),
            b's' => ("S", 1),
            b't' if self.follows(at, "tia") || self.follows(at, "tio") => ("X", 1),
            b't' if self.follows(at, "tch") => ("", 1),
            b't' => ("T", 1),
            b'w' => (if is_vowel(next) { "W" } else { "" }, 1),
            // Elsewhere it is a vowel, or one with its neighbours: Meyer, Maier, Mayr.
            b'y' => (if at == 0 && is_vowel(next) { "Y" } else { "" }, 1),
            b'x' => ("KS", 1),
            b'z' => ("S", 1),
            _ => ("", 1),
        };
        out.push_str(heard);
        taken
    }

    fn c(&self, at: usize) -> (&'static str, usize) {
        let (before, next) = (self.at(at, -1), self.at(at, 1));
        match next {
            b'h' => ("X", 2),
            b'i' if self.at(at, 2) == b'a' => ("X", 1),
            b'k' | b'q' => ("K", 2),
            _ if is_front(next) => (if before == b's' { "" } else { "S" }, 1),
            _ => ("K", 1),
        }
    }

    fn g(&self, at: usize) -> (&'static str, usize) {
        let (before, next) = (self.at(at, -1), self.at(at, 1));
        let after = self.at(at, 2);
        match next {
            b'h' if is_vowel(after) => ("K", 2),
            b'h' => ("", 2),
            b'n' if after == 0 || self.follows(at, "gned") => ("", 1),
            _ if is_front(next) && before != b'g' => ("J", 1),
            _ => ("K", 1),
        }
    }

    /// Vowels are heard at the beginning only.
    fn first_vowel(&self, letter: u8, out: &str) -> &'static str {
        match letter {
            _ if !out.is_empty() || !self.0.first().copied().is_some_and(is_vowel) => "",
            b'a' => "A",
            b'e' => "E",
            b'i' => "I",
            b'o' => "O",
            _ => "U",
        }
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u')
}

/// Vowels before which c and g are soft.
fn is_front(letter: u8) -> bool {
    matches!(letter, b'e' | b'i' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alike(one: &str, other: &str) -> bool {
        sounds(one.as_bytes()) == sounds(other.as_bytes())
    }

    #[test]
    fn what_sounds_alike_has_one_code() {
        for (one, other) in [
            ("Smith", "smyth"),
            ("Meyer", "Maier"),
            ("Mayr", "Mayer"),
            ("Philip", "Filip"),
            ("Catherine", "Kathryn"),
            ("Müller", "Muller"),
            ("Stephen", "Steven"),
            ("Knight", "Nite"),
            ("Wright", "Rite"),
            ("Schmidt", "Shmit"),
            ("Jackson", "Jacksen"),
            ("  Ada   Lovelace ", "ada lovelase"),
            ("Gödel", "Goedel"),
            ("O'Brien", "o brian"),
        ] {
            assert!(alike(one, other), "{one} {other}: {:?}", sounds(one.as_bytes()));
        }
        for (one, other) in
            [("Smith", "Jones"), ("Anna", "Ina"), ("Room 12", "Room 13"), ("Иванов", "Петров")]
        {
            assert!(!alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn codes_are_those_of_the_rules() {
        let code = |word: &str| sounds(word.as_bytes()).unwrap().join(" ");
        assert_eq!(code("Thompson Knuth Bough wh y"), "TMPSN NT B W y");
        assert_eq!(code("edge church science nation Whale"), "EJ XRX SNS NXN WL");
        assert_eq!(code("4711 B2B ..."), "4711 b2b");
        assert_eq!(sounds(b"\xff"), None);
    }

    #[test]
    fn words_follow_each_other() {
        let of = |text: &str| sounds(text.as_bytes()).unwrap();
        let held = of("Grace Brewster Murray Hopper");
        assert!(sounds_like(&held, &of("grase hoper")));
        assert!(!sounds_like(&held, &of("hopper grace")));
        assert!(!sounds_like(&held, &of("grace grace")));
        assert!(sounds_like(&held, &[]));
    }

    proptest! {
        #[test]
        fn any_text_has_codes_and_case_counts_for_nothing(text in ".{0,40}") {
            let codes = sounds(text.as_bytes());
            for code in codes.iter().flatten() {
                prop_assert!(!code.is_empty() && code.len() <= CODE_BYTES_MAX);
            }
            if text.is_ascii() {
                prop_assert_eq!(codes, sounds(text.to_ascii_uppercase().as_bytes()));
            }
        }
    }
}
