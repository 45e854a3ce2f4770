//! What binds at a server that follows have come to, on its way to the one that writes.

use super::taker::BindsTaker;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::policy::Events;
use crate::policy::limits::{FAILURES_MAX, PENDING_ACCOUNTS_MAX};
use crate::state::DirectoryState;
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_store::EntryId;
use std::collections::HashMap;
use std::sync::Arc;

/// Who takes them, if this directory follows another one.
pub(crate) fn taker_of(shared: &DirectoryState) -> Option<Arc<dyn BindsTaker>> {
    shared.binds_taker.read().unpoisoned().clone()
}

impl Directory {
    /// Has the ends of binds taken there, from the next ones on; written here without a taker.
    pub fn send_binds_by(&self, taker: Option<Arc<dyn BindsTaker>>) {
        *self.shared.binds_taker.write().unpoisoned() = taker;
    }

    /// Notes the ends of binds at a server that follows this one in their entries. They count with those that this one has
    /// seen itself, so that the strictest of both holds.
    ///
    /// # Errors
    /// `protocolError` if they are none, or the store's.
    pub fn note_binds(
        &self,
        binds: &[u8],
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let accounts = decode(binds)
            .ok_or_else(|| Failure::new(ResultCode::ProtocolError, "these are no ends of binds"));
        let written = accounts.map(|accounts| self.write_events(accounts));
        async move { written?.await }
    }
}

/// `accounts (4 B BE) | (entry (8 B BE) | flags (1 B) | failures (2 B BE) | time… | graces (2 B BE) | time… | [last
/// success])…`; a time has 8 B BE, in microseconds since 1970. Bit 0 of the flags: earlier failures are forgotten; bit 1:
/// there is a last success.
pub(crate) fn encode(accounts: &HashMap<EntryId, Events>) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((accounts.len() as u32).to_be_bytes());
    for (id, events) in accounts {
        out.extend(id.0.to_be_bytes());
        out.push(u8::from(events.cleared) | u8::from(events.last_success.is_some()) << 1);
        for times in [&events.failures, &events.graces] {
            let kept = times.len().min(TIMES_MAX);
            out.extend((kept as u16).to_be_bytes());
            times[times.len() - kept..].iter().for_each(|time| out.extend(time.to_be_bytes()));
        }
        out.extend(events.last_success.into_iter().flat_map(u64::to_be_bytes));
    }
    out
}

/// Times of one kind of one account.
const TIMES_MAX: usize = 2 * FAILURES_MAX;

fn decode(bytes: &[u8]) -> Option<HashMap<EntryId, Events>> {
    let mut rest = bytes;
    let count = u32::from_be_bytes(take(&mut rest)?) as usize;
    if count > PENDING_ACCOUNTS_MAX {
        return None;
    }
    let mut accounts = HashMap::new();
    for _ in 0..count {
        let id = EntryId(u64::from_be_bytes(take(&mut rest)?));
        let [flags] = take(&mut rest)?;
        let mut times = || {
            let count = usize::from(u16::from_be_bytes(take(&mut rest)?));
            let times = (0..count).map(|_| take(&mut rest).map(u64::from_be_bytes));
            if count > TIMES_MAX { None } else { times.collect::<Option<Vec<u64>>>() }
        };
        let (failures, graces) = (times()?, times()?);
        let last_success = match flags & 2 {
            0 => None,
            _ => Some(u64::from_be_bytes(take(&mut rest)?)),
        };
        accounts.insert(id, Events { cleared: flags & 1 != 0, failures, graces, last_success });
    }
    rest.is_empty().then_some(accounts)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_were_written() {
        let events = |n: u64| Events {
            cleared: n.is_multiple_of(2),
            failures: (0..n).collect(),
            graces: vec![n],
            last_success: (n > 2).then_some(n),
        };
        let all: HashMap<EntryId, Events> = (0..9).map(|n| (EntryId(n), events(n))).collect();
        let bytes = encode(&all);
        assert_eq!(decode(&bytes), Some(all));
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None);
        }
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(decode(&[255; 40]), None);
    }
}
