//! The file: constants, included files, branches and templates.

use super::text::{Place, Text};
use crate::error::TemplateError;
use crate::limits::{
    EXPANDED_BYTES_MAX, INCLUDES_MAX, LINE_BYTES_MAX, LINES_MAX, SECTIONS_MAX, TEMPLATE_BYTES_MAX,
    WARNINGS_MAX,
};
use crate::plan::Lookup;
use keyway_codec::definitions::nearest;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Bytes as they are written, and again with constants replaced.
const ALL_BYTES_MAX: usize = 2 * TEMPLATE_BYTES_MAX;

/// The words that begin a line of an LDIF record without being an attribute (RFC 2849).
const LDIF_WORDS: [&str; 3] = ["dn", "changetype", "control"];

/// The contents of a file.
pub(crate) struct Sections {
    pub(crate) sections: Vec<Section>,
    /// The files that it was read from.
    pub(crate) files: Vec<String>,
    /// Possible slips.
    pub(crate) warnings: Vec<String>,
}

/// A branch or a template.
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    pub(crate) place: Place,
    pub(crate) extends: Option<(String, Place)>,
    /// The attributes of the RDN.
    pub(crate) rdn: Option<(Vec<String>, Place)>,
    pub(crate) kids: Vec<Kid>,
    pub(crate) lines: Vec<Line>,
}

/// The kind of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// An entry of this name.
    Branch(String),
    /// A template of this name.
    Template(String),
}

/// `subordinateTemplate: name:count`
pub(crate) struct Kid {
    pub(crate) name: String,
    /// `None` for as many as are asked for.
    pub(crate) count: Option<u64>,
    pub(crate) place: Place,
}

/// `attribute: value`
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) attribute: String,
    /// The value.
    pub(crate) value: Text,
    /// Whether the value is base64 (`::`).
    pub(crate) is_base64: bool,
    pub(crate) place: Place,
}

/// Reads a file and what it includes. Constants that are `given` beat those of the file.
pub(crate) fn read(
    name: &str,
    text: &str,
    given: &[(String, String)],
    look_up: Lookup<'_>,
) -> Result<Sections, TemplateError> {
    let beating: HashMap<String, String> =
        given.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let mut reader = Reader {
        constants: beating.clone(),
        used: HashSet::new(),
        defined: BTreeSet::new(),
        given: beating,
        out: Sections { sections: Vec::new(), files: vec![name.to_owned()], warnings: Vec::new() },
        open: false,
        bytes: 0,
        look_up,
    };
    reader.file(0, text)?;
    reader.require_known(given)?;
    Ok(reader.out)
}

impl Sections {
    /// Refuses an attribute whose line LDIF reads as something else.
    pub(crate) fn check_word(&self, attribute: &str, place: Place) -> Result<(), TemplateError> {
        if !LDIF_WORDS.iter().any(|word| attribute.eq_ignore_ascii_case(word)) {
            return Ok(());
        }
        let why = format!("'{attribute}:' has another meaning in LDIF and is not an attribute");
        Err(self.error(place, why))
    }

    pub(crate) fn error(&self, place: Place, why: impl Into<String>) -> TemplateError {
        let file = self.files.get(place.file).cloned().unwrap_or_default();
        TemplateError { file, line: place.line, column: place.column, why: why.into() }
    }

    pub(crate) fn warn(&mut self, place: Place, what: &str) {
        if self.warnings.len() < WARNINGS_MAX {
            let warning = self.error(place, what).to_string();
            self.warnings.push(warning);
        }
    }
}

struct Reader<'a> {
    constants: HashMap<String, String>,
    given: HashMap<String, String>,
    /// Constants that lines have in brackets.
    used: HashSet<String>,
    /// Constants that the file defines.
    defined: BTreeSet<String>,
    out: Sections,
    /// Whether the last section goes on.
    open: bool,
    bytes: usize,
    look_up: Lookup<'a>,
}

