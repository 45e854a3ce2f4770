//! What the client of a read that another server of the cluster sends has written: it reads nothing older here either.

use keyway_cluster::message::{ClusterRow, MemberId, Reign};
use keyway_cluster::own_writes::OwnWrites;
use keyway_server::controls::Written;

/// A read's control on connections of other members of the cluster, and on no other: what its connection has written, and
/// what else it is to be seen by.
pub(crate) const OWN_WRITES: &str = "2.25.15936739705580567830054646219924409936.2.4";

/// Lines of the control at most.
const LINES_MAX: usize = 16;

/// What a read is to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Written by its connection, which is told if that is lost.
    pub own: OwnWrites,
    /// Written by another one, or named by the client.
    pub others: OwnWrites,
}

impl Carried {
    /// Adds what others have written.
    pub fn and(mut self, others: &OwnWrites) -> Carried {
        others.all().for_each(|write| self.others.wrote(write.reign, write.position));
        self
    }

    /// A line for each: whether it is its own, the position, the epoch and the writer. `None` if there is none.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let own = self.own.all().map(|write| ("own", write));
        let all = own.chain(self.others.all().map(|write| ("other", write)));
        let lines = all.map(|(whose, write)| {
            let (epoch, writer) = write.reign.map_or((0, 0), |it| (it.epoch, it.writer.0));
            format!("{whose} {} {epoch} {writer}", write.position)
        });
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("\n").into_bytes())
    }

    /// Reads the control's value; `None` if it is none.
    pub fn decode(value: &[u8]) -> Option<Carried> {
        let mut carried = Carried::default();
        let text = str::from_utf8(value).ok()?;
        for (count, line) in text.split('\n').enumerate() {
            let mut words = line.splitn(4, ' ');
            let to = match words.next()? {
                "own" => &mut carried.own,
                "other" => &mut carried.others,
                _ => return None,
            };
            let mut next = || words.next()?.parse::<u64>().ok();
            let (position, epoch, writer) = (next()?, next()?, next()?);
            let reign = (epoch > 0).then_some(Reign { epoch, writer: MemberId(writer) });
            to.wrote(reign, position);
            if count >= LINES_MAX {
                return None;
            }
        }
        Some(carried)
    }
}

/// What is to be seen by a position that a client names.
pub(crate) fn asked_for(named: Option<Written>, row: Option<&ClusterRow>) -> OwnWrites {
    let mut asked = OwnWrites::default();
    if let Some(named) = named {
        // A client that does not say the epoch means the one that there is.
        let there_is = row.map(ClusterRow::reign);
        asked.wrote(reign_of(named.reign).or(there_is), named.position);
    }
    asked
}

/// The reign that a control names; none of epoch 0.
pub(crate) fn reign_of((epoch, writer): (u64, u64)) -> Option<Reign> {
    (epoch > 0).then_some(Reign { epoch, writer: MemberId(writer) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        assert_eq!(Carried::default().encode(), None);
        let mut carried = Carried::default();
        carried.own.wrote(Some(Reign { epoch: 2, writer: MemberId(u64::MAX) }), 7);
        carried.own.wrote(Some(Reign { epoch: 3, writer: MemberId(1) }), 9);
        let mut others = OwnWrites::default();
        others.wrote(None, 8);
        let carried = carried.and(&others);
        assert_eq!(Carried::decode(&carried.encode().unwrap()), Some(carried));
        for wrong in ["", "own", "own 1 2", "own x 1 1", "it 1 1 1", "own 1 1 1\n"] {
            assert_eq!(Carried::decode(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(Carried::decode("own 1 1 1\n".repeat(17).trim_end().as_bytes()), None);
    }
}
