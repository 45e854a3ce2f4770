//! What is run, what goes wrong in it, and what was seen.

use super::random::Random;

/// What is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Servers.
    pub members: usize,
    /// Whether the tail of the feed is in etcd.
    pub etcd: bool,
    /// Seconds with clients and faults.
    pub seconds: u64,
    /// Which kinds of faults there are.
    pub faults: Vec<Fault>,
    /// Clients; two more than servers if it is not said.
    pub clients: Option<usize>,
    /// Octets a second that a server can send; no limit if it is not said.
    pub bandwidth: Option<u64>,
    /// A rule that does not hold, to see the checker fail.
    pub broken: Option<Broken>,
}

/// A kind of fault, or a person's act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A server is killed, and started again later.
    Kill,
    /// A server loses its power, with what was not synced.
    Power,
    /// A server stands still for a while.
    Pause,
    /// The network between two is cut for a while; etcd is one too.
    Cut,
    /// A server is cut off from all others for a while.
    Isolate,
    /// A disk is slow for a while.
    SlowDisk,
    /// A server's clock jumps ahead.
    Clock,
    /// A server's folder is replaced by an older copy of itself.
    OldCopy,
    /// A server is restored from a backup: it has a new history.
    Restore,
    /// A copy of a server's folder is started beside it.
    Twin,
    /// A person promotes by force the member that is furthest of those that run.
    Promote,
    /// A person promotes any follower by force.
    PromoteAny,
    /// Persons promote one follower or several at one moment, and these ask the others first.
    PromoteAsked,
    /// A person lets a follower that has stopped rejoin.
    Rejoin,
    /// The writer removes old rows without regard to how long members were silent.
    Trim,
    /// etcd is away for a while.
    EtcdAway,
    /// etcd is restored from a snapshot.
    EtcdRestored,
}

/// A rule that is switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Writers do not hear of newer epochs.
    Fencing,
    /// Reads do not wait for one's own writes.
    OwnWrites,
    /// A writer that starts does not ask the others.
    StartRule,
    /// etcd puts a row without a transaction, whether the fence holds or not.
    EtcdTransaction,
    /// etcd that was restored is not doubted.
    EtcdDoubt,
    /// A writer that has promised takes changes still.
    Promise,
    /// Members let each promotion happen that asks, and remember none.
    OnePromise,
    /// A promotion does not wait for what other members have.
    CatchUp,
    /// A writer that has stood still acknowledges without asking the others.
    Still,
}

/// What was seen in a run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Report {
    /// Events.
    pub events: u64,
    /// Writes that clients were told are done.
    pub acknowledged: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that were acknowledged and are only in LDIF at the end.
    pub in_ldif: u64,
    /// Writes that went with a disk that was replaced by an older copy, and that no other member had.
    pub destroyed: u64,
    /// Promotions and leases.
    pub reigns: u64,
    /// Rejoins.
    pub rejoins: u64,
    /// Faults.
    pub faults: u64,
}

impl Options {
    /// A cluster that the seed chooses.
    pub fn of(seed: u64) -> Options {
        use Fault::*;
        let mut random = Random::new(seed ^ 0x6b65_7977_6179);
        let etcd = seed % 3 == 2;
        let all: &[Fault] = match etcd {
            true => &[
                Kill,
                Power,
                Pause,
                Cut,
                Isolate,
                SlowDisk,
                Clock,
                OldCopy,
                Trim,
                EtcdAway,
                EtcdRestored,
            ],
            false => &[
                Kill, Power, Pause, Cut, Isolate, SlowDisk, Clock, OldCopy, Restore, Twin, Promote,
                PromoteAny, Rejoin, Trim,
            ],
        };
        let mut faults: Vec<Fault> = all.iter().copied().filter(|_| random.chance(60)).collect();
        if faults.is_empty() {
            faults.push(Kill);
        }
        if faults.contains(&EtcdRestored) {
            // What etcd forgets is on the members' disks; without these too it is nowhere.
            faults.retain(|fault| !matches!(fault, Power | OldCopy));
        }
        if etcd && faults.contains(&OldCopy) {
            // Rows that a silent member lacks and that were removed early are on the disk that is replaced.
            faults.retain(|fault| *fault != Trim);
        }
        let members = 2 + random.below(4) as usize;
        let seconds = 20 + random.below(60);
        if !etcd && random.chance(50) {
            faults.push(PromoteAsked);
        }
        if !etcd && random.chance(15) {
            // Where little else goes wrong more must hold.
            faults = vec![PromoteAsked];
            faults.extend(random.chance(50).then_some(Pause));
        }
        Options { members, etcd, seconds, faults, clients: None, bandwidth: None, broken: None }
    }
}
