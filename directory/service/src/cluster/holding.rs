//! A member's thread for etcd: it follows the feed there, takes the writer's lease when that is free, and begins to write
//! when it has all that is there.

use super::appending::{ToEtcd, row_of};
use super::node::Node;
use super::tail::TailSettings;
use super::telling::Telling;
use keyway_cluster::append::{Appended, Fence, Tail as _};
use keyway_cluster::lease::{Ask, Doubt, Lease, Obstacle, Own, Step, Told};
use keyway_cluster::message::{ClusterId, MemberId, Refusal, RoleName, Status};
use keyway_cluster::role::Role;
use keyway_cluster_etcd::{Error, Etcd, Followed, Follower, Point, Tail};
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::log::Severity;
use keyway_store::RawRow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The longest wait at one place: the lease is renewed and an end is noticed in time.
const BEAT: Duration = Duration::from_millis(100);
/// The pause after something that did not work.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How often the others are asked how far they are, while that decides who may write.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long another member may take for its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// How long a member that wrote counts as writing: it is asked again meanwhile.
const ELSEWHERE_MAX: Duration = Duration::from_secs(4);
/// How often etcd is tried out before there is a cluster.
const TRY_EVERY: Duration = Duration::from_secs(5);

/// Answers of members, with the time at which each was asked, and the way to give one.
type Answers = (Sender<(Duration, Status)>, Receiver<(Duration, Status)>);

/// The thread's work.
struct Holding {
    node: Arc<Node>,
    runtime: Handle,
    own: MemberId,
    etcd: Etcd,
    tail: Tail,
    lease: Lease,
    /// How long a lease lasts that is not renewed.
    lease_time: Duration,
    follower: Option<Follower>,
    telling: Telling,
    asked: Duration,
    /// What others have answered, and when they were asked.
    answers: Answers,
    /// A member that wrote, when it was asked last, though the lease in this server's etcd is free.
    elsewhere: Option<(Duration, String)>,
}

/// Looks at etcd before there is a cluster, so that what is wrong with it is seen before another server depends on it.
fn try_out(node: &Arc<Node>, settings: &TailSettings, runtime: &Handle) {
    let none = ClusterId([0; 16]);
    let looked = settings.open(none, runtime.clone()).map(|etcd| etcd.look());
    let why = match looked {
        Ok(Ok(_)) => None,
        Ok(Err(why)) => Some(format!("etcd: {why}")),
        Err(why) => Some(why.to_string()),
    };
    node.note_trouble(|leased| leased.unreached = why);
}

/// Works until `ends`. There is little to do before there is a cluster.
pub(super) fn hold(node: Arc<Node>, settings: &TailSettings, runtime: &Handle, ends: &AtomicBool) {
    let mut tried: Option<Duration> = None;
    while !ends.load(Ordering::Acquire) {
        let cluster = node.standing().row().map(|row| row.cluster);
        let Some(cluster) = cluster else {
            let now = node.now();
            if tried.is_none_or(|tried| now.saturating_sub(tried) >= TRY_EVERY) {
                tried = Some(now);
                try_out(&node, settings, runtime);
            }
            sleep(BEAT);
            continue;
        };
        let own = node.standing().own();
        let etcd = match settings.open(cluster, runtime.clone()) {
            Ok(etcd) => etcd,
            Err(why) => return node.say(Severity::Error, &why.to_string()),
        };
        let now = node.now();
        let mut holding = Holding {
            runtime: runtime.clone(),
            own,
            tail: Tail::new(etcd.clone()),
            lease: Lease::new(own, settings.lease, now),
            lease_time: settings.lease,
            etcd,
            follower: None,
            telling: Telling::new(own, now),
            asked: Duration::ZERO,
            answers: channel(),
            elsewhere: None,
            node: node.clone(),
        };
        while !ends.load(Ordering::Acquire) {
            holding.turn();
        }
        holding.end();
    }
}

impl Holding {
    fn turn(&mut self) {
        if !self.is_member() {
            return self.stuck(&Refusal::UnknownMember.to_string());
        }
        self.turn_lease();
        self.hear_later();
        self.ask_others();
        self.hear_others();
        self.note_elsewhere();
        match self.node.is_open() {
            true => {
                self.follower = None;
                sleep(BEAT);
            }
            false => self.turn_follow(),
        }
        if let Err(why) = self.telling.turn(&self.node, &self.etcd, self.lease.fence()) {
            self.answered(Some(&why));
        }
        let is_twin = self.telling.is_twin(self.node.now(), self.lease_time);
        let twin = is_twin.then(|| Refusal::Twin.to_string());
        if twin.is_some() && !self.node.has_twin() {
            self.node.say(Severity::Error, &Refusal::Twin.to_string());
        }
        self.node.note_trouble(|leased| leased.twin = twin);
    }

    /// Whether the cluster has this server as a member still.
    fn is_member(&self) -> bool {
        self.node.standing().row().is_some_and(|row| row.member(self.own).is_some())
    }

