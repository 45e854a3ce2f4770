//! The subject of a client's certificate, as a DN (RFC 5280 § 4.1, RFC 4514 § 2).
//!
//! TLS has verified the certificate by the time it gets here.

use keyway_codec::DecodeError;
use keyway_codec::ber::{INTEGER, Reader, SEQUENCE, SET, context_constructed};
use std::fmt::Write;

const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

/// Of a certificate's fingerprint: SHA-256.
pub(super) const FINGERPRINT_BYTES: usize = 32;

/// The subject as an RFC 4514 string with attribute types as OIDs; empty if it has none.
///
/// # Errors
/// If it is no certificate, or a name in it is no text.
pub(super) fn subject(der: &[u8]) -> Result<String, DecodeError> {
    let mut certificate = Reader::new(der).nested(SEQUENCE)?.nested(SEQUENCE)?;
    let _version = certificate.optional(context_constructed(0))?;
    let _serial = certificate.expect(INTEGER)?;
    let _signature = certificate.expect(SEQUENCE)?;
    let _issuer = certificate.expect(SEQUENCE)?;
    let _validity = certificate.expect(SEQUENCE)?;
    let mut name = certificate.nested(SEQUENCE)?;
    let mut rdns = Vec::new();
    while !name.is_empty() {
        rdns.push(rdn(name.nested(SET)?)?);
    }
    // X.500 names begin at the root, LDAP's at the entry.
    rdns.reverse();
    Ok(rdns.join(","))
}

fn rdn(mut set: Reader<'_>) -> Result<String, DecodeError> {
    let mut text = String::new();
    while !set.is_empty() {
        let mut pair = set.nested(SEQUENCE)?;
        if !text.is_empty() {
            text.push('+');
        }
        object_identifier(pair.expect(OBJECT_IDENTIFIER)?, &mut text)?;
        text.push('=');
        let (tag, contents) = pair.element()?;
        escape(&string(tag, contents)?, &mut text);
    }
    Ok(text)
}

const NOT_TEXT: DecodeError =
    DecodeError::Malformed { what: "a name in a certificate is not text" };
const NOT_OID: DecodeError = DecodeError::Malformed { what: "a type in a certificate is no OID" };

/// The text of the string types that RFC 5280 allows in names.
fn string(tag: u8, contents: &[u8]) -> Result<String, DecodeError> {
    let wide = |units: usize| {
        if !contents.len().is_multiple_of(units) {
            return Err(NOT_TEXT);
        }
        let number = |unit: &[u8]| unit.iter().fold(0, |high, low| high << 8 | u32::from(*low));
        contents
            .chunks(units)
            .map(|unit| char::from_u32(number(unit)).ok_or(NOT_TEXT))
            .collect::<Result<String, _>>()
    };
    match tag {
        UTF8_STRING | PRINTABLE_STRING | IA5_STRING => {
            String::from_utf8(contents.to_vec()).map_err(|_| NOT_TEXT)
        }
        // T.61 in theory, Latin-1 in every certificate that exists.
        TELETEX_STRING => Ok(contents.iter().map(|byte| char::from(*byte)).collect()),
        BMP_STRING => wide(2),
        UNIVERSAL_STRING => wide(4),
        _ => Err(NOT_TEXT),
    }
}

/// Escapes by hexadecimal pairs whatever could mean something in a DN.
fn escape(value: &str, out: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'@') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\{byte:02x}");
        }
    }
}

