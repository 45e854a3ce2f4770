//! Numbers as text, without allocating.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// All numbers of two digits, one after the other.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes a number.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, number: u64) {
    push_padded(out, number, 1);
}

/// Writes a number that may be negative, with zeros in front up to `width` digits.
pub(crate) fn push_signed(out: &mut Vec<u8>, number: i64, width: usize) {
    if number < 0 {
        out.push(b'-');
    }
    push_padded(out, number.unsigned_abs(), width);
}

/// Writes a number with zeros in front up to `width` digits, 20 at most.
#[inline]
pub(crate) fn push_padded(out: &mut Vec<u8>, mut number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 9 {
        let pair = PAIRS.get((number % 100) as usize).copied().unwrap_or_default();
        number /= 100;
        at -= 2;
        if let Some(place) = digits.get_mut(at..at + 2) {
            place.copy_from_slice(&pair);
        }
    }
    if number > 0 || at == digits.len() {
        at -= 1;
        if let Some(place) = digits.get_mut(at) {
            *place = b'0' + number as u8;
        }
    }
    let from = at.min(digits.len().saturating_sub(width));
    out.extend_from_slice(digits.get(from..).unwrap_or_default());
}

/// Writes the last `digits` hexadecimal digits of a number, 16 at most.
pub(crate) fn push_hex(out: &mut Vec<u8>, number: u64, digits: u32) {
    for digit in (0..digits).rev() {
        let nibble = (number >> (4 * digit)) & 0xf;
        out.push(HEX.get(nibble as usize).copied().unwrap_or(b'0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_the_library_writes() {
        let edges = (0..20).map(|power| 10u64.pow(power)).flat_map(|it| [it - 1, it, it + 1]);
        for number in edges.chain([u64::MAX, 42, 1_234_567]) {
            let mut out = Vec::new();
            push(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
            let mut out = Vec::new();
            push_padded(&mut out, number, 12);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{number:012}"));
        }
        let mut out = Vec::new();
        push_signed(&mut out, -7, 3);
        push_hex(&mut out, 0xabc, 4);
        assert_eq!(out, b"-0070abc");
    }
}
