//! Earlier passwords: `time#syntax#length#data`, as the draft (§ 5.3.5) and OpenLDAP write them.

use super::time;
use keyway_schema::Schema;

/// The syntax of userPassword: OctetString.
const SYNTAX: &str = "1.3.6.1.4.1.1466.115.121.1.40";

/// A stored value, with the time at which another took its place, to the microsecond.
pub fn value(at: u64, stored: &[u8]) -> Vec<u8> {
    let head = format!("{}#{SYNTAX}#{}#", time::exact(at), stored.len());
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

/// When the value in one of these was replaced, in microseconds since 1970.
pub fn time_of(schema: &Schema, value: &[u8]) -> Option<u64> {
    time::parse(schema, value.split(|byte| *byte == b'#').next()?)
}

/// The newest of them, oldest first; those of one time stay in the order in which they are given.
pub fn newest(mut values: Vec<Vec<u8>>, count: usize) -> Vec<Vec<u8>> {
    values.sort_by_key(|value| moment(value));
    values.drain(..values.len().saturating_sub(count));
    values
}

/// The time of one as text that is ordered as time is: with the fraction that it has, which other servers
/// leave out.
fn moment(value: &[u8]) -> Vec<u8> {
    let time = value.split(|byte| *byte == b'#').next().unwrap_or_default();
    let time = time.strip_suffix(b"Z").unwrap_or(time);
    // "." is before any digit, and nothing before it.
    time.strip_suffix(b".").unwrap_or(time).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_openldap_writes_it() {
        let value = value(951_782_400_000_007, b"{SSHA}a#b=");
        let text = b"20000229000000.000007Z#1.3.6.1.4.1.1466.115.121.1.40#10#{SSHA}a#b=";
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

    #[test]
    fn those_of_one_second_are_in_order() {
        let values: Vec<Vec<u8>> = [
            // As earlier versions and other servers write it, in the order in which they came.
            &b"20000229000000Z#s#1#z"[..],
            b"20000229000000Z#s#1#a",
            b"20000229000000.000001Z#s#1#y",
            b"20000229000000.5Z#s#1#b",
            b"20000229000001Z#s#1#a",
        ]
        .map(<[u8]>::to_vec)
        .to_vec();
        let mut mixed = values.clone();
        mixed.swap(2, 4);
        assert_eq!(newest(mixed, 5), values);
    }
}