impl Reader<'_> {
    fn file(&mut self, file: usize, text: &str) -> Result<(), TemplateError> {
        let start = Place { file, line: 1, column: 1 };
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > TEMPLATE_BYTES_MAX {
            let why = format!("a template may have {TEMPLATE_BYTES_MAX} bytes, no more");
            return Err(self.out.error(start, why));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut pending: Option<Text> = None;
        for (index, line) in text.lines().enumerate() {
            let place = Place { file, line: index as u32 + 1, column: 1 };
            let line = line.strip_suffix('\r').unwrap_or(line);
            let continues = line.starts_with([' ', '\t']) && !line.trim().is_empty();
            if let (true, Some(pending)) = (continues, &mut pending) {
                let rest = line.get(1..).unwrap_or_default();
                pending.append(rest, Place { column: 2, ..place }, true);
                continue;
            }
            if let Some(pending) = pending.take() {
                self.line(&pending)?;
            }
            if line.starts_with('#') {
                continue;
            }
            if line.trim().is_empty() {
                self.open = false;
                continue;
            }
            pending = Some(Text::new(line, place));
        }
        pending.map_or(Ok(()), |pending| self.line(&pending))
    }

    fn line(&mut self, line: &Text) -> Result<(), TemplateError> {
        let word = |word: &str| keyword(&line.text, word);
        if let Some(at) = word("define") {
            return self.define(line, at);
        }
        if let Some(at) = word("include") {
            return self.include(line, at);
        }
        let (line, unknown) = self.expanded(line)?;
        for place in unknown {
            self.out.warn(place, "no constant has this name, and so it stays as it is written");
        }
        let trimmed = line.text.trim_start().len();
        let from = line.text.len() - trimmed;
        let Some(colon) = line.text.find(':') else {
            return Err(self.out.error(line.place(from), self.no_colon()));
        };
        let key = line.text.get(from..colon).unwrap_or_default().trim().to_owned();
        let rest = line.text.get(colon + 1..).unwrap_or_default();
        let value_at = colon + 1 + (rest.len() - rest.trim_start().len());
        let value = rest.trim().to_owned();
        let (place, at) = (line.place(from), line.place(value_at));
        match key.to_ascii_lowercase().as_str() {
            "branch" if !self.open => self.begin(SectionKind::Branch(value), place),
            "template" if !self.open => self.begin(SectionKind::Template(value), place),
            "branch" | "template" => Err(self.out.error(
                place,
                format!("an empty line is missing before '{key}:', which begins another section"),
            )),
            _ if !self.open => Err(self.out.error(place, self.no_colon())),
            "subordinatetemplate" => self.kid(&value, at),
            "rdnattr" => self.rdn(&value, at),
            "extends" => self.extends(value, at),
            _ => self.value(&line, &key, colon, place),
        }
    }

    /// A line with its constants replaced, which may not grow without bound.
    fn expanded(&mut self, line: &Text) -> Result<(Text, Vec<Place>), TemplateError> {
        let (expanded, unknown) = line.expanded(&self.constants, &mut self.used);
        self.bytes = self.bytes.saturating_add(expanded.text.len());
        let is_long = line.text.len() > LINE_BYTES_MAX;
        if is_long || expanded.text.len() > EXPANDED_BYTES_MAX || self.bytes > ALL_BYTES_MAX {
            let why = format!(
                "a line may have {LINE_BYTES_MAX} bytes, {EXPANDED_BYTES_MAX} with its constants \
                 replaced, and all lines together {ALL_BYTES_MAX}"
            );
            return Err(self.out.error(line.place(0), why));
        }
        Ok((expanded, unknown))
    }

    fn no_colon(&self) -> &'static str {
        match self.open {
            true => {
                "the line has no ':' after an attribute; a line that continues another begins \
                     with a blank"
            }
            false => {
                "it belongs to no section: one begins with 'branch: DN' or 'template: NAME' \
                      and goes to the next empty line (define NAME=VALUE and include FILE stand \
                      outside)"
            }
        }
    }

    fn define(&mut self, line: &Text, at: usize) -> Result<(), TemplateError> {
        self.open = false;
        let (text, _) = self.expanded(&line.part(at, line.text.len()))?;
        let Some((name, value)) = text.text.split_once('=') else {
            return Err(self
                .out
                .error(text.place(0), "a constant is defined so: define NAME=VALUE"));
        };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        if name.is_empty() {
            return Err(self.out.error(text.place(0), "the constant has no name"));
        }
        if !self.given.contains_key(&name) {
            self.constants.insert(name.clone(), value);
        }
        self.defined.insert(name);
        Ok(())
    }

    /// That every constant that was given is one: a slip would leave the template's own value.
    fn require_known(&self, given: &[(String, String)]) -> Result<(), TemplateError> {
        let known = |name: &str| self.used.contains(name) || self.defined.contains(name);
        let Some((name, _)) = given.iter().find(|(name, _)| !known(&name.to_ascii_lowercase()))
        else {
            return Ok(());
        };
        let all = || self.defined.iter().map(String::as_str);
        let advice = match nearest(name, all()) {
            Some(near) => format!("did you mean {near}?"),
            None if self.defined.is_empty() => "it has none".to_owned(),
            None => format!("it has {}", all().collect::<Vec<_>>().join(", ")),
        };
        let start = Place { file: 0, line: 1, column: 1 };
        Err(self.out.error(start, format!("the template has no constant {name}; {advice}")))
    }

    fn include(&mut self, line: &Text, at: usize) -> Result<(), TemplateError> {
        self.open = false;
        let place = line.place(at);
        let name = line.text.get(at..).unwrap_or_default().trim().to_owned();
        if self.out.files.len() > INCLUDES_MAX {
            let why = format!("more than {INCLUDES_MAX} files are included; is one by itself?");
            return Err(self.out.error(place, why));
        }
        match (self.look_up)(&name) {
            Ok(Some(bytes)) => {
                let text = String::from_utf8(bytes)
                    .map_err(|_| self.out.error(place, format!("{name} is not UTF-8")))?;
                self.out.files.push(name);
                let file = self.out.files.len() - 1;
                self.file(file, &text)?;
                self.open = false;
                Ok(())
            }
            Ok(None) if is_class(&name) => Err(self.out.error(
                place,
                format!(
                    "{name} is a class of tags, which only Java can run; take out this line and \
                     the tags of it (keyway data tags lists those that are there)"
                ),
            )),
            Ok(None) => Err(self.out.error(place, format!("there is no file {name}"))),
            Err(why) => Err(self.out.error(place, why)),
        }
    }

    fn begin(&mut self, kind: SectionKind, place: Place) -> Result<(), TemplateError> {
        let name = match &kind {
            SectionKind::Branch(name) | SectionKind::Template(name) => name,
        };
        if name.is_empty() {
            return Err(self.out.error(place, "it has no name"));
        }
        if self.out.sections.len() >= SECTIONS_MAX {
            let why = format!("there may be {SECTIONS_MAX} branches and templates, no more");
            return Err(self.out.error(place, why));
        }
        self.open = true;
        self.out.sections.push(Section {
            kind,
            place,
            extends: None,
            rdn: None,
            kids: Vec::new(),
            lines: Vec::new(),
        });
        Ok(())
    }

    fn kid(&mut self, value: &str, place: Place) -> Result<(), TemplateError> {
        let (name, count) = match value.rsplit_once(':') {
            None => (value, None),
            Some((name, count)) => match count.trim().parse() {
                Ok(count) => (name, Some(count)),
                Err(_) => {
                    let count = count.trim();
                    let why = format!(
                        "'{count}' is not how many entries; write subordinateTemplate: {name}:100, \
                         or a constant in brackets that is a number"
                    );
                    return Err(self.out.error(place, why));
                }
            },
        };
        let kid = Kid { name: name.trim().to_owned(), count, place };
        if let Some(section) = self.out.sections.last_mut() {
            section.kids.push(kid);
        }
        Ok(())
    }

    fn rdn(&mut self, value: &str, place: Place) -> Result<(), TemplateError> {
        let attributes: Vec<String> = value.split('+').map(|it| it.trim().to_owned()).collect();
        match self.out.sections.last_mut() {
            Some(section) if matches!(section.kind, SectionKind::Template(_)) => {
                section.rdn = Some((attributes, place));
                Ok(())
            }
            _ => Err(self.out.error(place, "a branch has a whole name, and so no rdnAttr")),
        }
    }

    fn extends(&mut self, name: String, place: Place) -> Result<(), TemplateError> {
        match self.out.sections.last_mut() {
            Some(section) if matches!(section.kind, SectionKind::Template(_)) => {
                section.extends = Some((name, place));
                Ok(())
            }
            _ => Err(self.out.error(place, "only a template can extend another")),
        }
    }

    fn value(
        &mut self,
        line: &Text,
        attribute: &str,
        colon: usize,
        place: Place,
    ) -> Result<(), TemplateError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte);
        if !attribute.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !attribute.bytes().all(fits)
        {
            return Err(self.out.error(place, format!("'{attribute}' is not an attribute")));
        }
        self.out.check_word(attribute, place)?;
        let mut from = colon + 1;
        let is_base64 = line.text.get(from..).is_some_and(|rest| rest.starts_with(':'));
        from += usize::from(is_base64);
        let rest = line.text.get(from..).unwrap_or_default();
        let is_url = !is_base64
            && rest
                .strip_prefix('<')
                .is_some_and(|url| url.starts_with(' ') || url.contains("://"));
        if is_url {
            let why = "values are not fetched from URLs; <file:NAME> takes lines of a file";
            return Err(self.out.error(line.place(from), why));
        }
        let skipped = rest.len() - rest.trim_start().len();
        let value = line.part(from + skipped, from + rest.trim_end().len().max(skipped));
        let line = Line { attribute: attribute.to_owned(), value, is_base64, place };
        let Some(section) = self.out.sections.last_mut() else { return Ok(()) };
        if section.lines.len() >= LINES_MAX {
            let why = format!("a section may have {LINES_MAX} lines of values, no more");
            return Err(self.out.error(place, why));
        }
        section.lines.push(line);
        Ok(())
    }
}

/// Where the rest of a line begins that begins with this word and a blank.
fn keyword(line: &str, word: &str) -> Option<usize> {
    let head = line.get(..word.len())?;
    let rest = line.get(word.len()..)?;
    let blank = rest.len() - rest.trim_start().len();
    (head.eq_ignore_ascii_case(word) && blank > 0).then_some(word.len() + blank)
}

/// Whether it looks like a class of Java: words with points between, no path.
fn is_class(name: &str) -> bool {
    !name.contains(['/', ' '])
        && name.split('.').count() > 2
        && !name.ends_with(".template")
        && name.split('.').all(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}
