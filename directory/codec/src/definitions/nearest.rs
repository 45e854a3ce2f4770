//! The known name that is nearest to a misspelt one.

/// Longer names are not slips.
const BYTES_MAX: usize = 64;

/// The candidate that is most like a name, in any case, if one is like it at all: as many letters
/// added, left out or changed as one in three, two at least.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > BYTES_MAX {
        return None;
    }
    let most = (name.len() / 3).max(2).min(name.len().saturating_sub(1));
    candidates
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= most)
        .map(|candidate| (distance(name.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance, a row of its table at a time.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, byte) in one.iter().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, another) in row.iter_mut().skip(1).zip(other) {
            let change = diagonal + usize::from(!byte.eq_ignore_ascii_case(another));
            diagonal = *cell;
            left = change.min(*cell + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_meant() {
        let known = ["objectClass", "cn", "telephoneNumber", "sn"];
        let meant = |name| nearest(name, known.iter().copied());
        assert_eq!(meant("telephonNumber"), Some("telephoneNumber"));
        assert_eq!(meant("OBJECTCLAS"), Some("objectClass"));
        assert_eq!(meant("jpegPhoto"), None);
        assert_eq!(meant(""), None);
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }
}
