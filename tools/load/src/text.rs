//! Texts with values in them: `uid=user.{user},ou=People`.
//!
//! A text is read once. Each value in it becomes a character of the plane for private use that stands
//! for it, so that a whole message can be encoded by the codec as if nothing varied, and is cut
//! apart at these characters afterwards (`request`).

use crate::entries::Makers;
use crate::limits::{RANDOM_CHARACTERS_MAX, VARIABLES_MAX};
use crate::scenario::section::short;
use crate::source::{Source, Values};
use fastrand::Rng;
use keyway_codec::definitions::nearest;
use keyway_data::View;

/// The first of the characters that stand for values.
const FIRST: u32 = 0xf_0000;
/// Their number: the rest of the plane.
const COUNT: u32 = 0xfffe;

/// The replacement of `{...}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Variable {
    /// A value of a source, or a column of it.
    Source { source: usize, column: Option<usize> },
    /// The name of a template's entry, or the first value of one of its attributes.
    Entry { source: usize, attribute: Option<Box<str>> },
    /// A value that an earlier step took from an answer.
    Taken(usize),
    /// As many characters of an alphabet, new each time.
    Random { alphabet: &'static [u8], length: usize },
}

/// A text, cut apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Literal(Box<[u8]>),
    Variable(Variable),
}

/// The values that texts of one job may name.
pub(crate) struct Names<'s> {
    pub(crate) sources: &'s [Source],
    /// Those that steps before have taken from answers.
    pub(crate) taken: Vec<String>,
    /// Those that were named, in the order of the characters that stand for them.
    variables: Vec<Variable>,
}

impl<'s> Names<'s> {
    pub(crate) fn new(sources: &'s [Source]) -> Names<'s> {
        Names { sources, taken: Vec::new(), variables: Vec::new() }
    }

    /// The text with a character in the place of each value. `{{` and `}}` are braces.
    pub(crate) fn mark(&mut self, text: &str) -> Result<String, String> {
        if text.chars().any(|c| (FIRST..FIRST + COUNT).contains(&u32::from(c))) {
            return Err("characters of the plane for private use cannot be sent".into());
        }
        let mut marked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            marked.push_str(before);
            if brace.starts_with("{{") || brace.starts_with("}}") {
                marked.push_str(&brace[..1]);
                rest = &brace[2..];
                continue;
            }
            let inside = brace.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let Some((name, after)) = inside else {
                return Err(format!(
                    "a brace without its other one in '{}'; {{{{ and }}}} are braces themselves",
                    short(text)
                ));
            };
            marked.push(self.stand_in(name)?);
            rest = after;
        }
        marked.push_str(rest);
        Ok(marked)
    }

    fn stand_in(&mut self, name: &str) -> Result<char, String> {
        if self.variables.len() == VARIABLES_MAX {
            return Err(format!("more than {VARIABLES_MAX} values in the texts of one job"));
        }
        let variable = self.variable(name).map_err(|why| short(&why))?;
        let index = self.variables.len() as u32;
        self.variables.push(variable);
        char::from_u32(FIRST + index).ok_or_else(|| "too many values".into())
    }

    fn variable(&self, name: &str) -> Result<Variable, String> {
        if let Some(random) = name.strip_prefix("random:") {
            return random_text(random);
        }
        if let Some(slot) = self.taken.iter().position(|taken| taken == name) {
            return Ok(Variable::Taken(slot));
        }
        let (base, part) = match name.split_once('.') {
            Some((base, part)) => (base, Some(part)),
            None => (name, None),
        };
        let column = part.map(|part| part.parse::<usize>().ok()?.checked_sub(1));
        let place = self.sources.iter().position(|source| source.name == base);
        match place.and_then(|source| Some((source, &self.sources.get(source)?.values, column))) {
            Some((source, Values::Entries(_), _)) => return self.of_entry(source, part),
            Some((source, _, None)) => return Ok(Variable::Source { source, column: None }),
            Some((source, _, Some(Some(column)))) => {
                return Ok(Variable::Source { source, column: Some(column) });
            }
            Some((_, _, Some(None))) | None => {}
        }
        let known = self.sources.iter().map(|source| source.name.as_str());
        let known = known.chain(self.taken.iter().map(String::as_str));
        Err(match nearest(name, known) {
            Some(near) => format!("there is no {{{name}}}; did you mean {{{near}}}?"),
            None => format!(
                "there is no {{{name}}}: neither [data] nor an earlier step of the job gives it \
                 (a brace itself is written twice)"
            ),
        })
    }

    /// `{person}`, `{person.mail}`
    fn of_entry(&self, source: usize, attribute: Option<&str>) -> Result<Variable, String> {
        let Some(Values::Entries(entries)) = self.sources.get(source).map(|it| &it.values) else {
            return Err("it is not from a template".into());
        };
        if let Some(wanted) = attribute {
            let known = entries.plan.attributes();
            if !known.iter().any(|it| it.eq_ignore_ascii_case(wanted)) {
                let meant = match nearest(wanted, known.into_iter()) {
                    Some(near) => format!("; did you mean '{near}'?"),
                    None => String::new(),
                };
                return Err(format!("entries of the template have no '{wanted}'{meant}"));
            }
        }
        Ok(Variable::Entry { source, attribute: attribute.map(Into::into) })
    }

