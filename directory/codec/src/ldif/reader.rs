//! Reading: from pieces of a file to lines, and from lines to records.

use super::line::{Line, is_description};
use super::{LdifError, Lines, Modification, Record, RecordKind};
use crate::limits::LDIF_RECORD_BYTES_MAX;
use crate::message::ChangeOperation;

/// The memory of a line beside its own bytes, roughly.
const LINE_COST_BYTES: usize = 64;

/// Reads records out of a file that comes in pieces.
///
/// ```
/// use keyway_codec::ldif::Reader;
///
/// let mut reader = Reader::new();
/// let mut dns = Vec::new();
/// for piece in ["dn: dc=exa", "mple\ndc: example\n\ndn: o=other\no: other\n"] {
///     let mut rest = piece.as_bytes();
///     while let Some(record) = reader.read(&mut rest) {
///         dns.push(record?.dn);
///     }
/// }
/// dns.extend(reader.finish().transpose()?.map(|record| record.dn));
/// assert_eq!(dns, ["dc=example", "o=other"]);
/// # Ok::<(), keyway_codec::ldif::LdifError>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    /// The line that is being read, unfolded as far as it is known.
    pub(super) line: Vec<u8>,
    /// Where in it the part begins that is of the file's current line.
    part: usize,
    at: Position,
    /// Number of the file's current line, and of the one that `line` began on.
    number: u64,
    line_number: u64,
    /// Bytes of the record's lines so far.
    record_bytes: usize,
    pub(super) record_bytes_max: usize,
    started: bool,
    record: Building,
}

/// Where in the file's current line the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    Within,
}

/// How far a record has got.
#[derive(Debug)]
enum Building {
    /// No line of it was there yet.
    Nothing,
    /// Its `dn:` was, and more perhaps.
    Begun { line: u64, dn: String, body: Body },
    /// It is wrong, and its lines are skipped.
    Failed(LdifError),
}

/// The part after the `dn:` line.
#[derive(Debug)]
enum Body {
    Empty,
    /// Controls were there: `changetype:` must follow.
    Controlled,
    Content(Lines),
    Add(Lines),
    Delete,
    Modify {
        done: Vec<Modification>,
        open: Option<Modification>,
    },
    ModRdn {
        new_rdn: Option<String>,
        delete_old_rdn: Option<bool>,
        new_superior: Option<String>,
    },
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// A reader at the beginning of a file.
    #[must_use]
    pub const fn new() -> Self {
        Reader {
            line: Vec::new(),
            part: 0,
            at: Position::Start,
            number: 1,
            line_number: 1,
            record_bytes: 0,
            record_bytes_max: LDIF_RECORD_BYTES_MAX,
            started: false,
            record: Building::Nothing,
        }
    }

    /// Reads on in a piece of the file and steps over what was read of it.
    ///
    /// `None` when the piece is used up: the next one is wanted, or [`Reader::finish`].
    ///
    /// # Errors
    /// For a record that is wrong: the line, the entry and the reason. The next call goes on with
    /// the record after it. One that is longer than [`LDIF_RECORD_BYTES_MAX`] is wrong as well.
    pub fn read(&mut self, piece: &mut &[u8]) -> Option<Result<Record, LdifError>> {
        while let Some(&first) = piece.first() {
            if self.at == Position::Start {
                self.at = Position::Within;
                if first == b' ' && !self.line.is_empty() {
                    *piece = piece.get(1..).unwrap_or_default();
                    self.part = self.line.len();
                } else {
                    self.take_line();
                    self.line_number = self.number;
                    self.record_bytes = self.record_bytes.saturating_add(LINE_COST_BYTES);
                }
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (part, rest) = piece.split_at_checked(end.unwrap_or(piece.len()))?;
            *piece = rest.get(1..).unwrap_or_default();
            self.append(part);
            if end.is_some()
                && self.end_line()
                && let Some(record) = self.take_record()
            {
                return Some(record);
            }
        }
        None
    }

    /// The record that the file ends in, if it has not ended before.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn finish(&mut self) -> Option<Result<Record, LdifError>> {
        if self.at == Position::Within {
            self.end_line();
        }
        self.take_line();
        self.take_record()
    }

