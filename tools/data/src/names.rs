//! Names of people: pairs that repeat only when every first name has met every last name.
//!
//! As in MakeLDIF both lists are walked together, and when the longer one is at its end the shorter
//! one begins one further on. After all pairs a number is appended to the last name.

use crate::number::push;
use crate::plan::Plan;

/// The first name of the pair with this number.
#[inline]
pub(crate) fn first(plan: &Plan, number: u64) -> &[u8] {
    let (first, _, _) = pair(plan, number);
    plan.first_names.get(first)
}

/// Writes its last name.
#[inline]
pub(crate) fn push_last(plan: &Plan, number: u64, out: &mut Vec<u8>) {
    let (_, last, times) = pair(plan, number);
    out.extend_from_slice(plan.last_names.get(last));
    if times > 0 {
        push(out, times + 1);
    }
}

/// The positions in both lists, and how often all pairs were used up.
#[inline]
fn pair(plan: &Plan, number: u64) -> (usize, usize, u64) {
    let (firsts, lasts) = (plan.first_names.len() as u64, plan.last_names.len() as u64);
    let (longer, shorter) = (firsts.max(lasts).max(1), firsts.min(lasts).max(1));
    let (round, at) = (number / longer, number % longer);
    let other = (at + round) % shorter;
    let (first, last) = if firsts >= lasts { (at, other) } else { (other, at) };
    (first as usize, last as usize, round / shorter)
}
