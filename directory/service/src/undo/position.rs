//! Which changes are undone.

use std::fmt;
use std::str::FromStr;

/// A commit, or one request in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UndoPosition {
    /// The commit.
    pub position: u64,
    /// One of the changes of the request.
    pub index: Option<u64>,
}

impl FromStr for UndoPosition {
    type Err = String;

    fn from_str(text: &str) -> Result<UndoPosition, String> {
        let (position, index) = match text.split_once('.') {
            Some((position, index)) => (position, Some(index)),
            None => (text, None),
        };
        let number = |text: &str| text.parse::<u64>().ok();
        let found = number(position).filter(|position| *position > 0).and_then(|position| {
            let index = index.map(|index| number(index).ok_or(())).transpose().ok()?;
            Some(UndoPosition { position, index })
        });
        found.ok_or_else(|| {
            "write a position as keyway directory changes shows it: 1207, or 1207.3 for the request that has made \
             this change"
                .to_owned()
        })
    }
}

impl fmt::Display for UndoPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position)?;
        self.index.map_or(Ok(()), |index| write!(f, ".{index}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_shown() {
        for text in ["1207", "1207.0", "7.15"] {
            assert_eq!(text.parse::<UndoPosition>().unwrap().to_string(), text);
        }
        for bad in ["", "0", "x", "1.", ".1", "1.x", "1.2.3", "-1"] {
            bad.parse::<UndoPosition>().unwrap_err();
        }
    }
}
