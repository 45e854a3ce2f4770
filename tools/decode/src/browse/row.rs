//! An item as a row of the list.

use super::items::{BrowsedItem, ItemBody};
use crate::End;
use crate::view::{Line, clock};

/// Result codes that are no failure: success, compareFalse, compareTrue, referral and saslBindInProgress
/// (RFC 4511, section 4.1.9).
const NO_FAILURE: [u32; 5] = [0, 5, 6, 10, 14];

/// How a row stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTone {
    /// An operation that went well.
    Usual,
    /// An operation that failed, or was not answered.
    Failed,
    /// No operation.
    Remark,
}

/// The text of an item's row, and its tone; where the screen is `roomy`, times have milliseconds.
#[must_use]
pub fn row(item: &BrowsedItem, roomy: bool) -> (String, RowTone) {
    let kept = match &item.body {
        ItemBody::Note(line) => return (line.clone(), RowTone::Remark),
        ItemBody::Operation(kept) => kept,
    };
    let operation = kept.operation();
    let is_lost = operation.end == End::Unanswered;
    let tone = match is_lost || item.code.is_some_and(|code| !NO_FAILURE.contains(&code)) {
        true => RowTone::Failed,
        false => RowTone::Usual,
    };
    let mut time = Vec::new();
    clock(item.time_ns, &mut time);
    let digits = if roomy { 12 } else { 8 };
    let time = String::from_utf8_lossy(&time).chars().take(digits).collect::<String>();
    let connection = format!("c{}.{}", operation.connection.number, operation.id);
    let latency = item.latency_ns.map_or_else(|| "-".to_owned(), Line::latency);
    let (result, subject) = (Line::result(&operation), Line::subject(&operation));
    let name = operation.name();
    let text = match roomy {
        true => format!("{time}  {connection:<10} {name:<9} {latency:>10}  {result}  {subject}"),
        false => format!("{time}  {connection:<8} {name:<8} {latency:>9}  {result}  {subject}"),
    };
    (text, tone)
}
