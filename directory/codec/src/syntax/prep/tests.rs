//! The examples of RFC 4518, and a comparison with the tables of RFC 3454 that it refers to.

use super::{Case, Part, map, normalized, string, telephone_number};
use proptest::prelude::*;
use stringprep::tables;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

fn ignore(text: &str) -> Option<String> {
    string(text.as_bytes(), Case::Ignore, Part::Whole).map(|out| String::from_utf8(out).unwrap())
}

fn exact(text: &str, part: Part) -> String {
    String::from_utf8(string(text.as_bytes(), Case::Exact, part).unwrap()).unwrap()
}

#[test]
fn the_examples_of_section_2_6() {
    assert_eq!(exact("foo bar  ", Part::Whole), " foo  bar ");
    assert_eq!(exact("foo bar  ", Part::Initial), " foo  bar ");
    // Here the RFC has one blank within, which no value would match.
    assert_eq!(exact("foo bar  ", Part::Any), "foo  bar ");
    assert_eq!(exact("foo bar  ", Part::Final), "foo  bar ");
    assert_eq!(telephone_number(b" -123  456 -").unwrap(), b"123456");
    assert_eq!(telephone_number(b"---").unwrap(), b"");
    assert_eq!(
        telephone_number(" \u{2010}123\u{ad}\u{58a}456\u{2212}".as_bytes()).unwrap(),
        b"123456"
    );
}

#[test]
fn blanks() {
    assert_eq!(exact("", Part::Whole), "  ");
    assert_eq!(exact("   ", Part::Whole), "  ");
    assert_eq!(exact("\u{ad}", Part::Whole), "  ");
    for part in [Part::Initial, Part::Any, Part::Final] {
        assert_eq!(exact(" \u{3000} ", part), " ");
    }
    assert_eq!(exact("  a", Part::Any), " a");
    assert_eq!(exact("a", Part::Any), "a");
    assert_eq!(exact("a", Part::Initial), " a");
    assert_eq!(exact("a", Part::Final), "a ");
    assert_eq!(exact("a\t\r\n\u{85}\u{2028}b", Part::Whole), " a  b ");
    // A blank with a combining mark is not one; the acute accent decomposes into such a one.
    assert_eq!(exact("a \u{301}", Part::Whole), " a \u{301} ");
    assert_eq!(exact("a\u{b4}", Part::Whole), " a \u{301} ");
    assert_eq!(telephone_number("1-\u{301}2".as_bytes()).unwrap(), "1-\u{301}2".as_bytes());
}

#[test]
fn mapped_and_folded() {
    let equal = [
        ("Straße", "STRASSE"),
        ("ẞ", "ss"),
        ("ﬁn", "FIN"),
        ("\u{212b}", "å"),
        ("\u{2126}", "ω"),
        ("Σ", "ς"),
        ("ǅ", "ǆ"),
        ("Ａ１", "a1"),
        ("e\u{301}", "É"),
        ("№ ℡", "no tel"),
        ("\u{1f80}", "\u{1f00}\u{3b9}"),
        ("co\u{ad}\u{200b}\u{feff}\u{fe0f}op", "coop"),
        ("a\u{0}\u{7f}b", "ab"),
        ("İ", "i\u{307}"),
    ];
    for (one, other) in equal {
        assert_eq!(ignore(one), ignore(other), "{one} {other}");
    }
    assert_ne!(exact("a", Part::Whole), exact("A", Part::Whole));
    assert_eq!(exact("ﬁ", Part::Whole), exact("fi", Part::Whole));
    assert_ne!(ignore("ı"), ignore("i"));
}

#[test]
fn prohibited() {
    for text in
        ["\u{fffd}", "\u{e000}", "\u{f0000}", "\u{fdd0}", "\u{ffff}", "\u{10ffff}", "\u{378}"]
    {
        assert_eq!(ignore(text), None, "{text:?}");
        assert_eq!(telephone_number(text.as_bytes()), None);
    }
    assert_eq!(string(b"\xff", Case::Exact, Part::Any), None);
    // Younger than the RFC, and assigned.
    assert!(ignore("😀 ǅ \u{1f9d1}").is_some());
}

/// Code points that are in Unicode 3.2, and not prohibited by the RFC once they are mapped.
fn in_rfc(c: char) -> bool {
    !tables::unassigned_code_point(c)
        && !tables::private_use(c)
        && !tables::non_character_code_point(c)
        && c != char::REPLACEMENT_CHARACTER
}

/// Capital letters that got their small ones after Unicode 3.2. Foldings are stable since.
fn folded_since(c: char) -> bool {
    matches!(c, '\u{4c0}' | '\u{10a0}'..='\u{10c5}' | '\u{2132}' | '\u{2183}')
}

