//! Pages of counters and histograms, and histograms as text.

use keyway_meter::limits::{
    COUNTERS_MAX, HISTOGRAM_BUCKETS, HISTOGRAMS_MAX, NAME_BYTES_MAX, PAGE_BYTES, SHARDS,
};
use keyway_meter::{Distribution, Snapshot};

const HISTOGRAM_BYTES: usize = 64 + HISTOGRAM_BUCKETS * 8;
const COUNTER_NAMES: usize = 128;
const SHARDS_AT: usize = COUNTER_NAMES + COUNTERS_MAX * NAME_BYTES_MAX;
const HISTOGRAM_NAMES: usize = SHARDS_AT + SHARDS * COUNTERS_MAX * 8;
const HISTOGRAMS_AT: usize = HISTOGRAM_NAMES + HISTOGRAMS_MAX * NAME_BYTES_MAX;

/// Where in a page the input goes, piece by piece: header, two counters, two histograms.
const PIECES: [(usize, usize); 6] = [
    (0, 128),
    (COUNTER_NAMES, 2 * NAME_BYTES_MAX),
    (SHARDS_AT, 16),
    (HISTOGRAM_NAMES, 2 * NAME_BYTES_MAX),
    (HISTOGRAMS_AT, HISTOGRAM_BYTES),
    (HISTOGRAMS_AT + HISTOGRAM_BYTES, HISTOGRAM_BYTES),
];

/// Reads these bytes as they are, and as the pieces of a page of full size that count; compares that page
/// with one without the last piece, as if it had come in since. Reads them as a histogram's text too: an
/// accepted one is the same after it was written and read again.
pub fn meter_page(data: &[u8]) {
    let text = std::str::from_utf8(data).ok();
    if let Some(values) = text.and_then(Distribution::from_text) {
        check_values(&values);
        assert_eq!(Distribution::from_text(&values.to_text()), Some(values));
    }
    let _ = Snapshot::from_bytes(data);
    let mut page = vec![0; PAGE_BYTES];
    let (mut rest, mut before) = (data, None);
    for (start, length) in PIECES {
        before = Snapshot::from_bytes(&page).ok();
        let (piece, others) = rest.split_at(length.min(rest.len()));
        page[start..start + piece.len()].copy_from_slice(piece);
        rest = others;
    }
    let read = Snapshot::from_bytes(&page);
    assert!(Snapshot::from_bytes(&page[..PAGE_BYTES - 1]).is_err());
    let Ok(snapshot) = read else { return };
    assert!((1..=COUNTERS_MAX).contains(&snapshot.counters.len()));
    assert!((1..=HISTOGRAMS_MAX).contains(&snapshot.histograms.len()));
    snapshot.counters.iter().for_each(|(name, _)| check_name(name));
    for (name, values) in &snapshot.histograms {
        check_name(name);
        check_values(values);
        assert_eq!(values.since(values).count, 0);
    }
    if let Some(before) = before {
        for between in [snapshot.since(&before), before.since(&snapshot)] {
            between.histograms.iter().for_each(|(_, values)| check_values(values));
        }
    }
}

fn check_name(name: &str) {
    // They go to terminals.
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()));
}

fn check_values(values: &Distribution) {
    assert!(values.min <= values.max);
    assert!(values.count > 0 || (values.sum, values.max) == (0, 0));
    assert!((values.min as f64..=values.max as f64).contains(&values.mean()));
    let mut last = values.min;
    for percent in [0.0, 1.0, 50.0, 99.0, 99.9, 100.0] {
        let percentile = values.percentile(percent);
        assert!(percentile >= last && percentile <= values.max);
        last = percentile;
    }
}