    /// Appends a part of the file's current line, unless the record is lost anyway.
    fn append(&mut self, part: &[u8]) {
        self.record_bytes = self.record_bytes.saturating_add(part.len());
        if self.record_bytes > self.record_bytes_max {
            self.fail("the record is longer than this program reads");
            // A byte is enough to see that a line is not empty.
            let first = self.line.first().or(part.first()).copied();
            self.line = first.into_iter().collect();
            self.part = self.part.min(1);
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Ends the file's current line, and says whether it was empty.
    fn end_line(&mut self) -> bool {
        self.at = Position::Start;
        self.number += 1;
        if self.line.len() > self.part && self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        self.line.is_empty()
    }

    /// Takes the unfolded line that has ended.
    fn take_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        self.part = 0;
        if let Err(why) = self.interpret(&line) {
            self.fail(why);
        }
        // Its memory serves for the next one.
        line.clear();
        self.line = line;
    }

    fn fail(&mut self, why: &'static str) {
        let dn = match std::mem::replace(&mut self.record, Building::Nothing) {
            Building::Nothing => None,
            Building::Begun { dn, .. } => Some(dn),
            failed @ Building::Failed(_) => {
                self.record = failed;
                return;
            }
        };
        self.record = Building::Failed(LdifError { line: self.line_number, dn, why });
    }

    fn take_record(&mut self) -> Option<Result<Record, LdifError>> {
        self.record_bytes = 0;
        match std::mem::replace(&mut self.record, Building::Nothing) {
            Building::Nothing => None,
            Building::Failed(error) => Some(Err(error)),
            Building::Begun { line, dn, body } => Some(match body.finish() {
                Ok(kind) => Ok(Record { line, dn, kind }),
                Err(why) => Err(LdifError { line, dn: Some(dn), why }),
            }),
        }
    }

    /// Gives a line its meaning.
    fn interpret(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let first = !self.started;
        let line =
            if first { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line };
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        if line.starts_with(b" ") {
            return Err("a line that begins with a blank continues another, and there is none");
        }
        self.started = true;
        match &mut self.record {
            Building::Failed(_) => Ok(()),
            Building::Begun { body, .. } => body.add(line),
            Building::Nothing => {
                let line = Line::parse(line)?;
                if first && line.is("version") {
                    return match line.word()?.as_str() {
                        "1" => Ok(()),
                        _ => Err("only version 1 of LDIF is known"),
                    };
                }
                if !line.is("dn") {
                    return Err("a record begins with 'dn:'");
                }
                let dn = line.text()?;
                self.record = Building::Begun { line: self.line_number, dn, body: Body::Empty };
                Ok(())
            }
        }
    }
}

impl Body {
    /// Takes a line after `dn:`.
    fn add(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if line == b"-" {
            return self.end_modification();
        }
        let line = Line::parse(line)?;
        match self {
            Body::Empty | Body::Controlled if line.is("control") => {
                *self = Body::Controlled;
                refuse_critical(&line)
            }
            Body::Empty | Body::Controlled if line.is("changetype") => {
                *self = Body::of(&line.word()?)?;
                Ok(())
            }
            Body::Controlled => Err("'changetype:' is due after 'control:'"),
            Body::Empty => {
                *self = Body::Content(vec![attribute(&line)?]);
                Ok(())
            }
            Body::Content(lines) | Body::Add(lines) => {
                lines.push(attribute(&line)?);
                Ok(())
            }
            Body::Delete => Err("a delete record has no lines after 'changetype:'"),
            Body::Modify { open, .. } => modification(open, &line),
            Body::ModRdn { new_rdn, delete_old_rdn, new_superior } => {
                rename(new_rdn, delete_old_rdn, new_superior, &line)
            }
        }
    }

    fn of(change: &str) -> Result<Body, &'static str> {
        Ok(match change.to_ascii_lowercase().as_str() {
            "add" => Body::Add(Vec::new()),
            "delete" => Body::Delete,
            "modify" => Body::Modify { done: Vec::new(), open: None },
            "modrdn" | "moddn" => {
                Body::ModRdn { new_rdn: None, delete_old_rdn: None, new_superior: None }
            }
            _ => return Err("unknown changetype (expected add, delete, modify, modrdn or moddn)"),
        })
    }

