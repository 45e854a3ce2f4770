//! The part of BER (X.690) that RFC 4511 § 5.1 leaves: definite lengths, primitive strings.
//!
//! Reading is as strict as § 5.1 with two allowances that deployed clients need: lengths and
//! integers may have leading zero octets (lengths up to four octets in all), and any octet but
//! zero is a true BOOLEAN. Writing is always the shortest form.

use crate::error::DecodeError;
use crate::limits::INTEGER_MAX;

/// Identifier octet of a BOOLEAN.
pub const BOOLEAN: u8 = 0x01;
/// Identifier octet of an INTEGER.
pub const INTEGER: u8 = 0x02;
/// Identifier octet of a primitive OCTET STRING.
pub const OCTET_STRING: u8 = 0x04;
/// Identifier octet of an ENUMERATED.
pub const ENUMERATED: u8 = 0x0a;
/// Identifier octet of a SEQUENCE or SEQUENCE OF.
pub const SEQUENCE: u8 = 0x30;
/// Identifier octet of a SET or SET OF.
pub const SET: u8 = 0x31;

/// Identifier octet of the primitive, context-specific tag `[number]`; `number` is below 31.
#[must_use]
pub const fn context(number: u8) -> u8 {
    0x80 | number
}

/// Identifier octet of the constructed, context-specific tag `[number]`; `number` is below 31.
#[must_use]
pub const fn context_constructed(number: u8) -> u8 {
    0xa0 | number
}

/// The identifier and length octets in front of an element.
struct Header {
    tag: u8,
    /// How many octets the header itself takes.
    size: usize,
    /// How many octets of contents follow it.
    length: usize,
}

impl Header {
    /// The header at the start of `bytes`; `None` if more bytes are needed to know it.
    #[inline]
    fn read(bytes: &[u8]) -> Result<Option<Header>, DecodeError> {
        let Some(&tag) = bytes.first() else { return Ok(None) };
        if tag & 0x1f == 0x1f {
            return Err(DecodeError::malformed("tag of more than one octet"));
        }
        let Some(&first) = bytes.get(1) else { return Ok(None) };
        if first < 0x80 {
            return Ok(Some(Header { tag, size: 2, length: usize::from(first) }));
        }
        let octets = usize::from(first & 0x7f);
        match octets {
            0 => return Err(DecodeError::malformed("indefinite length")),
            1..=4 => {}
            _ => return Err(DecodeError::malformed("length of more than four octets")),
        }
        let Some(long) = bytes.get(2..2 + octets) else { return Ok(None) };
        let length = long.iter().fold(0_u32, |length, &octet| length << 8 | u32::from(octet));
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
        Ok(Some(Header { tag, size: 2 + octets, length }))
    }

    /// The octets of header and contents together.
    fn total(&self) -> Result<usize, DecodeError> {
        self.size.checked_add(self.length).ok_or(DecodeError::Truncated)
    }
}

/// Length in octets of the first LDAPMessage in `bytes`, `None` if more bytes are needed.
///
/// A length over the maximum is refused as soon as the header is there.
///
/// # Errors
/// The stream is not LDAP, or not in step any more, and nothing after it can be trusted: `TooLong`
/// beyond `message_bytes_max` octets, `UnexpectedTag` if this is no SEQUENCE, `Malformed` if its
/// length is not definite.
pub fn frame(bytes: &[u8], message_bytes_max: usize) -> Result<Option<usize>, DecodeError> {
    Ok(announced(bytes, message_bytes_max)?.filter(|total| *total <= bytes.len()))
}

/// The length of an element as soon as its header is there, although the rest may not be.
///
/// # Errors
/// As [`frame`].
pub fn announced(bytes: &[u8], message_bytes_max: usize) -> Result<Option<usize>, DecodeError> {
    match bytes.first() {
        None => return Ok(None),
        Some(&SEQUENCE) => {}
        Some(&found) => return Err(DecodeError::UnexpectedTag { expected: SEQUENCE, found }),
    }
    let Some(header) = Header::read(bytes)? else { return Ok(None) };
    let total = header.total()?;
    if total > message_bytes_max {
        return Err(DecodeError::TooLong { bytes: total, max: message_bytes_max });
    }
    Ok(Some(total))
}

/// The part of a message's contents that has come in, whatever its length.
pub fn begun(bytes: &[u8]) -> Option<&[u8]> {
    let header = Header::read(bytes).ok()??;
    bytes.get(header.size..).filter(|_| bytes.first() == Some(&SEQUENCE))
}

