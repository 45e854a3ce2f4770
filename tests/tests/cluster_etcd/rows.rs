//! Rows that follow one another, as the feed's store makes them.

use keyway_cluster_etcd::{Appended, Etcd, Fence, Followed, Follower, Point, Row};

/// A feed that grows.
#[derive(Clone, Copy)]
pub struct Feed {
    /// Where it ends.
    pub last: Point,
    /// What its rows are made of: two feeds with other contents differ in each row.
    pub content: u8,
}

impl Feed {
    /// One without rows.
    pub const NEW: Feed = Feed { last: Point::START, content: 0 };

    /// The next row, of so many bytes.
    pub fn grow(&mut self, bytes: usize) -> Row {
        let mut row = [&[0; 4][..], &self.last.digest.0].concat();
        row.resize(bytes, self.content);
        let row = Row::new(self.last.position + 1, row).unwrap();
        self.last = row.point();
        row
    }

    /// Appends so many small rows.
    #[track_caller]
    pub fn append(&mut self, etcd: &Etcd, fence: &Fence, count: usize) {
        for _ in 0..count {
            assert_eq!(etcd.append(fence, &self.grow(100)).unwrap(), Appended::Done);
        }
    }
}

/// The next row, waited for.
#[track_caller]
pub fn next_row(follower: &mut Follower) -> Row {
    match follower.next(super::PATIENCE).unwrap() {
        Followed::Row(row) => row,
        other => panic!("no row: {other:?}"),
    }
}
