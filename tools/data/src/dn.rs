//! Parts of names (RFC 4514) as they are written.

/// Appends a name, with underscores for commas if that is wanted.
pub(crate) fn push_dn(out: &mut Vec<u8>, dn: &str, underscore: bool) {
    let from = out.len();
    out.extend_from_slice(dn.as_bytes());
    if underscore {
        for byte in out.get_mut(from..).unwrap_or_default() {
            *byte = if *byte == b',' { b'_' } else { *byte };
        }
    }
}

/// The first so many RDNs of a name, or with a negative number the last so many; all for 0.
pub(crate) fn rdns(dn: &str, part: isize) -> &str {
    match part {
        0 => dn,
        1.. => {
            let end = commas(dn).nth(part as usize - 1).unwrap_or(dn.len());
            dn.get(..end).unwrap_or(dn)
        }
        _ => {
            let skipped = (commas(dn).count() + 1).saturating_sub(part.unsigned_abs());
            without(dn, skipped)
        }
    }
}

/// A name without its first so many RDNs.
pub(crate) fn without(dn: &str, count: usize) -> &str {
    match count {
        0 => dn,
        count => commas(dn).nth(count - 1).and_then(|at| dn.get(at + 1..)).unwrap_or_default(),
    }
}

/// Where the RDNs of a name end, but for the last.
pub(crate) fn commas(dn: &str) -> impl Iterator<Item = usize> {
    let mut escaped = false;
    dn.bytes().enumerate().filter_map(move |(at, byte)| {
        let is_escaped = escaped;
        escaped = byte == b'\\' && !is_escaped;
        (byte == b',' && !is_escaped).then_some(at)
    })
}

/// The RDN, or the so-many-th of its parts, counted from 1.
pub(crate) fn values_of_rdn(rdn: &str, part: Option<usize>) -> &str {
    let Some(part) = part else { return rdn };
    let mut escaped = false;
    let mut parts = rdn.split(move |sign: char| {
        let is_escaped = escaped;
        escaped = sign == '\\' && !is_escaped;
        sign == '+' && !is_escaped
    });
    parts.nth(part.saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_names() {
        let dn = r"cn=a\,b+sn=c,ou=d,dc=e";
        assert_eq!(rdns(dn, 0), dn);
        assert_eq!(rdns(dn, 1), r"cn=a\,b+sn=c");
        assert_eq!(rdns(dn, -2), "ou=d,dc=e");
        assert_eq!((rdns(dn, 9), rdns(dn, -9)), (dn, dn));
        assert_eq!((without(dn, 2), without(dn, 3)), ("dc=e", ""));
        assert_eq!(values_of_rdn(rdns(dn, 1), Some(2)), "sn=c");
        assert_eq!(values_of_rdn(rdns(dn, 1), Some(1)), r"cn=a\,b");
    }
}
