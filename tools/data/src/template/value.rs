//! A value of a line, taken apart: text, `{attribute}`, `<tag>`.

use super::text::Text;
use crate::limits::TAG_DEPTH_MAX;

/// A part of a value. Positions are bytes of the line's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// As it is.
    Text(String),
    /// `{name}` or `{name:characters}`
    Attribute { at: usize, name: String, characters: Option<usize> },
    /// `<name>` or `<name:arguments>`; the arguments are the line's bytes from `from` to `to`.
    Tag { at: usize, name: String, arguments: Option<(usize, usize)> },
}

/// The characters that a backslash takes the meaning from.
const ESCAPED: [char; 7] = ['<', '>', '[', ']', '{', '}', '\\'];

/// Takes apart the bytes of a line from `from` to `to`.
///
/// # Errors
/// Where a tag or an attribute has no end, and what to do.
pub(crate) fn parts(line: &Text, from: usize, to: usize) -> Result<Vec<Part>, (usize, String)> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut at = from;
    while let Some(next) = line.text.get(at..to).and_then(|rest| rest.chars().next()) {
        let after = line.text.get(at + next.len_utf8()..to).unwrap_or_default();
        let part = match next {
            '\\' if after.starts_with(ESCAPED) => {
                plain.extend(after.chars().next());
                at += 2;
                continue;
            }
            '{' => Some(attribute(line, at, to)?),
            '<' if after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                Some(tag(line, at, to)?)
            }
            _ => None,
        };
        let Some((part, end)) = part else {
            plain.push(next);
            at += next.len_utf8();
            continue;
        };
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(part);
        at = end;
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(parts)
}

fn attribute(line: &Text, at: usize, to: usize) -> Result<(Part, usize), (usize, String)> {
    let rest = line.text.get(at + 1..to).unwrap_or_default();
    let Some(length) = rest.find('}') else {
        return Err((at, "a '}' is missing after '{'; write \\{ for the sign itself".to_owned()));
    };
    let inner = rest.get(..length).unwrap_or_default();
    let (name, characters) = match inner.split_once(':') {
        None => (inner, None),
        Some((name, number)) => match number.trim().parse() {
            Ok(characters) => (name, Some(characters)),
            Err(_) => {
                return Err((
                    at,
                    format!("{{{inner}}}: after ':' comes how many characters, {{{name}:1}}"),
                ));
            }
        },
    };
    let name = name.trim().to_owned();
    Ok((Part::Attribute { at, name, characters }, at + length + 2))
}

fn tag(line: &Text, at: usize, to: usize) -> Result<(Part, usize), (usize, String)> {
    let end = end_of_tag(line.text.get(at..to).unwrap_or_default());
    let Some(end) = end.map_err(|why| (at, why))? else {
        return Err((at, "a '>' is missing after '<'; write \\< for the sign itself".to_owned()));
    };
    let inner = line.text.get(at + 1..at + end).unwrap_or_default();
    let (name, arguments) = match inner.find(':') {
        None => (inner, None),
        Some(colon) => (inner.get(..colon).unwrap_or_default(), Some((at + colon + 2, at + end))),
    };
    let name = name.trim().to_owned();
    Ok((Part::Tag { at, name, arguments }, at + end + 1))
}

/// The position of the '>' that ends the tag that the text begins with.
fn end_of_tag(text: &str) -> Result<Option<usize>, String> {
    let mut depth = 0usize;
    let mut escaped = false;
    for (at, next) in text.char_indices() {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '<' => depth += 1,
            '>' if depth == 1 => return Ok(Some(at)),
            '>' => depth -= 1,
            _ => {}
        }
        if depth > TAG_DEPTH_MAX {
            return Err(format!("tags may be {TAG_DEPTH_MAX} deep in each other, no more"));
        }
    }
    Ok(None)
}

/// A tag's arguments: what is between the colons, without the backslashes of escapes.
pub(crate) fn split(text: &str, separator: char) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        let escaped = next == '\\'
            && rest.peek().is_some_and(|after| ESCAPED.contains(after) || *after == separator);
        let taken = if escaped { rest.next() } else { None };
        match all.last_mut() {
            Some(last) if escaped || next != separator => last.extend(taken.or(Some(next))),
            _ => all.push(String::new()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Place;

    fn take(text: &str) -> Result<Vec<Part>, (usize, String)> {
        let line = Text::new(text, Place { file: 0, line: 1, column: 1 });
        parts(&line, 0, text.len())
    }

    #[test]
    fn text_attributes_and_tags() {
        let text = |text: &str| Part::Text(text.to_owned());
        let attribute =
            |at, name: &str, characters| Part::Attribute { at, name: name.to_owned(), characters };
        let tag = |at, name: &str, arguments| Part::Tag { at, name: name.to_owned(), arguments };
        assert_eq!(take("a{b}c"), Ok(vec![text("a"), attribute(1, "b", None), text("c")]));
        assert_eq!(take("{b:12}"), Ok(vec![attribute(0, "b", Some(12))]));
        assert_eq!(take("<x>"), Ok(vec![tag(0, "x", None)]));
        assert_eq!(take("<x:1:2>"), Ok(vec![tag(0, "x", Some((3, 6)))]));
        assert_eq!(take("<x:\"<y:1>\">z"), Ok(vec![tag(0, "x", Some((3, 10))), text("z")]));
        assert_eq!(take("a <= b < c"), Ok(vec![text("a <= b < c")]));
        assert_eq!(take(r"\{\<x\>\[a\]\,\"), Ok(vec![text(r"{<x>[a]\,\")]));
        assert_eq!(take(r"a\\b\\{c}"), Ok(vec![text(r"a\b\"), attribute(6, "c", None)]));
        assert_eq!(take(r"\\server\\\\share\n"), Ok(vec![text(r"\server\\share\n")]));
        assert!(take("{b").is_err() && take("<b").is_err() && take("{a:b}").is_err());
        assert!(take("<a:<b:<c:<d:<e>>>>>").is_err());
    }

    #[test]
    fn arguments_are_split() {
        assert_eq!(split("a:b", ':'), ["a", "b"]);
        assert_eq!(split(r"a\:b:\>c\d:\\:e\\", ':'), ["a:b", r">c\d", r"\", r"e\"]);
        assert_eq!(split("", ':'), [""]);
    }
}
