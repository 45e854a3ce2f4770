//! Texts as a shell and as Python read them back.

use keyway_host::text::misleads;
use std::io::Write;

/// Appends an argument as a shell reads it. Octets that a terminal would take for a command are written
/// as bash reads them, in `$'...'`.
pub(super) fn shell(argument: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(byte);
    if !argument.is_empty() && argument.iter().all(plain) {
        return out.extend_from_slice(argument);
    }
    let text = std::str::from_utf8(argument);
    if text.is_ok_and(|text| !text.contains(misleads)) {
        out.push(b'\'');
        for (index, part) in argument.split(|byte| *byte == b'\'').enumerate() {
            if index > 0 {
                out.extend_from_slice(b"'\\''");
            }
            out.extend_from_slice(part);
        }
        return out.push(b'\'');
    }
    out.extend_from_slice(b"$'");
    escaped(argument, out);
    out.push(b'\'');
}

/// Appends a text as Python reads it.
pub(super) fn python_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend([b'\\', c as u8]),
            c if c.is_ascii() && !c.is_ascii_control() => out.push(c as u8),
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push(b'\'');
}

/// Appends octets as Python reads them.
pub(super) fn python_octets(octets: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"b'");
    escaped(octets, out);
    out.push(b'\'');
}

/// Octets that are not printable ASCII as `\xNN`.
fn escaped(octets: &[u8], out: &mut Vec<u8>) {
    for octet in octets {
        match octet {
            b'\'' | b'\\' => out.extend([b'\\', *octet]),
            b' '..=b'~' => out.push(*octet),
            _ => {
                let _ = write!(out, "\\x{octet:02x}");
            }
        }
    }
}
