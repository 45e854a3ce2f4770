//! The words of descriptions, RFC 4512 §§ 1.4 and 4.1.

use super::{DescriptionError, SyntaxReference, Usage};
use crate::dn::is_numeric_oid;
use crate::limits::DESCRIPTION_WORDS_MAX;
use crate::syntax::Syntax;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Open,
    Close,
    Dollar,
    /// The text between two quotes, its escapes unresolved.
    Quoted(&'a str),
    Word(&'a str),
    End,
}

/// The OID that a name stands for which a file has given it (`objectidentifier`).
pub(crate) type Macros<'m> = &'m dyn Fn(&str) -> Option<String>;

pub(super) struct Parser<'a> {
    text: &'a str,
    /// Takes what other servers' files have beyond the RFC, too.
    macros: Option<Macros<'a>>,
    /// Where the token read last begins: the place of an error.
    at: usize,
    /// Where the next one begins, or blanks before it.
    next: usize,
    words_left: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Parser { text, macros: None, at: 0, next: 0, words_left: DESCRIPTION_WORDS_MAX }
    }

    /// One that takes what OpenLDAP and 389 Directory Server take in their files: names for OIDs,
    /// names of syntaxes, quotes too many or too few, lists without `$`.
    pub(super) fn lenient(text: &'a str, macros: Macros<'a>) -> Self {
        Parser { macros: Some(macros), ..Parser::new(text) }
    }

    fn is_lenient(&self) -> bool {
        self.macros.is_some()
    }

    pub(super) fn wrong(&self, why: &'static str) -> DescriptionError {
        DescriptionError { at: self.at, why }
    }

    fn token(&mut self) -> Result<Token<'a>, DescriptionError> {
        let rest = self.text.get(self.next..).unwrap_or_default();
        let trimmed = rest.trim_ascii_start();
        self.at = self.next + rest.len() - trimmed.len();
        self.words_left = self
            .words_left
            .checked_sub(1)
            .ok_or(DescriptionError { at: self.at, why: "the description has too many words" })?;
        let (token, length) = match trimmed.as_bytes().first() {
            None => (Token::End, 0),
            Some(b'(') => (Token::Open, 1),
            Some(b')') => (Token::Close, 1),
            Some(b'$') => (Token::Dollar, 1),
            Some(b'\'') => {
                let inner = trimmed.get(1..).unwrap_or_default();
                let length = match self.is_lenient() {
                    true => closing_quote(inner),
                    false => inner.find('\''),
                };
                let length = length.ok_or(self.wrong("the closing ' is missing"))?;
                (Token::Quoted(inner.get(..length).unwrap_or_default()), length + 2)
            }
            Some(b'"') if self.is_lenient() => {
                let inner = trimmed.get(1..).unwrap_or_default();
                let length = inner.find('"').ok_or(self.wrong("the closing \" is missing"))?;
                (Token::Quoted(inner.get(..length).unwrap_or_default()), length + 2)
            }
            Some(_) => {
                let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '(' | ')' | '$' | '\'');
                let length = trimmed.find(ends).unwrap_or(trimmed.len());
                (Token::Word(trimmed.get(..length).unwrap_or_default()), length)
            }
        };
        self.next = self.at + length;
        Ok(token)
    }

    /// The parenthesis and the numeric OID that every description begins with.
    pub(super) fn begin(&mut self) -> Result<String, DescriptionError> {
        if self.token()? != Token::Open {
            return Err(self.wrong("a description begins with '('"));
        }
        match self.token()? {
            Token::Word(oid) if is_numeric_oid(oid) => Ok(oid.to_owned()),
            Token::Word(word) => self.named_oid(word).ok_or(self.wrong(match self.is_lenient() {
                true => "a numeric OID is due, or a name that objectidentifier has given one",
                false => "a numeric OID is due",
            })),
            _ => Err(self.wrong("a numeric OID is due")),
        }
    }

    /// The text that a file has instead of a numeric OID: a macro, with arcs after a colon if wanted, or
    /// 389 Directory Server's `NAME-oid`, which stays as it is.
    fn named_oid(&self, word: &str) -> Option<String> {
        let macros = self.macros?;
        let (name, arcs) = word.split_once(':').map_or((word, ""), |(name, arcs)| (name, arcs));
        let expanded = match macros(name) {
            Some(oid) if arcs.is_empty() => oid,
            Some(oid) => format!("{oid}.{arcs}"),
            None if is_name(word) && word.to_ascii_lowercase().ends_with("-oid") => {
                return Some(word.to_owned());
            }
            None => return None,
        };
        is_numeric_oid(&expanded).then_some(expanded)
    }

    /// The word that the next part begins with, until the closing parenthesis.
    pub(super) fn part(&mut self) -> Result<Option<&'a str>, DescriptionError> {
        match self.token()? {
            Token::Word(word) => Ok(Some(word)),
            Token::Close => loop {
                match self.token()? {
                    Token::End => return Ok(None),
                    // slapd does not look at what is behind the end.
                    Token::Close if self.is_lenient() => {}
                    _ => return Err(self.wrong("the description ends before this")),
                }
            },
            Token::End => Err(self.wrong("the closing ')' is missing")),
            _ => Err(self.wrong("a word such as NAME, or the closing ')', is due")),
        }
    }

    /// `qdstring`
    pub(super) fn quoted(&mut self) -> Result<String, DescriptionError> {
        let token = self.token()?;
        self.string_of(token)
    }

    fn string_of(&self, token: Token<'a>) -> Result<String, DescriptionError> {
        match token {
            Token::Quoted(text) => match unescaped(text) {
                None if self.is_lenient() => Ok(text.replace(['\n', '\r'], " ")),
                unescaped => {
                    unescaped.ok_or(self.wrong("in quotes ' is written \\27, and \\ is \\5C"))
                }
            },
            Token::Word(word) if self.is_lenient() => Ok(word.to_owned()),
            _ => Err(self.wrong("a string in single quotes is due")),
        }
    }

    /// One item, or several in parentheses with `separator` between them.
    fn list<T>(
        &mut self,
        separator: Option<Token<'static>>,
        item: impl Fn(&Self, Token<'a>) -> Result<T, DescriptionError>,
    ) -> Result<Vec<T>, DescriptionError> {
        let first = self.token()?;
        if first != Token::Open {
            return Ok(vec![item(self, first)?]);
        }
        let mut items = Vec::new();
        let mut token = self.token()?;
        while token != Token::Close {
            if self.is_lenient() && token == Token::Dollar {
                token = self.token()?;
                continue;
            }
            items.push(item(self, token)?);
            token = self.token()?;
            if self.is_lenient() {
                continue;
            }
            if let Some(separator) = separator
                && token != Token::Close
            {
                if token != separator {
                    return Err(self.wrong("'$' or ')' is due"));
                }
                token = self.token()?;
                if token == Token::Close {
                    return Err(self.wrong("another name or OID is due after '$'"));
                }
            }
        }
        Ok(items)
    }

    /// `qdescrs`: one name in quotes, or several in parentheses.
    pub(super) fn names(&mut self) -> Result<Vec<String>, DescriptionError> {
        self.list(None, |parser, token| match token {
            Token::Quoted(name) if is_name(name) => Ok(name.to_owned()),
            Token::Word(name) if parser.is_lenient() && is_name(name) => Ok(name.to_owned()),
            _ => Err(parser.wrong("a name in single quotes is due: a letter, letters, digits, -")),
        })
    }

    /// `oids`: one name or OID, or several in parentheses.
    pub(super) fn oids(&mut self) -> Result<Vec<String>, DescriptionError> {
        self.list(Some(Token::Dollar), Self::oid_of)
    }

    /// `oid`: a name or OID.
    pub(super) fn oid(&mut self) -> Result<String, DescriptionError> {
        let token = self.token()?;
        self.oid_of(token)
    }

    fn oid_of(&self, token: Token<'a>) -> Result<String, DescriptionError> {
        match token {
            Token::Word(word) if is_name(word) || is_numeric_oid(word) => Ok(word.to_owned()),
            Token::Quoted(word) if self.is_lenient() && is_name(word) => Ok(word.to_owned()),
            Token::Word(word) => self.named_oid(word).ok_or(self.wrong("a name or an OID is due")),
            _ => Err(self.wrong("a name or an OID is due")),
        }
    }

    /// `noidlen`; some servers put it in quotes.
    pub(super) fn syntax(&mut self) -> Result<SyntaxReference, DescriptionError> {
        let wrong = "a numeric OID, with a length in braces if wanted, is due";
        let (Token::Word(word) | Token::Quoted(word)) = self.token()? else {
            return Err(self.wrong(wrong));
        };
        let (oid, length) = match word.split_once('{') {
            None => (word, None),
            Some((oid, length)) => {
                let length = length.strip_suffix('}').and_then(|length| length.parse().ok());
                (oid, Some(length.ok_or(self.wrong(wrong))?))
            }
        };
        let oid = match is_numeric_oid(oid) {
            true => oid.to_owned(),
            false => self.syntax_of(oid).ok_or(self.wrong(wrong))?,
        };
        Ok(SyntaxReference { oid, length_suggested: length })
    }

    /// The OID of a syntax that is given by a name.
    fn syntax_of(&self, name: &str) -> Option<String> {
        self.macros?;
        self.named_oid(name).or_else(|| Syntax::from_description(name).map(|one| one.oid().into()))
    }

    pub(super) fn usage(&mut self) -> Result<Usage, DescriptionError> {
        let token = self.token()?;
        Usage::ALL
            .into_iter()
            .find(|usage| matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(usage.name())))
            .ok_or(self.wrong("a usage such as directoryOperation is due"))
    }

    /// `X-NAME` and one string or several.
    pub(super) fn extension(
        &mut self,
        name: &str,
    ) -> Result<(String, Vec<String>), DescriptionError> {
        if !name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("X-")) {
            return Err(self.wrong("this part is not one that such a description has"));
        }
        let values = self.list(None, Self::string_of)?;
        Ok((name.to_owned(), values))
    }
}

