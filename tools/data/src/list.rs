//! A list of values to choose from, and how one is chosen.

use crate::random::Random;

/// Values, one after the other in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct List {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Whether each may stand in a line of LDIF as it is, alone.
    pub(crate) is_plain: bool,
}

impl List {
    pub(crate) fn new<'a>(values: impl Iterator<Item = &'a str>) -> List {
        let mut list = List { is_plain: true, ..List::default() };
        for value in values {
            list.is_plain &= is_plain(value.as_bytes());
            list.bytes.extend_from_slice(value.as_bytes());
            list.ends.push(list.bytes.len());
        }
        list.is_plain &= !list.is_empty();
        list
    }

    /// The lines of a file that are not empty.
    pub(crate) fn of_lines(text: &str) -> List {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        List::new(text.lines().map(|line| line.trim_end_matches('\r')).filter(|it| !it.is_empty()))
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let from = match index {
            0 => 0,
            index => self.ends.get(index - 1).copied().unwrap_or_default(),
        };
        let to = self.ends.get(index).copied().unwrap_or(from);
        self.bytes.get(from..to).unwrap_or_default()
    }
}

/// Whether a value may stand in a line of LDIF as it is: RFC 2849's SAFE-STRING, not empty and
/// without a blank at its end.
pub(crate) fn is_plain(value: &[u8]) -> bool {
    starts_well(value) && ends_well(value) && is_safe(value)
}

pub(crate) fn starts_well(value: &[u8]) -> bool {
    !matches!(value.first(), None | Some(b' ' | b':' | b'<'))
}

pub(crate) fn ends_well(value: &[u8]) -> bool {
    !matches!(value.last(), None | Some(b' '))
}

pub(crate) fn is_safe(value: &[u8]) -> bool {
    value.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// How one of so many is chosen.
#[derive(Debug)]
pub(crate) enum Pick {
    /// Each as often as any other.
    Even,
    /// By bounds that grow: the first one above a number below the last.
    Weighted(Vec<u64>),
    /// One after the other.
    Sequential,
}

impl Pick {
    /// By weights.
    pub(crate) fn weighted(weights: impl Iterator<Item = u64>) -> Pick {
        let mut sum = 0u64;
        Pick::Weighted(
            weights
                .map(|weight| {
                    sum = sum.saturating_add(weight);
                    sum
                })
                .collect(),
        )
    }

    /// The first most often, the one at rank k 1/k^`exponent` as often.
    pub(crate) fn zipf(count: u64, exponent: f64) -> Pick {
        let weight = |rank: u64| (rank as f64).powf(-exponent);
        let all: f64 = (1..=count).map(weight).sum();
        // As parts of 2^53, of which a double can tell each.
        let scale = (1u64 << 53) as f64 / all;
        let mut sum = 0.0;
        let bound = |rank| {
            sum += weight(rank) * scale;
            sum as u64
        };
        let mut bounds: Vec<u64> = (1..=count).map(bound).collect();
        if let Some(last) = bounds.last_mut() {
            *last = 1 << 53;
        }
        Pick::Weighted(bounds)
    }

    #[inline]
    pub(crate) fn choose(&self, count: u64, ordinal: u64, random: &mut Random) -> u64 {
        match self {
            Pick::Even => random.below(count),
            Pick::Weighted(bounds) => {
                let drawn = random.below(bounds.last().copied().unwrap_or_default());
                bounds.partition_point(|bound| *bound <= drawn) as u64
            }
            Pick::Sequential => ordinal.checked_rem(count).unwrap_or_default(),
        }
    }
}

/// The rows of a file of comma-separated values.
#[derive(Debug)]
pub struct Table {
    /// Its name in messages.
    pub name: String,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads text with fields in quotes or not (RFC 4180); `skip_first` leaves out a heading.
    #[must_use]
    pub fn read(name: &str, text: &str, delimiter: char, skip_first: bool) -> Table {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = vec![vec![String::new()]];
        let mut quoted = false;
        let mut signs = text.chars().peekable();
        while let Some(sign) = signs.next() {
            let Some(row) = rows.last_mut() else { break };
            let Some(field) = row.last_mut() else { break };
            match sign {
                '"' if quoted && signs.peek() == Some(&'"') => field.extend(signs.next()),
                '"' if quoted || field.is_empty() => quoted = !quoted,
                '\r' if !quoted && signs.peek() == Some(&'\n') => {}
                '\n' if !quoted => rows.push(vec![String::new()]),
                sign if sign == delimiter && !quoted => row.push(String::new()),
                sign => field.push(sign),
            }
        }
        rows.retain(|row| row.iter().any(|field| !field.is_empty()));
        if skip_first && !rows.is_empty() {
            rows.remove(0);
        }
        Table { name: name.to_owned(), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let list = List::of_lines("one\r\n\ntwo\nthree");
        assert_eq!((list.len(), list.is_plain), (3, true));
        let all: Vec<&[u8]> = (0..4).map(|index| list.get(index)).collect();
        assert_eq!(all, [&b"one"[..], b"two", b"three", b""]);
        assert!(!List::of_lines("é").is_plain && !List::of_lines(" a").is_plain);
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Random::new(5);
        let pick = Pick::weighted([2, 1, 1].into_iter());
        let mut drawn = [0u32; 3];
        (0..40_000).for_each(|_| drawn[pick.choose(3, 0, &mut random) as usize] += 1);
        assert!((19_000..21_000).contains(&drawn[0]), "{drawn:?}");
        let zipf = Pick::zipf(100, 1.0);
        let mut drawn = [0u32; 100];
        (0..100_000).for_each(|_| drawn[zipf.choose(100, 0, &mut random) as usize] += 1);
        // 1 / (1 + 1/2 + ... + 1/100) = 0.193
        assert!((18_500..20_100).contains(&drawn[0]), "{drawn:?}");
        assert!((1.8..2.2).contains(&(f64::from(drawn[0]) / f64::from(drawn[1]))), "{drawn:?}");
    }

    #[test]
    fn tables_are_read() {
        let table = Table::read("x", "a,b\r\n1,\"2,\"\"x\"\"\"\n\n3,4", ',', true);
        assert_eq!(table.rows, [["1", "2,\"x\""], ["3", "4"]]);
    }
}
