//! Text from untrusted clients, made safe to stand in a line: what could end it, or be taken for
//! something else by who reads it, is escaped, and what is too long is cut.

use crate::limits::LOG_TEXT_BYTES_MAX;
use crate::settings::Form;
use keyway_host::text::misleads;
use std::fmt::{self, Write};

/// The escapes that a text needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Nothing: it is one plain word.
    Nothing,
    /// Quotation marks.
    Quotes,
    /// To be escaped.
    Escapes,
}

/// The escape that each byte needs. Most texts are ASCII, and most of those need no second look.
const NEEDS: [u8; 256] = {
    let mut needs = [Needs::Escapes as u8; 256];
    let mut byte = b' ';
    while byte < 0x7f {
        needs[byte as usize] = match byte {
            b'"' | b'\\' => Needs::Escapes,
            b'.' | b':' | b'-' | b'_' | b'/' | b'[' | b']' | b'@' => Needs::Nothing,
            byte if byte.is_ascii_alphanumeric() => Needs::Nothing,
            _ => Needs::Quotes,
        } as u8;
        byte += 1;
    }
    needs
};

/// The escapes that a text needs to stand in a line.
pub fn needs(text: &str) -> Needs {
    if text.len() > LOG_TEXT_BYTES_MAX {
        return Needs::Escapes;
    }
    let most = text.bytes().fold(0, |most: u8, byte| most.max(NEEDS[usize::from(byte)]));
    match most {
        0 if text.is_empty() => Needs::Quotes,
        0 => Needs::Nothing,
        1 => Needs::Quotes,
        _ => Needs::Escapes,
    }
}

/// Escapes what goes through it, and drops what is more than one value may have.
pub struct Escaped<'a> {
    out: &'a mut Vec<u8>,
    form: Form,
    bytes_left: usize,
}

impl<'a> Escaped<'a> {
    pub fn new(out: &'a mut Vec<u8>, form: Form) -> Self {
        Escaped { out, form, bytes_left: LOG_TEXT_BYTES_MAX }
    }

    fn put(&mut self, c: char) {
        let mut bytes = [0; 4];
        self.out.extend_from_slice(c.encode_utf8(&mut bytes).as_bytes());
    }
}

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.bytes_left == 0 {
                return Ok(());
            }
            if c.len_utf8() > self.bytes_left {
                self.bytes_left = 0;
                self.out.extend_from_slice(b"...");
                return Ok(());
            }
            self.bytes_left -= c.len_utf8();
            match (c, self.form) {
                ('"' | '\\', _) => {
                    self.put('\\');
                    self.put(c);
                }
                (c, Form::Json) if misleads(c) => {
                    self.out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
                }
                (c, _) if misleads(c) => {
                    self.out.extend_from_slice(format!("\\u{{{:x}}}", u32::from(c)).as_bytes());
                }
                (c, _) => self.put(c),
            }
            if self.bytes_left == 0 {
                self.out.extend_from_slice(b"...");
            }
        }
        Ok(())
    }
}
