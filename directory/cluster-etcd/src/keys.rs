//! The names of keys in etcd.
//!
//! ```text
//! /keyway/CLUSTER/writer       member and lease of the writer, under its lease
//! /keyway/CLUSTER/head         the last row: position (8 B BE) | digest (32 B)
//! /keyway/CLUSTER/feed/N       a row: digest (32 B) | stored form; N is 16 hexadecimal digits
//! /keyway/CLUSTER/members/ID   a member: JSON, under its lease; ID is 16 hexadecimal digits
//! ```

use keyway_cluster::message::{ClusterId, MemberId};

/// The keys of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub fn new(cluster: ClusterId) -> Keys {
        Keys { prefix: format!("/keyway/{cluster}/") }
    }

    pub fn writer(&self) -> String {
        format!("{}writer", self.prefix)
    }

    pub fn head(&self) -> String {
        format!("{}head", self.prefix)
    }

    pub fn row(&self, position: u64) -> String {
        format!("{}feed/{position:016x}", self.prefix)
    }

    /// The end of the range of all rows.
    pub fn rows_end(&self) -> String {
        // The character behind `/`.
        format!("{}feed0", self.prefix)
    }

    /// The position of a row's key.
    pub fn position(&self, key: &[u8]) -> Option<u64> {
        let digits = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"feed/")?;
        number(digits)
    }

    pub fn member(&self, id: MemberId) -> String {
        format!("{}members/{id}", self.prefix)
    }

    /// The range of all members.
    pub fn members(&self) -> (String, String) {
        (format!("{}members/", self.prefix), format!("{}members0", self.prefix))
    }

    pub fn member_id(&self, key: &[u8]) -> Option<MemberId> {
        let digits = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"members/")?;
        number(digits).map(MemberId)
    }
}

/// A number of 16 hexadecimal digits.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let is_digit = |it: &u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    let fits = digits.len() == 16 && digits.iter().all(is_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| fits)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_rows_are_in_the_order_of_positions() {
        let keys = Keys::new(ClusterId([0xab; 16]));
        let positions = [1, 9, 10, 255, 256, u64::from(u32::MAX), u64::MAX];
        for pair in positions.windows(2) {
            assert!(keys.row(pair[0]) < keys.row(pair[1]));
        }
        for position in positions {
            assert!(keys.row(position) < keys.rows_end());
            assert_eq!(keys.position(keys.row(position).as_bytes()), Some(position));
        }
        assert_eq!(keys.position(keys.head().as_bytes()), None);
        assert_eq!(keys.position(format!("{}0", keys.row(1)).as_bytes()), None);
        assert_eq!(number(b"+000000000000001"), None);
        assert_eq!(keys.member_id(keys.member(MemberId(7)).as_bytes()), Some(MemberId(7)));
    }
}
