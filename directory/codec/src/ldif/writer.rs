//! Writing: what [`super::Reader`] reads the same, and every other reader of RFC 2849.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Record, RecordKind};
use crate::message::ChangeOperation;

/// Bytes of a line, after which it is folded.
const LINE_BYTES_MAX: usize = 76;

/// Appends records to a buffer.
///
/// ```
/// use keyway_codec::ldif::Writer;
///
/// let mut out = Vec::new();
/// let mut writer = Writer::new(&mut out);
/// writer.version();
/// writer.dn("dc=example");
/// writer.value("objectClass", b"domain");
/// writer.value("dc", b"example");
/// writer.end();
/// assert_eq!(out, b"version: 1\n\ndn: dc=example\nobjectClass: domain\ndc: example\n\n");
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> Writer<'b> {
    /// A writer that appends to `out`.
    pub const fn new(out: &'b mut Vec<u8>) -> Self {
        Writer { out }
    }

    /// Writes the beginning of a file.
    pub fn version(&mut self) {
        self.out.extend_from_slice(b"version: 1\n\n");
    }

    /// Begins a record.
    pub fn dn(&mut self, dn: &str) {
        self.value("dn", dn.as_bytes());
    }

    /// A line with a value, in base64 where the RFC demands it. `key` is an attribute description
    /// or a word of the format.
    pub fn value(&mut self, key: &str, value: &[u8]) {
        let mut line = Folded { out: self.out, column: 0 };
        line.push(key.as_bytes());
        if value.is_empty() {
            line.push(b":");
        } else if is_safe(value) {
            line.push(b": ");
            line.push(value);
        } else {
            line.push(b":: ");
            line.push(STANDARD.encode(value).as_bytes());
        }
        self.out.push(b'\n');
    }

    /// A comment, whatever is in the text: other programs skip it.
    pub fn comment(&mut self, text: &str) {
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        self.out.extend_from_slice(format!("# {}\n", plain.collect::<String>()).as_bytes());
    }

    /// Ends a record.
    pub fn end(&mut self) {
        self.out.push(b'\n');
    }

    /// A whole record.
    pub fn record(&mut self, record: &Record) {
        self.dn(&record.dn);
        match &record.kind {
            RecordKind::Content(lines) => self.lines(lines),
            RecordKind::Add(lines) => {
                self.value("changetype", b"add");
                self.lines(lines);
            }
            RecordKind::Delete => self.value("changetype", b"delete"),
            RecordKind::Modify(modifications) => {
                self.value("changetype", b"modify");
                for modification in modifications {
                    let attribute = &modification.attribute;
                    self.value(word(modification.operation), attribute.as_bytes());
                    modification.values.iter().for_each(|value| self.value(attribute, value));
                    self.out.extend_from_slice(b"-\n");
                }
            }
            RecordKind::ModRdn { new_rdn, delete_old_rdn, new_superior } => {
                self.value("changetype", b"modrdn");
                self.value("newrdn", new_rdn.as_bytes());
                self.value("deleteoldrdn", if *delete_old_rdn { b"1" } else { b"0" });
                if let Some(new_superior) = new_superior {
                    self.value("newsuperior", new_superior.as_bytes());
                }
            }
        }
        self.end();
    }

    fn lines(&mut self, lines: &[(String, Vec<u8>)]) {
        lines.iter().for_each(|(description, value)| self.value(description, value));
    }
}

fn word(operation: ChangeOperation) -> &'static str {
    match operation {
        ChangeOperation::Add => "add",
        ChangeOperation::Delete => "delete",
        ChangeOperation::Replace => "replace",
        ChangeOperation::Increment => "increment",
    }
}

/// `SAFE-STRING`, without a blank at its end (note 8), and without what a terminal would take for a command.
fn is_safe(value: &[u8]) -> bool {
    let safe = |byte: &u8| matches!(byte, b' '..=b'~');
    !matches!(value.first(), Some(b' ' | b':' | b'<'))
        && value.last() != Some(&b' ')
        && value.iter().all(safe)
}

/// Folds a line while it is written. All that is written is ASCII.
struct Folded<'b> {
    out: &'b mut Vec<u8>,
    column: usize,
}

impl Folded<'_> {
    fn push(&mut self, mut text: &[u8]) {
        loop {
            let capacity = LINE_BYTES_MAX - self.column;
            let Some((fits, rest)) = text.split_at_checked(capacity) else { break };
            if rest.is_empty() {
                break;
            }
            self.out.extend_from_slice(fits);
            self.out.extend_from_slice(b"\n ");
            self.column = 1;
            text = rest;
        }
        self.out.extend_from_slice(text);
        self.column += text.len();
    }
}