/// The dotted form of an OBJECT IDENTIFIER's contents (X.690 § 8.19).
fn object_identifier(contents: &[u8], out: &mut String) -> Result<(), DecodeError> {
    let mut arc = 0_u64;
    let mut first = true;
    let mut complete = false;
    for byte in contents {
        if arc >> 57 != 0 {
            return Err(NOT_OID);
        }
        arc = arc << 7 | u64::from(byte & 0x7f);
        complete = byte & 0x80 == 0;
        if complete {
            let _ = if first {
                let root = (arc / 40).min(2);
                write!(out, "{root}.{}", arc - root * 40)
            } else {
                write!(out, ".{arc}")
            };
            (arc, first) = (0, false);
        }
    }
    if complete { Ok(()) } else { Err(NOT_OID) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    /// `/DC=com/DC=example/OU=Größe, "/UID=ada+CN=Ada ` by OpenSSL, in UTF-8.
    const UTF8: &str = "\
        MIICIjCCAcegAwIBAgIURXp67/JcQbq7S6OxwEeamsRQHoAwCgYIKoZIzj0EAwIwZTETMBEGCgmSJomT8ixkARkWA2\
        NvbTEXMBUGCgmSJomT8ixkARkWB2V4YW1wbGUxEzARBgNVBAsMCkdyw7bDn2UsICIxIDALBgNVBAMMBEFkYSAwEQYK\
        CZImiZPyLGQBAQwDYWRhMCAXDTI2MTEyMTExMDQwMVoYDzIxMjYxMDI4MTEwNDAxWjBlMRMwEQYKCZImiZPyLGQBGR\
        YDY29tMRcwFQYKCZImiZPyLGQBGRYHZXhhbXBsZTETMBEGA1UECwwKR3LDtsOfZSwgIjEgMAsGA1UEAwwEQWRhIDAR\
        BgoJkiaJk/IsZAEBDANhZGEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR/XRduUjeRExEUbiJbSxK0hcx4eu1EzG\
        OkDBmhl6t7eZ0G6xXTfVKT/4SW7K9OXXLY81D8tVaANjOpLUSzpsWqo1MwUTAdBgNVHQ4EFgQUcXjtH8hIpdYbO5cw\
        oi+XIvlW7eUwHwYDVR0jBBgwFoAUcXjtH8hIpdYbO5cwoi+XIvlW7eUwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQ\
        QDAgNJADBGAiEA1/n5Romq33lHg4zBi9n4xmL1OZtQkxsugrpJ0IL+ackCIQDCgD8ujNq82r5/+3nC3Op+BI3t/NKw\
        +1QjJcX27TmqKg==";

    /// `/CN=Zoë/emailAddress=zoe@example.com` by OpenSSL, version 1, in BMPString and IA5String.
    const BMP: &str = "\
        MIIBXzCCAQUCFFnbYUUecPpQfBe/lwzh2+7GhIqMMAoGCCqGSM49BAMCMDExDzANBgNVBAMeBgBaAG8A6zEeMBwGCS\
        qGSIb3DQEJARYPem9lQGV4YW1wbGUuY29tMCAXDTI2MTEyMTExMDQwMVoYDzIxMjYxMDI4MTEwNDAxWjAxMQ8wDQYD\
        VQQDHgYAWgBvAOsxHjAcBgkqhkiG9w0BCQEWD3pvZUBleGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0\
        IABH9dF25SN5ETERRuIltLErSFzHh67UTMY6QMGaGXq3t5nQbrFdN9UpP/hJbsr05dctjzUPy1VoA2M6ktRLOmxaow\
        CgYIKoZIzj0EAwIDSAAwRQIhAPZ/h/IQI+MyAE694IDCvuaG9f82VMH3cgiFLrqWMU5XAiBSbhuLkz4larW1i9erl/\
        YjYhdjjLw1TebJVneSPAXwcQ==";

    fn subject_of(base64: &str) -> String {
        subject(&STANDARD.decode(base64).unwrap()).unwrap()
    }

    #[test]
    fn subjects_are_dns_from_the_entry_upwards() {
        let expected = concat!(
            r"2.5.4.3=Ada\20+0.9.2342.19200300.100.1.1=ada,",
            r"2.5.4.11=Gr\c3\b6\c3\9fe\2c\20\22,",
            "0.9.2342.19200300.100.1.25=example,0.9.2342.19200300.100.1.25=com",
        );
        assert_eq!(subject_of(UTF8), expected);
        assert_eq!(subject_of(BMP), r"1.2.840.113549.1.9.1=zoe@example.com,2.5.4.3=Zo\c3\ab");
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_survived(at in 0..400_usize, with: u8) {
            let mut der = STANDARD.decode(UTF8).unwrap();
            der[at] = with;
            let _ = subject(&der);
            let _ = subject(&der[..at]);
        }
    }
}
