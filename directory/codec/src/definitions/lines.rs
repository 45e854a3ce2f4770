//! From a file's lines to statements: a keyword, and the text that it is about.

use super::nearest;
use crate::ldif::Line;

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    AttributeType,
    ObjectClass,
    ObjectIdentifier,
    /// Something that is read over.
    Other,
}

/// Which kind of file it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// OpenLDAP's, as configuration or as `cn=config`.
    OpenLdap,
    /// That of a subschema entry.
    Subschema,
}

/// A definition before it is understood.
#[derive(Debug)]
pub(super) struct Statement {
    /// The line that it begins on.
    pub line: u64,
    pub keyword: Keyword,
    pub form: Form,
    /// With its line breaks, so that an error's line can be told.
    pub text: String,
    /// The character of its line that the text begins with, counted from 1; none where lines are folded.
    pub column: Option<u64>,
}

/// A line that cannot be read.
pub(super) struct Wrong {
    pub line: u64,
    pub shown: String,
    pub why: String,
}

/// Characters of a definition that an error shows.
const SHOWN_CHARS: usize = 60;

impl Statement {
    pub fn is_macro(&self) -> bool {
        self.keyword == Keyword::ObjectIdentifier
    }

    /// Its beginning, on one line.
    pub fn shown(&self) -> String {
        shown(&self.text)
    }
}

fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(SHOWN_CHARS).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Cuts a file into statements.
pub(super) fn statements(text: &str) -> Result<Vec<Statement>, Wrong> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut significant =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = significant.next().unwrap_or_default();
    if is_ldif(first) { ldif(text) } else { configuration(text) }
}

/// Whether a file's first line is one of LDIF: a word and a colon.
fn is_ldif(line: &str) -> bool {
    let word = line.split(':').next().unwrap_or_default();
    let is_word = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-;".contains(&byte));
    word.len() < line.len() && !word.is_empty() && is_word
}

const DIRECTIVES: &[(&str, Keyword)] = &[
    ("attributetype", Keyword::AttributeType),
    ("attributetypes", Keyword::AttributeType),
    ("attribute", Keyword::AttributeType),
    ("objectclass", Keyword::ObjectClass),
    ("objectclasses", Keyword::ObjectClass),
    ("objectidentifier", Keyword::ObjectIdentifier),
    ("ditcontentrule", Keyword::Other),
    ("ditstructurerule", Keyword::Other),
    ("nameform", Keyword::Other),
    ("ldapsyntax", Keyword::Other),
    ("matchingrule", Keyword::Other),
    ("matchingruleuse", Keyword::Other),
    ("include", Keyword::Other),
];

/// OpenLDAP's configuration: a directive begins a line, and lines that begin with a blank go on.
fn configuration(text: &str) -> Result<Vec<Statement>, Wrong> {
    let mut statements: Vec<Statement> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let is_comment = line.starts_with('#') || line.trim().is_empty();
        let goes_on = line.starts_with([' ', '\t']) || is_comment;
        match statements.last_mut() {
            // A blank or a comment keeps the count of lines right.
            Some(statement) if goes_on || is_open(&statement.text, line) => {
                statement.text.push('\n');
                statement.text.push_str(if is_comment { "" } else { line });
            }
            _ if is_comment => {}
            _ => statements.push(directive(number, line)?),
        }
    }
    Ok(statements)
}

/// Whether a definition's parentheses are not closed yet and the line does not begin another one:
/// some forget to indent.
fn is_open(text: &str, line: &str) -> bool {
    let word = line.split([' ', '\t', '(']).next().unwrap_or_default();
    let begins = DIRECTIVES.iter().any(|(name, _)| name.eq_ignore_ascii_case(word));
    !begins && depth(text) > 0
}

/// How many parentheses are open after the text; those in quotes do not count.
fn depth(text: &str) -> i64 {
    let mut depth = 0;
    let mut quoted = false;
    for byte in text.bytes() {
        match byte {
            b'\'' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth -= 1,
            _ => {}
        }
    }
    depth
}

fn directive(number: u64, whole: &str) -> Result<Statement, Wrong> {
    let line = whole.trim();
    let end = line.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, ""));
    let known = DIRECTIVES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let Some((_, keyword)) = known else {
        let near = nearest(word, DIRECTIVES.iter().map(|(name, _)| *name));
        let near = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        let why = match word {
            "" => "a directive such as attributetype or objectclass is due; is a parenthesis closed too \
                   early before it?"
                .to_owned(),
            _ => format!("\"{word}\" is not a directive of a schema file{near}"),
        };
        return Err(Wrong { line: number, shown: shown(line), why });
    };
    let text = rest.strip_prefix(':').unwrap_or(rest).to_owned();
    let after = whole.trim_end().len().saturating_sub(text.len());
    let before = whole.get(..after).unwrap_or_default();
    let column = Some(1 + before.chars().count() as u64);
    Ok(Statement { line: number, keyword: *keyword, form: Form::OpenLdap, text, column })
}

/// LDIF: of all its lines those that hold definitions.
fn ldif(text: &str) -> Result<Vec<Statement>, Wrong> {
    let mut statements = Vec::new();
    for (number, line) in unfolded(text) {
        let wrong = |why: &str| Wrong { line: number, shown: shown(&line), why: why.to_owned() };
        if line.is_empty() || line.starts_with('#') || line == "-" {
            continue;
        }
        let line = Line::parse(line.as_bytes()).map_err(wrong)?;
        let name = line.key.split(';').next().unwrap_or_default().to_ascii_lowercase();
        let (keyword, form) = match name.as_str() {
            "attributetypes" => (Keyword::AttributeType, Form::Subschema),
            "objectclasses" => (Keyword::ObjectClass, Form::Subschema),
            "olcattributetypes" => (Keyword::AttributeType, Form::OpenLdap),
            "olcobjectclasses" => (Keyword::ObjectClass, Form::OpenLdap),
            "olcobjectidentifier" => (Keyword::ObjectIdentifier, Form::OpenLdap),
            "olcditcontentrules" | "ditcontentrules" | "olcldapsyntaxes" | "ldapsyntaxes"
            | "matchingrules" | "matchingruleuse" | "nameforms" | "ditstructurerules" => {
                (Keyword::Other, Form::Subschema)
            }
            "delete" => {
                return Err(wrong("a file can only add definitions; delete them over LDAP"));
            }
            _ => continue,
        };
        let text = without_number(line.text().map_err(wrong)?.trim()).to_owned();
        statements.push(Statement { line: number, keyword, form, text, column: None });
    }
    Ok(statements)
}

/// Lines with those that go on put together, and the number of the first.
fn unfolded(text: &str) -> Vec<(u64, String)> {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix(' '), lines.last_mut()) {
            (Some(more), Some((_, last))) if !last.is_empty() => last.push_str(more),
            _ => lines.push((number, line.to_owned())),
        }
    }
    lines
}

/// A value without the place that `cn=config` gives it: `{12}`.
fn without_number(value: &str) -> &str {
    let inner = value.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    match inner {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => value,
    }
}