/// Reads one element after another from borrowed bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of the elements in `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The identifier octet of the next element, if there is one.
    #[must_use]
    pub fn peek_tag(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element: its identifier octet and its contents.
    ///
    /// # Errors
    /// `Truncated` if it does not end within these bytes, `Malformed` for an indefinite length,
    /// one of more than four octets, or a tag of more than one octet.
    #[inline]
    pub fn element(&mut self) -> Result<(u8, &'a [u8]), DecodeError> {
        let header = Header::read(self.rest)?.ok_or(DecodeError::Truncated)?;
        let (element, rest) =
            self.rest.split_at_checked(header.total()?).ok_or(DecodeError::Truncated)?;
        let contents = element.get(header.size..).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok((header.tag, contents))
    }

    /// The contents of the next element, which must have this tag.
    ///
    /// # Errors
    /// Those of [`Reader::element`], and `UnexpectedTag`.
    #[inline]
    pub fn expect(&mut self, tag: u8) -> Result<&'a [u8], DecodeError> {
        match self.peek_tag() {
            Some(found) if found != tag => Err(DecodeError::UnexpectedTag { expected: tag, found }),
            _ => Ok(self.element()?.1),
        }
    }

    /// The contents of the next element if it has this tag; otherwise nothing is read.
    ///
    /// # Errors
    /// Those of [`Reader::element`].
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, DecodeError> {
        if self.peek_tag() == Some(tag) { Ok(Some(self.element()?.1)) } else { Ok(None) }
    }

    /// A reader of the elements within the next element, which must have this tag.
    ///
    /// # Errors
    /// Those of [`Reader::expect`].
    pub fn nested(&mut self, tag: u8) -> Result<Reader<'a>, DecodeError> {
        Ok(Reader::new(self.expect(tag)?))
    }

    /// An INTEGER or, with its tag, an ENUMERATED.
    ///
    /// # Errors
    /// Those of [`Reader::expect`], `Malformed` without octets, and `Invalid` with more than eight.
    pub fn integer(&mut self, tag: u8) -> Result<i64, DecodeError> {
        integer(self.expect(tag)?)
    }

    /// An INTEGER or ENUMERATED from 0 to `maxInt` ([`INTEGER_MAX`]).
    ///
    /// # Errors
    /// Those of [`Reader::integer`], and `Invalid` outside that range.
    pub fn natural(&mut self, tag: u8) -> Result<u32, DecodeError> {
        natural(self.expect(tag)?)
    }

    /// A BOOLEAN: any octet but zero is true.
    ///
    /// # Errors
    /// Those of [`Reader::expect`], and `Malformed` if it is not one octet.
    pub fn boolean(&mut self, tag: u8) -> Result<bool, DecodeError> {
        boolean(self.expect(tag)?)
    }

    /// An LDAPString: UTF-8 in an OCTET STRING.
    ///
    /// # Errors
    /// Those of [`Reader::expect`], and `Invalid` if it is not UTF-8.
    #[inline]
    pub fn string(&mut self, tag: u8) -> Result<&'a str, DecodeError> {
        string(self.expect(tag)?)
    }

    /// Reads to the end of an extensible SEQUENCE whose components have the tags `known`.
    ///
    /// Later elements with other tags are ignored if they are BER (RFC 4511 § 4). A known tag here is of
    /// a component that comes twice or too late; to ignore that could lose a critical control.
    ///
    /// # Errors
    /// Those of [`Reader::element`], and `Malformed` for a known tag.
    #[inline]
    pub fn finish(mut self, known: &[u8]) -> Result<(), DecodeError> {
        while !self.is_empty() {
            let (tag, _) = self.element()?;
            if known.contains(&tag) {
                return Err(DecodeError::malformed("component repeated or out of order"));
            }
        }
        Ok(())
    }
}

/// The value of an INTEGER's contents octets.
fn integer(contents: &[u8]) -> Result<i64, DecodeError> {
    let Some(&first) = contents.first() else {
        return Err(DecodeError::malformed("integer without octets"));
    };
    if contents.len() > 8 {
        return Err(DecodeError::invalid("integer of more than eight octets"));
    }
    let sign = if first & 0x80 == 0 { 0 } else { -1 };
    Ok(contents.iter().fold(sign, |value, &octet| value << 8 | i64::from(octet)))
}

/// As [`integer`], from 0 to `maxInt`.
pub(crate) fn natural(contents: &[u8]) -> Result<u32, DecodeError> {
    u32::try_from(integer(contents)?)
        .ok()
        .filter(|&value| value <= INTEGER_MAX)
        .ok_or(DecodeError::invalid("integer not from 0 to 2147483647"))
}

