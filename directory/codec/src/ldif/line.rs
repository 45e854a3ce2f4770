//! One line, after unfolding: a key, and a value in one of its forms.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Writers pad, but a reader should not fail without the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A line `key: value`, `key:: base64` or `key:< URL`.
pub(crate) struct Line<'a> {
    pub(crate) key: &'a str,
    form: Form<'a>,
}

enum Form<'a> {
    Plain(&'a [u8]),
    Base64(&'a [u8]),
    Url,
}

impl<'a> Line<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Line<'a>, &'static str> {
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or("the line has no ':'")?;
        let (key, rest) = line.split_at_checked(colon).unwrap_or_default();
        let key =
            str::from_utf8(key).map_err(|_| "the text before ':' is not an attribute name")?;
        let form = match rest.get(1..).unwrap_or_default() {
            [b':', encoded @ ..] => Form::Base64(filled(encoded).trim_ascii_end()),
            [b'<', ..] => Form::Url,
            plain => Form::Plain(filled(plain)),
        };
        Ok(Line { key, form })
    }

    pub(super) fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }

    pub(super) fn value(&self) -> Result<Vec<u8>, &'static str> {
        match self.form {
            Form::Plain(value) => Ok(value.to_vec()),
            Form::Base64(value) => BASE64.decode(value).map_err(|_| "the value is not base64"),
            Form::Url => Err(
                "values are not fetched from URLs: write the value itself, in base64 after '::'",
            ),
        }
    }

    /// A value that must be UTF-8, as names are.
    pub(crate) fn text(&self) -> Result<String, &'static str> {
        String::from_utf8(self.value()?).map_err(|_| "the value is not UTF-8")
    }

    /// A value that is a word of the format.
    pub(super) fn word(&self) -> Result<String, &'static str> {
        Ok(self.text()?.trim_ascii_end().to_owned())
    }
}

fn filled(value: &[u8]) -> &[u8] {
    let fill = value.iter().take_while(|byte| **byte == b' ').count();
    value.get(fill..).unwrap_or_default()
}

/// Whether the text can be an attribute description: a name or OID, and options.
pub(super) fn is_description(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b';' | b'_');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(fits)
}
