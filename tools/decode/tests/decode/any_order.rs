//! However a stream is cut into segments, and in whatever order they come, it is the same.

use super::wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("KEYWAY_NIGHTLY").is_some() { 5000 } else { 100 }))]

    #[test]
    fn any_split_in_any_order_decodes_the_same(
        cuts in vec(any::<Index>(), 0..40),
        moves in vec((any::<Index>(), any::<Index>()), 0..60),
        again in vec((any::<Index>(), 0_usize..40, 0_usize..40), 0..20),
    ) {
        let conversation = searches(false, 8);
        let expected = decode(&capture(&conversation.segments(1460))).sorted();
        let whole = conversation.segments(1_000_000);
        let (begin, end) = (2, whole.len() - 3);
        let mut segments = Vec::new();
        for segment in &whole[begin..end] {
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(segment.payload.len())).collect();
            at.extend([0, segment.payload.len()]);
            at.sort_unstable();
            at.dedup();
            segments.extend(at.windows(2).map(|pair| part(segment, pair[0], pair[1])));
        }
        // Some come again, with more or less of what is around them.
        for (index, before, after) in again {
            let segment = &whole[begin + index.index(end - begin)];
            let middle = index.index(segment.payload.len());
            let to = (middle + after).min(segment.payload.len());
            segments.push(part(segment, middle.saturating_sub(before), to));
        }
        for (one, other) in moves {
            let (one, other) = (one.index(segments.len()), other.index(segments.len()));
            segments.swap(one, other);
        }
        // Data that did not come yet is neither acknowledged nor answered.
        segments.sort_by_key(|segment| segment.from != conversation.client);
        segments.iter_mut().for_each(|segment| segment.acknowledgement = None);
        let all = [&whole[..begin], &segments, &whole[end..]].concat();
        let told = decode(&capture(&all));
        prop_assert_eq!(told.sorted(), expected);
        prop_assert_eq!(told.gap_bytes, 0);
    }
}

/// A segment with a part of another's octets.
fn part(segment: &Segment, from: usize, to: usize) -> Segment {
    let payload = segment.payload[from..to].to_vec();
    let sequence = segment.sequence.wrapping_add(from as u32);
    Segment { sequence, payload, ..segment.clone() }
}