    fn turn_lease(&mut self) {
        let sent = self.node.now();
        let Step::Ask(ask) = self.lease.step(sent) else { return };
        let before = self.lease.fence();
        let told = match ask {
            // Two processes would hold it in turns, and only one of them is where others look for the writer.
            Ask::Take { .. } if self.telling.may_be_twin() => Told::Refused,
            _ => self.tail.lease(&ask),
        };
        let failure = self.tail.failure();
        self.answered(failure.as_ref());
        let Ok(place) = self.node.place() else { return };
        let row = self.node.standing().row().cloned();
        let own = Own { place: &place, row: row.as_ref() };
        let digest_at = |position| self.node.digest_at(position);
        self.lease.told(&told, own, digest_at, (sent, self.node.now()));
        match (before, self.lease.fence()) {
            (None, Some(_)) => {
                // What another holder has appended last is looked at once more.
                self.follower = None;
                self.node.say(Severity::Info, "this server holds the writer's lease in etcd");
            }
            (Some(_), None) => {
                self.node
                    .close("the writer's lease in etcd has ended, or is another member's", false);
            }
            _ => {}
        }
        // A holder that has not heard from etcd for the time of its lease says so before etcd does.
        if self.lease.fence().is_some() && !self.lease.believes(self.node.now(), Duration::ZERO) {
            self.lease.lost(self.node.now());
            self.node.close("etcd has not answered for the time of the writer's lease", false);
        }
        let diverged_from = self.lease.diverged_from();
        let held_up = self.lease.obstacle(own, self.node.now()).map(|it| self.held_up(it));
        self.node.note_trouble(|leased| {
            (leased.diverged_from, leased.held_up) = (diverged_from, held_up);
        });
        if diverged_from.is_some() && !self.node.is_stuck() {
            let text = "what is in etcd is not what this server has: begin it anew with keyway cluster rejoin";
            self.node.stuck(text);
        }
    }

    /// A member that was made the writer without etcd, by force, has the later epoch; but the lease says which one writes, and
    /// so this one begins another epoch.
    fn hear_later(&self) {
        if self.node.is_open() && self.node.role() == Role::Fenced {
            self.node
                .close("another member writes without the lease in etcd, in a later epoch", false);
        }
    }

    /// Says which member is to be looked at.
    fn held_up(&self, by: Obstacle) -> String {
        let (Obstacle::Silent(id) | Obstacle::Ahead(id)) = by;
        let standing = self.node.standing();
        let name =
            standing.row().and_then(|row| row.member(id)).map_or("another member", |it| &it.name);
        match by {
            Obstacle::Silent(_) => format!(
                "the changes in etcd are not the last ones that this server has (etcd is new, or was restored), so that all \
                 members have to answer before one writes, and {name} does not: start it; or, if it is lost for good, set \
                 cluster.etcd to [] on all others, start them anew, and there: keyway cluster promote --force, keyway \
                 cluster remove {name}; then set etcd up again"
            ),
            Obstacle::Ahead(_) => format!(
                "{name} is to take the writer's lease, since it has the last changes, and does not: its last error says why \
                 (keyway cluster status --all)"
            ),
        }
    }

    /// Asks the others how far they are, where it is not clear which one may write.
    fn ask_others(&mut self) {
        let now = self.node.now();
        let is_asking =
            matches!(self.lease.doubt_found(), Some(Doubt::Restored { .. } | Doubt::Starting));
        if !is_asking || now.saturating_sub(self.asked) < ASK_EVERY {
            return;
        }
        self.asked = now;
        let urls = self.node.other_urls();
        // One that is stopped, or cut off, does not hold up the lease.
        for url in urls {
            let (node, answers) = (self.node.clone(), self.answers.0.clone());
            self.runtime.spawn(async move {
                if let Ok(Ok(status)) = timeout(ANSWER_LIMIT, node.status_at(&url)).await {
                    // It may be over.
                    let _ = answers.send((now, status));
                }
            });
        }
    }

    /// Takes what the others have answered.
    fn hear_others(&mut self) {
        while let Ok((asked, status)) = self.answers.1.try_recv() {
            match status.role {
                // The lease is not taken from one that writes without it, or by another etcd.
                RoleName::Writer if self.lease.is_free_since(asked) => {
                    self.elsewhere = Some((asked, status.name));
                }
                RoleName::Writer => {}
                _ => self.lease.stands(&status, asked),
            }
            self.node.heard(status.heard);
        }
    }

    /// Says that another member writes, and that this etcd has no part in it.
    fn note_elsewhere(&mut self) {
        let now = self.node.now();
        // The lease is held by now, perhaps, or the answer is an old one.
        let is_over = self.node.is_open() || !self.lease.is_free_since(now);
        self.elsewhere.take_if(|(asked, _)| is_over || now.saturating_sub(*asked) > ELSEWHERE_MAX);
        let text = self.elsewhere.as_ref().map(|(_, name)| {
            format!(
                "{name} writes, and not by this server's etcd: set cluster.etcd to one value on all members, and start \
                 them all again"
            )
        });
        self.node.note_trouble(|leased| leased.elsewhere = text);
    }

