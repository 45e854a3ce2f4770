//! Pages of counters.

use keyway_meter::Snapshot;
use keyway_meter::limits::{COUNTERS_MAX, PAGE_BYTES};

/// Reads a page that begins with these bytes, as it is and filled up with zeros to its full size.
pub fn meter_page(data: &[u8]) {
    let mut page = vec![0; PAGE_BYTES];
    let front = data.len().min(PAGE_BYTES);
    page[..front].copy_from_slice(&data[..front]);
    let full = Snapshot::from_bytes(&page);
    if data.len() >= PAGE_BYTES {
        assert_eq!(Snapshot::from_bytes(data), full);
    } else {
        assert!(Snapshot::from_bytes(data).is_err());
    }
    if let Ok(snapshot) = full {
        assert!((1..=COUNTERS_MAX).contains(&snapshot.counters.len()));
        for (name, _) in snapshot.counters {
            // They go to terminals.
            assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
