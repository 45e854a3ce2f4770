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

/// How a whole number is written: of Java's DecimalFormat what says something about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberForm {
    /// Digits that are there at least, 20 at most.
    width: usize,
    /// Digits between commas; 0 without commas.
    grouped: usize,
    /// Zeros behind a point.
    zeros: usize,
}

impl NumberForm {
    /// So many digits at least.
    pub(crate) const fn digits(width: usize) -> Self {
        NumberForm { width, grouped: 0, zeros: 0 }
    }

    /// Reads `0000`, `#,##0` or `0.00`; `None` if it is no such form.
    pub(crate) fn parse(form: &str) -> Option<Self> {
        let (whole, fraction) = form.split_once('.').unwrap_or((form, ""));
        let is_of = |text: &str, signs: &[u8]| text.bytes().all(|byte| signs.contains(&byte));
        // Digits that are due come last before the point, and first behind it.
        let due = whole.trim_start_matches(['#', ',']);
        let zeros = fraction.trim_end_matches('#');
        if whole.is_empty()
            || !is_of(whole, b"0#,")
            || !is_of(due, b"0,")
            || whole.starts_with(',')
            || !is_of(zeros, b"0")
            || (form.contains('.') && fraction.is_empty())
        {
            return None;
        }
        let grouped = match whole.rsplit_once(',') {
            None => 0,
            Some((_, "")) => return None,
            Some((_, last)) => last.len(),
        };
        let width = due.bytes().filter(|byte| *byte == b'0').count();
        (width <= 20 && zeros.len() <= 20).then_some(NumberForm {
            width,
            grouped,
            zeros: zeros.len(),
        })
    }

    /// Writes a number so.
    pub(crate) fn push(self, out: &mut Vec<u8>, number: i64) {
        push_signed(out, number, self.width);
        let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
        let commas = (digits.max(self.width) - 1).checked_div(self.grouped).unwrap_or(0);
        for before in 0..commas {
            let at = (before + 1) * self.grouped + before;
            out.insert(out.len().saturating_sub(at), b',');
        }
        if self.zeros > 0 {
            out.push(b'.');
            out.extend(std::iter::repeat_n(b'0', self.zeros));
        }
    }
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

    /// As Java 17's DecimalFormat writes them.
    #[test]
    fn forms_of_javas_decimal_format() {
        let shown = |form: &str, number: i64| {
            let mut out = b"1".to_vec();
            NumberForm::parse(form).unwrap_or_else(|| panic!("{form}")).push(&mut out, number);
            String::from_utf8(out.split_off(1)).unwrap()
        };
        for (form, number, expected) in [
            ("0000", 7, "0007"),
            ("#,##0", 7, "7"),
            ("#,##0", 1_234, "1,234"),
            ("#,##0", -1_234_567, "-1,234,567"),
            ("#,###,##0", 123_456_789, "123,456,789"),
            ("0,000", 7, "0,007"),
            ("000,000,000", 1_234, "000,001,234"),
            ("#,####", 123_456_789, "1,2345,6789"),
            ("#,##0.00", 1_234, "1,234.00"),
            ("0.0##", -5, "-5.0"),
            ("##0", 12, "12"),
            ("#,##0", i64::MIN, "-9,223,372,036,854,775,808"),
        ] {
            assert_eq!(shown(form, number), expected, "{form}");
        }
        for bad in ["", ",000", "0,", "0#", "#0#", "0.0#0", "0.", "$0", "0,0#0", "0.0,0"] {
            assert_eq!(NumberForm::parse(bad), None, "{bad}");
        }
    }
}
