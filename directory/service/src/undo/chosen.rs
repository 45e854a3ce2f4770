//! The requests of a commit that are to be undone.

use super::position::UndoPosition;
use crate::changes::{Reading, Refusal};
use keyway_host::failure::Failure;
use keyway_server::{DescribedChange, Reason};

/// The changes of each request, in their order. The server's notes on binds are not among them.
///
/// # Errors
/// If the position is not there, has no such change, or has changes of several requests while neither one of them is
/// named nor all are meant.
pub(super) fn requests(
    reading: &mut Reading,
    asked: UndoPosition,
    all: bool,
) -> Result<Vec<Vec<DescribedChange>>, Failure> {
    let position = asked.position;
    reading.begin(position);
    let read = reading.next(position).map_err(|why| match why {
        Refusal::Trimmed { first, .. } => Failure::new(format!(
            "position {position} is not kept any more, and cannot be undone: the feed begins with position {first} \
             (how much is kept: keyway config get feed)"
        )),
        Refusal::Ahead { last, .. } => ahead(position, last),
        Refusal::Other(failure) => failure,
    })?;
    let changes = read.ok_or_else(|| ahead(position, position.saturating_sub(1)))?;
    let mut requests: Vec<Vec<DescribedChange>> = Vec::new();
    for change in changes {
        match requests
            .last_mut()
            .filter(|last| last.last().is_some_and(|one| one.note == change.note))
        {
            Some(last) => last.push(change),
            None => requests.push(vec![change]),
        }
    }
    let is_note = |request: &Vec<DescribedChange>| {
        let note = request.first().and_then(|one| one.note.as_ref());
        note.is_some_and(|note| note.reason == Reason::Bind)
    };
    if let Some(index) = asked.index {
        requests.retain(|request| request.iter().any(|one| one.index == index));
        if requests.is_empty() {
            return Err(Failure::new(format!("position {position} has no change {index}")));
        }
        if requests.iter().any(is_note) {
            return Err(Failure::new(format!(
                "{asked} is the server's own note after a bind: there is nothing to undo"
            )));
        }
        return Ok(requests);
    }
    requests.retain(|request| !is_note(request));
    if requests.is_empty() {
        return Err(Failure::new(format!(
            "position {position} has only the server's own notes after binds: there is nothing to undo"
        )));
    }
    if requests.len() > 1 && !all {
        let each = requests.iter().filter_map(|request| request.first());
        let each = each.map(|one| {
            let name = one.entry().map_or_else(String::new, |entry| format!(" {}", entry.dn));
            format!("\n  {position}.{}  {}{name}, {}", one.index, one.kind(), one.origin())
        });
        return Err(Failure::new(format!(
            "position {position} has changes of {} requests, which came at one time. Name one of them, or say --all:{}",
            requests.len(),
            each.collect::<String>()
        )));
    }
    Ok(requests)
}

fn ahead(position: u64, last: u64) -> Failure {
    Failure::new(format!("there is no position {position}: the last one is {last}"))
}