    /// The source of entries of this name, whose entry a request has in it.
    pub(crate) fn entry(&mut self, name: &str) -> Result<usize, String> {
        self.stand_in(name)?;
        match self.variables.last() {
            Some(Variable::Entry { source, attribute: None }) => Ok(*source),
            _ => {
                Err(format!("'{name}' is not from a template: {name} = {{ template = \"FILE\" }}"))
            }
        }
    }

    /// A text cut apart.
    pub(crate) fn pieces(&mut self, text: &str) -> Result<Vec<Piece>, String> {
        let marked = self.mark(text)?;
        Ok(self.cut(marked.as_bytes()))
    }

    /// Bytes cut at the characters that stand for values.
    pub(crate) fn cut(&self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if let Some(variable) = rest.get(..4).and_then(|four| self.stands_for(four)) {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
                }
                pieces.push(Piece::Variable(variable.clone()));
                rest = rest.get(4..).unwrap_or_default();
            } else {
                literal.push(byte);
                rest = after;
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        pieces
    }

    fn stands_for(&self, four: &[u8]) -> Option<&Variable> {
        let character = std::str::from_utf8(four).ok()?.chars().next()?;
        self.variables.get(u32::from(character).checked_sub(FIRST)? as usize)
    }

    /// The sources that the job's texts name, each once.
    pub(crate) fn sources_named(&self) -> Vec<usize> {
        let mut named: Vec<usize> = self
            .variables
            .iter()
            .filter_map(|variable| match variable {
                Variable::Source { source, .. } | Variable::Entry { source, .. } => Some(*source),
                Variable::Taken(_) | Variable::Random { .. } => None,
            })
            .collect();
        named.sort_unstable();
        named.dedup();
        named
    }
}

/// `alpha:32`
fn random_text(text: &str) -> Result<Variable, String> {
    const KINDS: [(&str, &[u8]); 4] = [
        ("alpha", b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        ("numeric", b"0123456789"),
        ("alphanumeric", b"abcdefghijklmnopqrstuvwxyz0123456789"),
        ("hex", b"0123456789abcdef"),
    ];
    let wrong = || {
        format!(
            "{{random:{text}}} is not {{random:KIND:LENGTH}} with KIND alpha, numeric, \
             alphanumeric or hex, and LENGTH from 1 to {RANDOM_CHARACTERS_MAX}"
        )
    };
    let (kind, length) = text.split_once(':').ok_or_else(wrong)?;
    let (_, alphabet) = KINDS.iter().find(|(name, _)| *name == kind).ok_or_else(wrong)?;
    match length.parse() {
        Ok(length) if (1..=RANDOM_CHARACTERS_MAX).contains(&length) => {
            Ok(Variable::Random { alphabet, length })
        }
        _ => Err(wrong()),
    }
}

/// The values of one sequence.
pub(crate) struct Drawn<'a> {
    pub(crate) sources: &'a [Source],
    /// The index of the value of each source.
    pub(crate) indices: &'a [u64],
    /// The values taken from answers.
    pub(crate) taken: &'a [Vec<u8>],
    pub(crate) random: &'a mut Rng,
    /// The makers of templates' entries.
    pub(crate) makers: &'a mut Makers,
}

impl Drawn<'_> {
    /// The entry of a source that has some.
    pub(crate) fn entry(&mut self, source: usize) -> Option<View<'_>> {
        let index = self.indices.get(source).copied().unwrap_or_default();
        self.makers.entry(self.sources, source, index)
    }

    /// Appends a text with its values.
    pub(crate) fn write(&mut self, pieces: &[Piece], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Variable(Variable::Source { source, column }) => {
                    let index = self.indices.get(*source).copied().unwrap_or_default();
                    if let Some(source) = self.sources.get(*source) {
                        source.write(index, *column, out);
                    }
                }
                Piece::Variable(Variable::Entry { source, attribute }) => {
                    let Some(entry) = self.entry(*source) else { continue };
                    match attribute {
                        None => out.extend_from_slice(entry.dn().as_bytes()),
                        Some(wanted) => {
                            out.extend_from_slice(entry.values(wanted).next().unwrap_or_default());
                        }
                    }
                }
                Piece::Variable(Variable::Taken(slot)) => {
                    out.extend_from_slice(self.taken.get(*slot).map_or(&[], Vec::as_slice));
                }
                Piece::Variable(Variable::Random { alphabet, length }) => {
                    let one = |_| alphabet.get(self.random.usize(0..alphabet.len())).copied();
                    out.extend((0..*length).filter_map(one));
                }
            }
        }
    }
}
