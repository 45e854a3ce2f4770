//! The grammar of RFC 4514 § 3, with blanks allowed around separators.

use super::{Ava, Dn, DnError, Rdn};
use crate::ber::{BOOLEAN, INTEGER, OCTET_STRING, Reader};
use crate::limits::{DN_RDNS_MAX, RDN_AVAS_MAX};

/// Universal string types of ASN.1 that a `#` value may hold beside an OCTET STRING.
const UTF8_STRING: u8 = 0x0c;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const VISIBLE_STRING: u8 = 0x1a;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

pub(super) fn dn(text: &str) -> Result<Dn, DnError> {
    let mut parser = Parser { text, at: 0 };
    parser.blanks();
    let mut rdns = Vec::new();
    if parser.peek().is_none() {
        return Ok(Dn { rdns });
    }
    loop {
        if rdns.len() == DN_RDNS_MAX {
            return Err(parser.wrong("the name has too many RDNs"));
        }
        rdns.push(parser.rdn()?);
        match parser.peek() {
            None => return Ok(Dn { rdns }),
            Some(_) => parser.separator()?,
        }
    }
}

pub(super) fn rdn(text: &str) -> Result<Rdn, DnError> {
    let mut parser = Parser { text, at: 0 };
    parser.blanks();
    let rdn = parser.rdn()?;
    match parser.peek() {
        None => Ok(rdn),
        Some(b',' | b';') => Err(parser.wrong("a single RDN is due, and a second one begins here")),
        Some(_) => Err(parser.wrong("the RDN should end here")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn wrong(&self, why: &'static str) -> DnError {
        DnError { at: self.at, why }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The bytes that are left.
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Steps over the bytes that fit.
    fn skip(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
        let skipped = self.text.get(self.at..self.at + end).unwrap_or_default();
        self.at += end;
        skipped
    }

    fn blanks(&mut self) {
        self.skip(|byte| byte == b' ');
    }

    /// The separator of two RDNs: a comma, or the semicolon of older tools (RFC 2253 § 4).
    fn separator(&mut self) -> Result<(), DnError> {
        if !matches!(self.peek(), Some(b',' | b';')) {
            return Err(self.wrong("',' or '+' or the end of the name is due"));
        }
        self.at += 1;
        self.blanks();
        Ok(())
    }

    fn rdn(&mut self) -> Result<Rdn, DnError> {
        let mut avas = Vec::with_capacity(1);
        loop {
            if avas.len() == RDN_AVAS_MAX {
                return Err(self.wrong("the RDN has too many attribute values"));
            }
            avas.push(self.ava()?);
            if self.peek() != Some(b'+') {
                return Ok(Rdn { avas });
            }
            self.at += 1;
            self.blanks();
        }
    }

    fn ava(&mut self) -> Result<Ava, DnError> {
        let attribute = self.attribute()?;
        self.blanks();
        if self.peek() != Some(b'=') {
            return Err(self.wrong("'=' is due after the attribute type"));
        }
        self.at += 1;
        self.blanks();
        let value = match self.peek() {
            Some(b'#') => self.encoded()?,
            Some(b'"') => self.quoted()?,
            _ => self.string()?,
        };
        Ok(Ava { attribute: attribute.to_owned(), value })
    }

    /// `descr / numericoid`. Underscores are taken as well: some servers' types have them.
    fn attribute(&mut self) -> Result<&'a str, DnError> {
        let start = self.at;
        match self.peek() {
            Some(b'0'..=b'9') => {
                let oid = self.skip(|byte| byte.is_ascii_digit() || byte == b'.');
                if is_numeric_oid(oid) {
                    return Ok(oid);
                }
                Err(DnError { at: start, why: "this is not an OID" })
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                Ok(self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')))
            }
            _ => Err(self.wrong("an attribute type is due, a name or an OID")),
        }
    }

    /// Characters and pairs, up to a separator. Blanks at its end are no part of it.
    fn string(&mut self) -> Result<Vec<u8>, DnError> {
        let mut value = Vec::new();
        // How much of the value must stay when the blanks at its end go.
        let mut kept = 0;
        loop {
            let run = self.skip(is_plain);
            value.extend_from_slice(run.as_bytes());
            let blanks = run.len() - run.trim_end_matches(' ').len();
            if blanks < run.len() {
                kept = value.len() - blanks;
            }
            match self.peek() {
                None | Some(b',' | b';' | b'+') => break,
                Some(b'\\') => {
                    value.push(self.pair()?);
                    kept = value.len();
                }
                Some(b'"') => return Err(self.wrong("a '\"' in a value is written \\\"")),
                Some(b'<') => return Err(self.wrong("a '<' in a value is written \\<")),
                Some(b'>') => return Err(self.wrong("a '>' in a value is written \\>")),
                Some(_) => return Err(self.wrong("a NUL in a value is written \\00")),
            }
        }
        value.truncate(kept);
        Ok(value)
    }

    /// A value between quotes, which older tools write (RFC 2253 § 4).
    fn quoted(&mut self) -> Result<Vec<u8>, DnError> {
        let start = self.at;
        self.at += 1;
        let mut value = Vec::new();
        loop {
            value.extend_from_slice(self.skip(|byte| byte != b'"' && byte != b'\\').as_bytes());
            match self.peek() {
                Some(b'\\') => value.push(self.pair()?),
                Some(_) => break,
                None => return Err(DnError { at: start, why: "the closing '\"' is missing" }),
            }
        }
        self.at += 1;
        self.blanks();
        Ok(value)
    }

    /// `\` and a special character or two hexadecimal digits.
    fn pair(&mut self) -> Result<u8, DnError> {
        let wrong = self.wrong("'\\' is followed by a special character or two hexadecimal digits");
        let (octet, length) = match *self.rest() {
            [_, special, ..] if is_special(special) => (special, 2),
            [_, high, low, ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => return Err(wrong),
            },
            _ => return Err(wrong),
        };
        self.at += length;
        Ok(octet)
    }

    /// `#` and the BER of the value in hexadecimal.
    fn encoded(&mut self) -> Result<Vec<u8>, DnError> {
        let start = self.at;
        self.at += 1;
        let digits = self.skip(|byte| byte.is_ascii_hexdigit()).as_bytes();
        if digits.is_empty() || !digits.len().is_multiple_of(2) {
            return Err(self.wrong("'#' is followed by pairs of hexadecimal digits"));
        }
        let octet = |pair: &[u8]| {
            pair.iter().filter_map(|digit| hex(*digit)).fold(0, |octet, digit| octet << 4 | digit)
        };
        let ber: Vec<u8> = digits.chunks_exact(2).map(octet).collect();
        let value = decoded(&ber).map_err(|why| DnError { at: start, why })?;
        self.blanks();
        Ok(value)
    }
}

/// Whether the byte stands for itself in a value, wherever it is (but `#` and blanks).
fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' | 0)
}

/// Whether the byte stands for itself after a `\`.
fn is_special(byte: u8) -> bool {
    matches!(byte, b' ' | b'"' | b'#' | b'+' | b',' | b';' | b'<' | b'=' | b'>' | b'\\')
}

/// The value of a hexadecimal digit.
pub(crate) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

/// Whether the text is a dotted OID of two arcs or more, without leading zeros.
pub(crate) fn is_numeric_oid(text: &str) -> bool {
    let arc = |arc: &str| {
        !arc.is_empty()
            && arc.bytes().all(|byte| byte.is_ascii_digit())
            && (arc == "0" || !arc.starts_with('0'))
    };
    text.contains('.') && text.split('.').all(arc)
}

/// The LDAP form of a BER value that has one whatever its attribute type is.
fn decoded(ber: &[u8]) -> Result<Vec<u8>, &'static str> {
    const NOT_BER: &str = "the octets after '#' are not the BER of one value";
    const NOT_ITS_TYPE: &str = "the octets after '#' are not a value of their ASN.1 type";
    let mut reader = Reader::new(ber);
    let (tag, contents) = reader.element().map_err(|_| NOT_BER)?;
    if !reader.is_empty() {
        return Err(NOT_BER);
    }
    let mut whole = Reader::new(ber);
    match tag {
        OCTET_STRING => Ok(contents.to_vec()),
        UTF8_STRING | NUMERIC_STRING | PRINTABLE_STRING | IA5_STRING | VISIBLE_STRING => {
            str::from_utf8(contents).map(|text| text.as_bytes().to_vec()).map_err(|_| NOT_ITS_TYPE)
        }
        // Certificates write Latin-1 and call it T.61.
        TELETEX_STRING => {
            Ok(text(contents.iter().map(|octet| Some(char::from(*octet)))).unwrap_or_default())
        }
        BMP_STRING => wide::<2>(contents).ok_or(NOT_ITS_TYPE),
        UNIVERSAL_STRING => wide::<4>(contents).ok_or(NOT_ITS_TYPE),
        BOOLEAN => match whole.boolean(BOOLEAN) {
            Ok(true) => Ok(b"TRUE".to_vec()),
            Ok(false) => Ok(b"FALSE".to_vec()),
            Err(_) => Err(NOT_ITS_TYPE),
        },
        INTEGER => whole
            .integer(INTEGER)
            .map(|value| value.to_string().into_bytes())
            .map_err(|_| NOT_ITS_TYPE),
        _ => Err("the value after '#' is of an ASN.1 type without a string form"),
    }
}

/// Characters of `N` octets each, as UTF-8.
fn wide<const N: usize>(contents: &[u8]) -> Option<Vec<u8>> {
    let (characters, []) = contents.as_chunks::<N>() else { return None };
    text(characters.iter().map(|octets| {
        char::from_u32(octets.iter().fold(0, |code, octet| code << 8 | u32::from(*octet)))
    }))
}

fn text(characters: impl Iterator<Item = Option<char>>) -> Option<Vec<u8>> {
    characters.collect::<Option<String>>().map(String::into_bytes)
}
