//! The string form of filters, RFC 4515.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::dn::hex;
use crate::limits::{FILTER_DEPTH_MAX, FILTER_TERMS_MAX};

use super::Filter;

/// Why a text is not a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterError {
    /// The byte offset in the text.
    pub at: usize,
    /// Why it is wrong.
    pub why: &'static str,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter is wrong at byte {}: {}", self.at, self.why)
    }
}

impl std::error::Error for FilterError {}

impl<'a> Filter<'a> {
    /// Parses the string form, such as `(&(objectClass=person)(cn=Babs J*))`.
    ///
    /// Values are borrowed from the text unless they hold escapes. `(&)` is true, `(|)` is false
    /// (RFC 4526). No blanks are allowed around parentheses and operators, as in the RFC.
    ///
    /// # Errors
    /// The place and the reason; also beyond [`FILTER_DEPTH_MAX`] and [`FILTER_TERMS_MAX`].
    pub fn parse(text: &'a str) -> Result<Self, FilterError> {
        let mut parser =
            Parser { text, at: 0, depth_left: FILTER_DEPTH_MAX, terms_left: FILTER_TERMS_MAX };
        let filter = parser.filter()?;
        if parser.at < text.len() {
            return Err(parser.wrong("the filter ends before this"));
        }
        Ok(filter)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth_left: usize,
    terms_left: usize,
}

impl<'a> Parser<'a> {
    fn wrong(&self, why: &'static str) -> FilterError {
        FilterError { at: self.at, why }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), FilterError> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(why));
        }
        self.at += 1;
        Ok(())
    }

    fn term(&mut self) -> Result<(), FilterError> {
        self.terms_left =
            self.terms_left.checked_sub(1).ok_or(self.wrong("the filter has too many terms"))?;
        Ok(())
    }

    /// `"(" filtercomp ")"`
    fn filter(&mut self) -> Result<Filter<'a>, FilterError> {
        self.expect(b'(', "a filter begins with '('")?;
        self.term()?;
        let filter = match self.peek() {
            Some(b'&') => self.below(|parser| parser.list().map(Filter::And))?,
            Some(b'|') => self.below(|parser| parser.list().map(Filter::Or))?,
            Some(b'!') => self.below(|parser| Ok(Filter::Not(Box::new(parser.filter()?))))?,
            _ => self.item()?,
        };
        self.expect(b')', "the filter should end here, with ')'")?;
        Ok(filter)
    }

    /// Steps over the operator and runs `read` one level deeper.
    fn below<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, FilterError>,
    ) -> Result<T, FilterError> {
        if self.depth_left <= 1 {
            return Err(self.wrong("the filter is nested too deeply"));
        }
        self.at += 1;
        self.depth_left -= 1;
        let read = read(self);
        self.depth_left += 1;
        read
    }

    fn list(&mut self) -> Result<Vec<Filter<'a>>, FilterError> {
        let mut terms = Vec::new();
        while self.peek() == Some(b'(') {
            terms.push(self.filter()?);
        }
        Ok(terms)
    }

    /// An item between parentheses, without an operator.
    fn item(&mut self) -> Result<Filter<'a>, FilterError> {
        let attribute = self.description()?;
        let kind = self.peek();
        if kind == Some(b':') {
            return self.extensible(attribute);
        }
        let Some(attribute) = attribute.map(Cow::Borrowed) else {
            return Err(self.wrong("an attribute description is missing"));
        };
        if let Some(b'~' | b'>' | b'<') = kind {
            self.at += 1;
        }
        self.expect(b'=', "one of = ~= >= <= := should follow the attribute description")?;
        if kind == Some(b'=') {
            return self.equality(attribute);
        }
        let value = self.value("a '*' in a value is written \\2a")?;
        Ok(match kind {
            Some(b'~') => Filter::Approx { attribute, value },
            Some(b'>') => Filter::GreaterOrEqual { attribute, value },
            _ => Filter::LessOrEqual { attribute, value },
        })
    }

    /// An attribute description or rule, if there is one.
    fn description(&mut self) -> Result<Option<&'a str>, FilterError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ';' | '_')))
            .unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if name.starts_with(|c: char| !c.is_ascii_alphanumeric()) {
            return Err(self.wrong("a description begins with a letter or is an OID"));
        }
        self.at += end;
        Ok((!name.is_empty()).then_some(name))
    }

    /// `[dnattrs] [matchingrule] ":=" assertionvalue` after the optional attribute.
    fn extensible(&mut self, attribute: Option<&'a str>) -> Result<Filter<'a>, FilterError> {
        let mut dn_attributes = false;
        let mut rule = None;
        loop {
            self.expect(b':', "':=' is missing")?;
            if self.peek() == Some(b'=') {
                self.at += 1;
                break;
            }
            if rule.is_some() {
                return Err(self.wrong("':=' should follow the matching rule"));
            }
            match self.description()? {
                None => return Err(self.wrong("a matching rule or '=' is missing")),
                Some(name) if !dn_attributes && name.eq_ignore_ascii_case("dn") => {
                    dn_attributes = true;
                }
                name => rule = name,
            }
        }
        if rule.is_none() && attribute.is_none() {
            return Err(self.wrong("an extensible match needs an attribute or a rule"));
        }
        let value = self.value("a '*' in a value is written \\2a")?;
        Ok(Filter::Extensible {
            rule: rule.map(Cow::Borrowed),
            attribute: attribute.map(Cow::Borrowed),
            value,
            dn_attributes,
        })
    }

    /// The part after `=`: presence, substrings or equality.
    fn equality(&mut self, attribute: Cow<'a, str>) -> Result<Filter<'a>, FilterError> {
        let first = self.piece()?;
        if self.peek() != Some(b'*') {
            return Ok(Filter::Equality { attribute, value: first });
        }
        let initial = self.substring(first)?;
        let mut any = Vec::new();
        loop {
            self.at += 1; // the asterisk
            let piece = self.piece()?;
            let ends = self.peek() != Some(b'*');
            match self.substring(piece)? {
                last if ends && (initial.is_some() || !any.is_empty() || last.is_some()) => {
                    return Ok(Filter::Substrings { attribute, initial, any, last });
                }
                _ if ends => return Ok(Filter::Present(attribute)),
                Some(piece) => any.push(piece),
                None => return Err(self.wrong("two '*' with nothing between them")),
            }
        }
    }

    /// The piece unless it is empty, counted as a term.
    fn substring(&mut self, piece: Cow<'a, [u8]>) -> Result<Option<Cow<'a, [u8]>>, FilterError> {
        if piece.is_empty() {
            return Ok(None);
        }
        self.term()?;
        Ok(Some(piece))
    }

    /// A value that must not hold an asterisk.
    fn value(&mut self, why: &'static str) -> Result<Cow<'a, [u8]>, FilterError> {
        let value = self.piece()?;
        if self.peek() == Some(b'*') { Err(self.wrong(why)) } else { Ok(value) }
    }

    /// Octets up to an asterisk or the closing parenthesis, with escapes resolved.
    fn piece(&mut self) -> Result<Cow<'a, [u8]>, FilterError> {
        let bytes = self.text.as_bytes();
        let mut piece = Cow::Borrowed(&[][..]);
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let run = rest
                .iter()
                .position(|byte| matches!(byte, b'*' | b'(' | b')' | b'\\' | 0))
                .unwrap_or(rest.len());
            append(&mut piece, rest.get(..run).unwrap_or_default());
            self.at += run;
            match self.peek() {
                Some(b'\\') => piece.to_mut().push(self.escape()?),
                Some(b'(') => return Err(self.wrong("a '(' in a value is written \\28")),
                Some(0) => return Err(self.wrong("a NUL in a value is written \\00")),
                _ => return Ok(piece),
            }
        }
    }

    /// `\` and two hexadecimal digits.
    fn escape(&mut self) -> Result<u8, FilterError> {
        let digits = self.text.as_bytes().get(self.at + 1..self.at + 3).unwrap_or_default();
        let [high, low] = digits else {
            return Err(self.wrong("two hexadecimal digits should follow '\\'"));
        };
        match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => {
                self.at += 3;
                Ok(high << 4 | low)
            }
            _ => Err(self.wrong("two hexadecimal digits should follow '\\'")),
        }
    }
}

