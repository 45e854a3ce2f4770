//! Octets from elsewhere as text that a terminal can be given.

use super::clock::digits;
use keyway_host::text::misleads;
use std::io::Write;

/// Appends text, with what a terminal would take for a command as `\xx`.
pub fn plain(text: &str, out: &mut Vec<u8>) {
    if !text.contains(misleads) {
        return out.extend_from_slice(text.as_bytes());
    }
    for c in text.chars() {
        let mut buffer = [0; 4];
        let octets = c.encode_utf8(&mut buffer).as_bytes();
        if misleads(c) {
            octets.iter().for_each(|octet| hexadecimal(*octet, out));
        } else {
            out.extend_from_slice(octets);
        }
    }
}

/// Appends octets: text as [`plain`] has it, others as `\xx`.
pub fn value(octets: &[u8], out: &mut Vec<u8>) {
    for chunk in octets.utf8_chunks() {
        plain(chunk.valid(), out);
        chunk.invalid().iter().for_each(|octet| hexadecimal(*octet, out));
    }
}

fn hexadecimal(octet: u8, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "\\{octet:02x}");
}

/// Appends a text in quotes, with a quote in it as `\"`.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\\\"");
        }
        plain(part, out);
    }
    out.push(b'"');
}

/// Appends nanoseconds in the unit that suits them: `0.213ms`.
pub(super) fn latency(ns: u64, out: &mut Vec<u8>) {
    let (unit, name) = match ns {
        0..1_000_000_000 => (1_000_000, &b"ms"[..]),
        _ => (1_000_000_000, &b"s"[..]),
    };
    digits(ns / unit, 1, out);
    out.push(b'.');
    digits(ns % unit / (unit / 1000), 3, out);
    out.extend_from_slice(name);
}

/// Appends a number, and what is counted, in the plural where it is.
pub(super) fn count(number: u64, one: &str, many: &str, out: &mut Vec<u8>) {
    digits(number, 1, out);
    out.push(b' ');
    out.extend_from_slice(if number == 1 { one } else { many }.as_bytes());
}