    fn end_modification(&mut self) -> Result<(), &'static str> {
        let Body::Modify { done, open } = self else {
            return Err("'-' ends a part of a modify record, and this is none");
        };
        done.push(complete(open.take().ok_or("'-' ends nothing")?)?);
        Ok(())
    }

    fn finish(self) -> Result<RecordKind, &'static str> {
        match self {
            Body::Empty => Err("the record has nothing after 'dn:'"),
            Body::Controlled => Err("'changetype:' is due after 'control:'"),
            Body::Content(lines) => Ok(RecordKind::Content(lines)),
            Body::Add(lines) if lines.is_empty() => Err("an add record needs attributes"),
            Body::Add(lines) => Ok(RecordKind::Add(lines)),
            Body::Delete => Ok(RecordKind::Delete),
            Body::Modify { mut done, open } => {
                if let Some(open) = open {
                    done.push(complete(open)?);
                }
                Ok(RecordKind::Modify(done))
            }
            Body::ModRdn { new_rdn, delete_old_rdn, new_superior } => Ok(RecordKind::ModRdn {
                new_rdn: new_rdn.ok_or("'newrdn:' is missing")?,
                delete_old_rdn: delete_old_rdn.ok_or("'deleteoldrdn:' is missing")?,
                new_superior,
            }),
        }
    }
}

fn attribute(line: &Line<'_>) -> Result<(String, Vec<u8>), &'static str> {
    if line.is("dn") {
        return Err("an empty line is missing before a second 'dn:'");
    }
    if !is_description(line.key) {
        return Err("the text before ':' is not an attribute description");
    }
    Ok((line.key.to_owned(), line.value()?))
}

/// `control: OID [true|false][: value]`. One that is not critical may be ignored (note 9).
fn refuse_critical(line: &Line<'_>) -> Result<(), &'static str> {
    let text = line.text()?;
    let before_value = text.split(':').next().unwrap_or_default();
    let mut words = before_value.split(' ').filter(|word| !word.is_empty()).skip(1);
    match words.next() {
        Some(word) if word.eq_ignore_ascii_case("true") => {
            Err("the record has a critical control, and LDIF is read without controls")
        }
        _ => Ok(()),
    }
}

/// A line of a modify record: one that opens a modification, or one with a value for it.
fn modification(open: &mut Option<Modification>, line: &Line<'_>) -> Result<(), &'static str> {
    if let Some(open) = open {
        if !line.is(&open.attribute) {
            return Err("the attribute is not that of the modification, or '-' is missing before");
        }
        open.values.push(line.value()?);
        return Ok(());
    }
    let operation = match line.key.to_ascii_lowercase().as_str() {
        "add" => ChangeOperation::Add,
        "delete" => ChangeOperation::Delete,
        "replace" => ChangeOperation::Replace,
        "increment" => ChangeOperation::Increment,
        _ => return Err("one of add:, delete:, replace:, increment: is due"),
    };
    let attribute = line.word()?;
    if !is_description(&attribute) {
        return Err("the text after the operation is not an attribute description");
    }
    *open = Some(Modification { operation, attribute, values: Vec::new() });
    Ok(())
}

fn complete(modification: Modification) -> Result<Modification, &'static str> {
    let needs = matches!(modification.operation, ChangeOperation::Add | ChangeOperation::Increment);
    if needs && modification.values.is_empty() {
        return Err("an add: or increment: of a modify record needs values");
    }
    Ok(modification)
}

/// A line of a modrdn record. They come in one order.
fn rename(
    new_rdn: &mut Option<String>,
    delete_old_rdn: &mut Option<bool>,
    new_superior: &mut Option<String>,
    line: &Line<'_>,
) -> Result<(), &'static str> {
    if new_rdn.is_none() {
        if !line.is("newrdn") {
            return Err("'newrdn:' is due");
        }
        *new_rdn = Some(line.text()?);
    } else if delete_old_rdn.is_none() {
        if !line.is("deleteoldrdn") {
            return Err("'deleteoldrdn:' is due");
        }
        *delete_old_rdn = Some(match line.word()?.as_str() {
            "0" => false,
            "1" => true,
            _ => return Err("'deleteoldrdn:' is 0 or 1"),
        });
    } else if new_superior.is_none() && line.is("newsuperior") {
        *new_superior = Some(line.text()?);
    } else {
        return Err("a modrdn record has no such line here");
    }
    Ok(())
}