/// Appends `run`, and borrows it where nothing was there yet.
fn append<'a>(piece: &mut Cow<'a, [u8]>, run: &'a [u8]) {
    match piece {
        Cow::Borrowed([]) => *piece = Cow::Borrowed(run),
        piece => piece.to_mut().extend_from_slice(run),
    }
}

/// The string form. It can be parsed again, and is then equal, if descriptions are those of
/// RFC 4512 and no piece of a substring assertion is empty.
impl fmt::Display for Filter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('(')?;
        match self {
            Filter::And(terms) => list(f, '&', terms)?,
            Filter::Or(terms) => list(f, '|', terms)?,
            Filter::Not(term) => list(f, '!', std::slice::from_ref(term.as_ref()))?,
            Filter::Equality { attribute, value } => assertion(f, attribute, "=", value)?,
            Filter::GreaterOrEqual { attribute, value } => assertion(f, attribute, ">=", value)?,
            Filter::LessOrEqual { attribute, value } => assertion(f, attribute, "<=", value)?,
            Filter::Approx { attribute, value } => assertion(f, attribute, "~=", value)?,
            Filter::Present(attribute) => assertion(f, attribute, "=*", &[])?,
            Filter::Substrings { attribute, initial, any, last } => {
                assertion(f, attribute, "=", initial.as_deref().unwrap_or_default())?;
                f.write_char('*')?;
                for piece in any {
                    escaped(f, piece)?;
                    f.write_char('*')?;
                }
                escaped(f, last.as_deref().unwrap_or_default())?;
            }
            Filter::Extensible { rule, attribute, value, dn_attributes } => {
                escaped(f, attribute.as_deref().unwrap_or_default().as_bytes())?;
                if *dn_attributes {
                    f.write_str(":dn")?;
                }
                if let Some(rule) = rule {
                    f.write_char(':')?;
                    escaped(f, rule.as_bytes())?;
                }
                f.write_str(":=")?;
                escaped(f, value)?;
            }
        }
        f.write_char(')')
    }
}

fn list(f: &mut fmt::Formatter<'_>, operator: char, terms: &[Filter<'_>]) -> fmt::Result {
    f.write_char(operator)?;
    terms.iter().try_for_each(|term| write!(f, "{term}"))
}

fn assertion(
    f: &mut fmt::Formatter<'_>,
    attribute: &str,
    operator: &str,
    value: &[u8],
) -> fmt::Result {
    escaped(f, attribute.as_bytes())?;
    f.write_str(operator)?;
    escaped(f, value)
}

/// UTF-8 as it is, but for what the grammar needs and what would spoil a log line.
fn escaped(f: &mut fmt::Formatter<'_>, value: &[u8]) -> fmt::Result {
    for chunk in value.utf8_chunks() {
        let is_special = |c: char| c.is_control() || matches!(c, '*' | '(' | ')' | '\\');
        for part in chunk.valid().split_inclusive(is_special) {
            // Mostly it is all of it.
            let plain = part.trim_end_matches(is_special);
            f.write_str(plain)?;
            let special = part.bytes().skip(plain.len());
            special.into_iter().try_for_each(|byte| write!(f, "\\{byte:02x}"))?;
        }
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\{byte:02x}"))?;
    }
    Ok(())
}