    fn turn_follow(&mut self) {
        let Ok(place) = self.node.place() else { return sleep(AGAIN_AFTER) };
        let here = Point { position: place.position, digest: place.digest };
        let follower = self.follower.get_or_insert_with(|| self.etcd.follow(here));
        let followed = follower.next(BEAT);
        let has_all = follower.has_all();
        match followed {
            Ok(Followed::Row(row)) => {
                if self.take(&row) && has_all {
                    self.note_all();
                }
            }
            Ok(Followed::Idle) => {
                self.note_all();
                if let Some(fence) = self.lease.fence() {
                    self.begin(fence);
                }
            }
            Ok(Followed::Rewound(_)) => {
                self.note_well();
                if let Some(fence) = self.lease.fence() {
                    self.begin(fence);
                }
            }
            Ok(Followed::Compacted { first }) => self.stuck(&format!(
                "etcd has no changes before position {first} any more: take the writer's contents with keyway \
                 cluster rejoin"
            )),
            Ok(Followed::Gap { missing }) => {
                self.stuck(&format!(
                    "position {missing} is missing in etcd, though only Keyway may remove changes there: take the \
                     writer's contents with keyway cluster rejoin"
                ));
            }
            Ok(Followed::Diverged { here, .. }) => self.stuck(&format!(
                "position {} in etcd is not what this server has: begin it anew with keyway cluster rejoin",
                here.position
            )),
            Err(why) => self.failed(&why),
        }
    }

    /// Notes how the last call to etcd has ended.
    fn answered(&self, failure: Option<&Error>) {
        let why = failure.map(|why| format!("etcd: {why}"));
        self.node.note_trouble(|leased| leased.unreached = why);
    }

    fn failed(&mut self, why: &Error) {
        self.follower = None;
        self.answered(Some(why));
        sleep(BEAT);
    }

    fn stuck(&mut self, text: &str) {
        self.follower = None;
        self.node.stuck(text);
        sleep(AGAIN_AFTER);
    }

    /// Notes that all that is in etcd is here, and so all that the writer has.
    fn note_all(&self) {
        if self.elsewhere.is_some() {
            return;
        }
        *self.node.had_all.lock().unpoisoned() = Some(self.node.now());
        self.note_well();
    }

    fn note_well(&self) {
        if self.lease.diverged_from().is_none() {
            self.node.note_trouble(|leased| (leased.stuck, leased.closed) = (None, None));
        }
    }

    /// Applies a row of etcd. Whether that was done.
    fn take(&mut self, row: &keyway_cluster_etcd::Row) -> bool {
        let point = row.point();
        let applied = RawRow::parse(point.position, row.bytes())
            .map_err(|why| Failure::new(format!("position {}: {why}", point.position)))
            .and_then(|row| self.node.apply_of_etcd(row));
        match &applied {
            Ok(()) => self.node.note_trouble(|leased| leased.stuck = None),
            Err(why) => self.stuck(&why.to_string()),
        }
        applied.is_ok()
    }

    /// Begins to write: all that is in etcd is here.
    fn begin(&mut self, fence: Fence) {
        match self.try_to_begin(fence) {
            Ok(()) => {}
            Err(why) => {
                self.node.note_trouble(|leased| leased.unreached = Some(why.to_string()));
                self.follower = None;
                sleep(BEAT);
            }
        }
    }

    fn try_to_begin(&mut self, fence: Fence) -> Result<(), Failure> {
        let place = self.node.place()?;
        let here = Point { position: place.position, digest: place.digest };
        let state = self.etcd.look().map_err(Failure::new)?;
        let end = match state.head {
            // A member that has joined just now may lack rows of before.
            None => self.etcd.begin(&fence, self.node.feed_start()?).map_err(Failure::new)?,
            Some(end) => end,
        };
        if end.position > here.position {
            // More has come: it is followed first.
            self.follower = None;
            return Ok(());
        }
        // An etcd that is new, or was restored from an older copy, lacks what members have.
        if end.position < here.position {
            self.etcd.cut(&fence, end).map_err(Failure::new)?;
        }
        for row in self.node.rows_between(end.position, here.position)? {
            match self.tail.append(&fence, &row_of(&row)) {
                Appended::Done => {}
                _ => {
                    let why = self.tail.failure().map(|why| format!(": {why}")).unwrap_or_default();
                    return Err(Failure::new(format!("etcd does not take what it lacks{why}")));
                }
            }
        }
        let append = Arc::new(ToEtcd {
            node: Arc::downgrade(&self.node),
            tail: Mutex::new(Tail::new(self.etcd.clone())),
            fence,
        });
        self.node.begin_reign(here.position, state.store, append)
    }

    /// Gives the lease back, so that another member need not wait for its end.
    fn end(mut self) {
        self.node.close("the server is stopping", false);
        // Both end by themselves: an etcd that does not answer holds the server up for one call only.
        let is_released = self.lease.fence().is_none_or(|fence| self.etcd.release(&fence).is_ok());
        if is_released {
            self.telling.end(&self.etcd);
        }
    }
}
