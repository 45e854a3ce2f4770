//! A SearchResultEntry written piece by piece, for servers that never hold an entry as a value.

use crate::ber::{self, Mark, OCTET_STRING, SEQUENCE, SET, Writer, element_bytes};

use super::{Control, tag};

/// Appends one SearchResultEntry message to a buffer, without allocating but for the buffer.
///
/// ```
/// # use keyway_codec::message::{EntryWriter, Message};
/// let mut out = Vec::new();
/// let mut entry = EntryWriter::begin(&mut out, 2, "cn=Ada,dc=example,dc=com");
/// entry.attribute("cn");
/// entry.value(b"Ada");
/// entry.end_attribute();
/// entry.finish(&[]);
/// assert_eq!(Message::decode(&out).unwrap().id, 2);
/// ```
#[derive(Debug)]
#[must_use = "an entry must be finished or discarded"]
pub struct EntryWriter<'b> {
    writer: Writer<'b>,
    start: usize,
    message: Mark,
    entry: Mark,
    attributes: Mark,
    open: Option<OpenAttribute>,
}

#[derive(Debug)]
struct OpenAttribute {
    attribute: Mark,
    values: Mark,
}

impl<'b> EntryWriter<'b> {
    /// Begins the entry named `dn` that answers the search with message id `id`.
    pub fn begin(out: &'b mut Vec<u8>, id: u32, dn: &str) -> Self {
        let mut writer = Writer::new(out);
        let start = writer.position();
        let message = writer.begin(SEQUENCE);
        writer.integer(ber::INTEGER, i64::from(id));
        let entry = writer.begin(tag::SEARCH_RESULT_ENTRY);
        writer.string(OCTET_STRING, dn);
        let attributes = writer.begin(SEQUENCE);
        EntryWriter { writer, start, message, entry, attributes, open: None }
    }

    /// Begins an attribute, and ends the one before it if it is still open.
    pub fn attribute(&mut self, description: &str) {
        self.end_attribute();
        let attribute = self.writer.begin(SEQUENCE);
        self.writer.string(OCTET_STRING, description);
        let values = self.writer.begin(SET);
        self.open = Some(OpenAttribute { attribute, values });
    }

    /// Adds a value to the attribute begun last.
    pub fn value(&mut self, value: &[u8]) {
        debug_assert!(self.open.is_some(), "a value belongs to an attribute");
        self.writer.octets(OCTET_STRING, value);
    }

    /// Ends the attribute begun last; without one it does nothing.
    pub fn end_attribute(&mut self) {
        if let Some(OpenAttribute { attribute, values }) = self.open.take() {
            self.writer.end(values);
            self.writer.end(attribute);
        }
    }

    /// Ends the message.
    pub fn finish(mut self, controls: &[Control<'_>]) {
        self.end_attribute();
        self.writer.end(self.attributes);
        self.writer.end(self.entry);
        Control::encode_all(controls, &mut self.writer);
        self.writer.end(self.message);
    }

    /// Takes back all that was written of this message.
    pub fn discard(mut self) {
        self.writer.rewind(self.start);
    }
}

/// Appends a SearchResultEntry up to its attributes, which take so many bytes together, and returns what
/// follows them: for entries that are sent in pieces. [`begin_attribute`] and [`begin_value`] are for the
/// attributes.
pub fn begin_entry(
    out: &mut Vec<u8>,
    id: u32,
    dn: &str,
    attributes_bytes: usize,
    controls: &[Control<'_>],
) -> Vec<u8> {
    let (mut number, mut rest) = (Vec::new(), Vec::new());
    Writer::new(&mut number).integer(ber::INTEGER, i64::from(id));
    Control::encode_all(controls, &mut Writer::new(&mut rest));
    let entry_bytes = element_bytes(dn.len()) + element_bytes(attributes_bytes);
    let mut writer = Writer::new(out);
    writer.header(SEQUENCE, number.len() + element_bytes(entry_bytes) + rest.len());
    writer.raw(&number);
    writer.header(tag::SEARCH_RESULT_ENTRY, entry_bytes);
    writer.string(OCTET_STRING, dn);
    writer.header(SEQUENCE, attributes_bytes);
    rest
}

/// How long an attribute is whose values take so many bytes together, in bytes.
pub fn attribute_bytes(description: &str, values_bytes: usize) -> usize {
    element_bytes(element_bytes(description.len()) + element_bytes(values_bytes))
}

/// Appends an attribute up to its values, which take so many bytes together.
pub fn begin_attribute(out: &mut Vec<u8>, description: &str, values_bytes: usize) {
    let mut writer = Writer::new(out);
    let contents = element_bytes(description.len()) + element_bytes(values_bytes);
    writer.header(SEQUENCE, contents);
    writer.string(OCTET_STRING, description);
    writer.header(SET, values_bytes);
}

/// How long a value of so many bytes is, in bytes.
pub fn value_bytes(bytes: usize) -> usize {
    element_bytes(bytes)
}

/// Appends what is before a value of so many bytes.
pub fn begin_value(out: &mut Vec<u8>, bytes: usize) {
    Writer::new(out).header(OCTET_STRING, bytes);
}