/// The value of a BOOLEAN's contents octet.
pub(crate) fn boolean(contents: &[u8]) -> Result<bool, DecodeError> {
    match contents {
        [octet] => Ok(*octet != 0),
        _ => Err(DecodeError::malformed("boolean not of one octet")),
    }
}

/// The text of an LDAPString's contents octets.
#[inline]
pub(crate) fn string(contents: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(contents).map_err(|_| DecodeError::invalid("string is not UTF-8"))
}

/// Where the contents of an element under construction start.
#[derive(Debug)]
#[must_use = "an element that is begun must be ended"]
pub struct Mark(usize);

/// Appends elements to a buffer, each in the shortest form.
#[derive(Debug)]
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> Writer<'b> {
    /// A writer that appends to `out`.
    pub const fn new(out: &'b mut Vec<u8>) -> Self {
        Writer { out }
    }

    /// Begins a constructed element; the elements written until [`Writer::end`] are its contents.
    pub fn begin(&mut self, tag: u8) -> Mark {
        self.out.extend_from_slice(&[tag, 0]);
        Mark(self.out.len())
    }

    /// Ends the element begun last and not ended yet, and fills in its length.
    ///
    /// # Panics
    /// If `mark` is of another writer. Marks must be ended innermost first.
    pub fn end(&mut self, mark: Mark) {
        let Mark(start) = mark;
        let end = self.out.len();
        let length = Length::of(end - start);
        let (first, more) = length.octets();
        self.out[start - 1] = first;
        if !more.is_empty() {
            self.out.extend_from_slice(more);
            self.out.copy_within(start..end, start + more.len());
            self.out[start..start + more.len()].copy_from_slice(more);
        }
    }

    /// Identifier and length of an element whose contents, of so many bytes, follow.
    pub fn header(&mut self, tag: u8, contents_bytes: usize) {
        let length = Length::of(contents_bytes);
        let (first, more) = length.octets();
        self.out.extend_from_slice(&[tag, first]);
        self.out.extend_from_slice(more);
    }

    /// A primitive element with these contents.
    #[inline]
    pub fn octets(&mut self, tag: u8, contents: &[u8]) {
        let length = Length::of(contents.len());
        let (first, more) = length.octets();
        self.out.extend_from_slice(&[tag, first]);
        self.out.extend_from_slice(more);
        self.out.extend_from_slice(contents);
    }

    /// A primitive element with this text.
    #[inline]
    pub fn string(&mut self, tag: u8, text: &str) {
        self.octets(tag, text.as_bytes());
    }

    /// An INTEGER or, with its tag, an ENUMERATED.
    pub fn integer(&mut self, tag: u8, value: i64) {
        let octets = value.to_be_bytes();
        // The first octet that says more than the sign of the next one does.
        let padded = octets.windows(2).take_while(|pair| {
            matches!(pair, [0, next] if next & 0x80 == 0)
                || matches!(pair, [0xff, next] if next & 0x80 != 0)
        });
        let skipped = padded.count();
        self.octets(tag, octets.get(skipped..).unwrap_or_default());
    }

    /// A BOOLEAN, true as 0xFF (RFC 4511 § 5.1).
    pub fn boolean(&mut self, tag: u8, value: bool) {
        self.octets(tag, &[if value { 0xff } else { 0 }]);
    }

    /// Octets that are BER already.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// How long the buffer is by now.
    pub(crate) fn position(&self) -> usize {
        self.out.len()
    }

    /// Takes back what was written after `position`.
    pub(crate) fn rewind(&mut self, position: usize) {
        self.out.truncate(position);
    }
}

/// How long an element with so many bytes of contents is, in bytes.
pub fn element_bytes(contents_bytes: usize) -> usize {
    2 + Length::of(contents_bytes).octets().1.len() + contents_bytes
}

/// The length octets of an element, in their shortest form.
struct Length {
    value: usize,
    bytes: [u8; size_of::<usize>()],
}

impl Length {
    fn of(value: usize) -> Self {
        Length { value, bytes: value.to_be_bytes() }
    }

    /// The first length octet and those that follow it in the long form.
    fn octets(&self) -> (u8, &[u8]) {
        if self.value < 0x80 {
            return (self.value as u8, &[]);
        }
        let zeros = (self.value.leading_zeros() / 8) as usize;
        let more = self.bytes.get(zeros..).unwrap_or_default();
        (0x80 | more.len() as u8, more)
    }
}