/// The RFC's mapping of a character, by its letter, with the normalization of today.
fn by_the_tables(c: char, case: Case) -> String {
    let mapped = map(c).into_iter();
    match case {
        Case::Exact => mapped.nfkc().collect(),
        Case::Ignore => mapped.flat_map(tables::case_fold_for_nfkc).nfkc().collect(),
    }
}

#[test]
fn every_character_of_unicode_3_2_is_as_in_the_tables() {
    for c in ('\0'..=char::MAX).filter(|c| in_rfc(*c)) {
        for case in [Case::Exact, Case::Ignore] {
            if case == Case::Exact || !folded_since(c) {
                let found = normalized(c.to_string().as_bytes(), case);
                assert_eq!(found, Some(by_the_tables(c, case)), "{c:?}, {case:?}");
            }
        }
    }
}

/// The RFC's lists, by what they are made of: all that has such a property is mapped.
#[test]
fn every_control_and_separator_is_mapped() {
    for c in ('\0'..=char::MAX).filter(|c| in_rfc(*c)) {
        if tables::ascii_control_character(c) || tables::non_ascii_control_character(c) {
            assert!(map(c).is_none_or(|mapped| mapped == ' '), "{c:?}");
        }
        if tables::ascii_space_character(c) || tables::non_ascii_space_character(c) {
            let expected = if c == '\u{200b}' { None } else { Some(' ') };
            assert_eq!(map(c), expected, "{c:?}");
        }
        if tables::change_display_properties_or_deprecated(c) {
            let gone = map(c).is_none() || !c.to_string().nfkc().any(|folded| folded == c);
            assert!(gone, "{c:?}");
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ a-cA-C\\t\\x00-]{0,12}",
        "[ aAßẞﬁǅΣς\u{301}\u{345}\u{b4}İıÅe\u{ad}\u{2010}\u{3000}一😀-]{0,10}",
        "\\PC{0,10}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn preparing_twice_is_preparing_once(text in any_text()) {
        for case in [Case::Exact, Case::Ignore] {
            if let Some(once) = string(text.as_bytes(), case, Part::Whole) {
                // The blank put before a combining mark would be significant.
                let second = str::from_utf8(&once).unwrap().chars().nth(1);
                if !second.is_some_and(is_combining_mark) {
                    prop_assert_eq!(string(&once, case, Part::Whole), Some(once));
                }
            }
        }
        if let Some(once) = telephone_number(text.as_bytes()) {
            prop_assert_eq!(telephone_number(&once), Some(once));
        }
    }

    /// The way without tables gives what the one with tables would.
    #[test]
    fn ascii_is_not_special(text in "[ -~\\t\\n\\x00\\x7f]{0,20}") {
        for case in [Case::Exact, Case::Ignore] {
            for part in [Part::Whole, Part::Initial, Part::Any, Part::Final] {
                // A soft hyphen is mapped to nothing.
                let with_tables = string(format!("{text}\u{ad}").as_bytes(), case, part);
                prop_assert_eq!(string(text.as_bytes(), case, part), with_tables);
            }
        }
        let with_tables = telephone_number(format!("{text}\u{ad}").as_bytes());
        prop_assert_eq!(telephone_number(text.as_bytes()), with_tables);
    }

    /// A value matches the assertion that is made of its own pieces, wherever it is cut but within
    /// a run of blanks, where the RFC's own anomaly lies (its appendix B).
    #[test]
    fn pieces_of_a_value_are_found_in_it(
        words in prop::collection::vec("[a-c]{1,3}", 1..4),
        blanks in 1usize..3,
        blanks_lead in any::<bool>(),
        cuts in prop::collection::btree_set(1usize..12, 0..4),
    ) {
        let text = words.join(&" ".repeat(blanks));
        let whole = |cut: &usize| {
            let (before, after) = text.split_at(*cut);
            !if blanks_lead { before.ends_with(' ') } else { after.starts_with(' ') }
        };
        let cuts = cuts.into_iter().filter(|cut| *cut < text.len()).filter(whole);
        let cuts: Vec<usize> = [0].into_iter().chain(cuts).chain([text.len()]).collect();
        let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        let last = pieces.len() - 1;
        let value = string(text.as_bytes(), Case::Ignore, Part::Whole).unwrap();
        let mut rest = &value[..];
        for (index, piece) in pieces.iter().enumerate() {
            let part = match index {
                0 if last == 0 => Part::Whole,
                0 => Part::Initial,
                index if index == last => Part::Final,
                _ => Part::Any,
            };
            let piece = string(piece.as_bytes(), Case::Ignore, part).unwrap();
            let at = rest.windows(piece.len()).position(|window| window == piece);
            prop_assert!(at.is_some(), "{:?} is not in {:?}", pieces, text);
            rest = &rest[at.unwrap() + piece.len()..];
        }
    }
}
