//! Earlier passwords: `time#syntax#length#data`, as the draft (§ 5.3.5) and OpenLDAP write them.

use super::time;

/// The syntax of userPassword: OctetString.
const SYNTAX: &str = "1.3.6.1.4.1.1466.115.121.1.40";

/// A stored value, with the time at which another took its place.
pub fn value(at: u64, stored: &[u8]) -> Vec<u8> {
    let head = format!("{}#{SYNTAX}#{}#", time::seconds(at), stored.len());
    [head.as_bytes(), stored].concat()
}

/// The stored value in one of these; `None` if it is malformed.
pub fn stored(value: &[u8]) -> Option<&[u8]> {
    let mut parts = value.splitn(4, |byte| *byte == b'#');
    let (_, _, length) = (parts.next()?, parts.next()?, parts.next()?);
    let data = parts.next()?;
    let length: usize = str::from_utf8(length).ok()?.parse().ok()?;
    (data.len() == length).then_some(data)
}

/// The newest of them, oldest first.
pub fn newest(mut values: Vec<Vec<u8>>, count: usize) -> Vec<Vec<u8>> {
    // They begin with their time in a form that is ordered as time is.
    values.sort();
    values.drain(..values.len().saturating_sub(count));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_openldap_writes_it() {
        let value = value(951_782_400_000_000, b"{SSHA}a#b=");
        let text = b"20000229000000Z#1.3.6.1.4.1.1466.115.121.1.40#10#{SSHA}a#b=";
        assert_eq!(value, text);
        assert_eq!(stored(&value), Some(&b"{SSHA}a#b="[..]));
        for bad in [&b""[..], b"a#b#c", b"a#b#2#c", b"a#b#x#c"] {
            assert_eq!(stored(bad), None);
        }
    }

    #[test]
    fn the_oldest_go() {
        let values = [b"3", b"1", b"2"].map(|value| value.to_vec()).to_vec();
        assert_eq!(newest(values.clone(), 2), [b"2", b"3"]);
        assert!(newest(values, 0).is_empty());
    }
}
