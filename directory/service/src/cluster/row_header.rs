//! What a row of the feed says of itself and of the cluster.

use keyway_cluster::follower::RowHeader;
use keyway_cluster::message::{ClusterRow, Digest, Reign};
use keyway_host::failure::Failure;
use keyway_store::{Change, RawRow};

/// Whether a change is one of the cluster's row.
pub(super) fn is_cluster_row(change: &Change) -> bool {
    matches!(change, Change::Meta(meta) if meta.name == ClusterRow::NAME)
}

/// Whether a row changes entries and nothing else, so that others can be applied together with it.
pub(super) fn is_of_entries(row: &RawRow) -> bool {
    !row.changes().any(|change| matches!(change, Change::Meta(_)))
}

/// What a row says of itself.
pub(super) fn header(row: &RawRow) -> Result<RowHeader, Failure> {
    let mut reign = None;
    for change in row.changes() {
        if let Change::Meta(meta) = change
            && is_cluster_row(change)
            && let [_, Some(value)] = &meta.value
        {
            let row = ClusterRow::parse(value).map_err(Failure::new)?;
            reign = Some(Reign { epoch: row.epoch, writer: row.writer });
        }
    }
    Ok(RowHeader {
        position: row.position(),
        before: Digest(row.before().0),
        digest: Digest(row.digest().0),
        reign,
    })
}
