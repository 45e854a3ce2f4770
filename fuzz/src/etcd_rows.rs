//! Rows of a cluster's feed, as etcd's JSON has them.

use keyway_cluster_etcd::{ClusterId, Row, limits, read_rows};

/// Reads the bytes as an answer of etcd. A row has the digest that its bytes have, and no more bytes than a row may have.
pub fn etcd_rows(data: &[u8]) {
    if let Ok((rows, _head)) = read_rows(ClusterId([7; 16]), data) {
        for row in rows {
            let (point, length) = (row.point(), row.bytes().len());
            assert!(length <= limits::ROW_BYTES_MAX && row.before().position + 1 == point.position);
            assert_eq!(Row::new(point.position, row.bytes().to_vec()), Ok(row));
        }
    }
}