/// Checks that the text is words, quoted strings and lists in parentheses, as every kind of
/// description of RFC 4512 § 4.1 is.
pub(crate) fn check_form(text: &str) -> Result<(), DescriptionError> {
    let mut parser = Parser::new(text);
    if parser.token()? != Token::Open {
        return Err(parser.wrong("a description begins with '('"));
    }
    if !matches!(parser.token()?, Token::Word(_)) {
        return Err(parser.wrong("an OID or a number is due"));
    }
    let mut depth = 1_usize;
    while depth > 0 {
        match parser.token()? {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::End => return Err(parser.wrong("the closing ')' is missing")),
            Token::Dollar | Token::Quoted(_) | Token::Word(_) => {}
        }
    }
    match parser.token()? {
        Token::End => Ok(()),
        _ => Err(parser.wrong("the description ends before this")),
    }
}

/// Whether the text is a short name (`descr`), or would be without underscores, as some have.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Where a quoted string ends that may have apostrophes in it: at a quote that something follows
/// which can follow a string.
fn closing_quote(inner: &str) -> Option<usize> {
    let ends = |(at, _): &(usize, &str)| {
        let after = inner.get(at + 1..).and_then(|rest| rest.bytes().next());
        after.is_none_or(|byte| byte.is_ascii_whitespace() || b")$'".contains(&byte))
    };
    inner.match_indices('\'').find(ends).map(|(at, _)| at).or_else(|| inner.find('\''))
}

/// Resolves `\27` and `\5C`, the only escapes in quotes. A line break, with the blanks around it, is
/// one blank.
fn unescaped(text: &str) -> Option<String> {
    let breaks = ['\n', '\r'];
    let lines = text.split(breaks).map(str::trim).filter(|line| !line.is_empty());
    let joined: Cow<'_, str> = match text.contains(breaks) {
        true => lines.collect::<Vec<_>>().join(" ").into(),
        false => text.into(),
    };
    let mut parts = joined.split('\\');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        out.push(match code {
            "27" => '\'',
            "5C" | "5c" => '\\',
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}
