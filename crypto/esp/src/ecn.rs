//! Congestion notification of an outer header, taken into the inner one (RFC 6040).

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// The bits that the inner header has after decapsulation (RFC 6040 § 4.2, figure 4). `None` if the packet has to be
/// dropped: congestion was met, and the inner packet's sender would not understand.
pub(crate) fn decapsulated(inner: u8, outer: u8) -> Option<u8> {
    match (inner, outer) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (CE, _) | (_, CE) => Some(CE),
        (ECT_0, ECT_1) => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of figure 4, rows by inner, columns by outer: Not-ECT, ECT(0), ECT(1), CE.
    #[test]
    fn it_is_the_table_of_the_standard() {
        let all = [NOT_ECT, ECT_0, ECT_1, CE];
        let table = [
            [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None],
            [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)],
            [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)],
            [Some(CE), Some(CE), Some(CE), Some(CE)],
        ];
        for (inner, row) in all.into_iter().zip(table) {
            for (outer, expected) in all.into_iter().zip(row) {
                assert_eq!(decapsulated(inner, outer), expected, "{inner} in {outer}");
            }
        }
    }
}
