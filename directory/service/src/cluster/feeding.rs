//! The writer's side of a follower's connection: rows go out as they are committed, and what the follower has on its disk
//! comes back.

use super::limits::{FOLLOWED_EVERY, FOLLOWED_WAIT, FOLLOWER_WAIT, SEND_WAIT};
use super::node::Node;
use super::service::{Follow, Refused};
use super::stream::{MemberStream, StreamError};
use keyway_cluster::follower::HEARTBEAT_EVERY;
use keyway_cluster::message::{Answer, Digest, Frame, Heartbeat, MemberId, Place, Refusal};
use keyway_cluster::writer::{Following, answer_follow};
use keyway_host::failure::Failure;
use keyway_host::timestamp::now_unix_us;
use keyway_lock::Unpoisoned;
use keyway_server::log::Severity;
use keyway_store::{Error, RawRow};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, interval, sleep, sleep_until};

/// Octets of rows that are read at once, and how many.
const PIECE_BYTES: usize = 4 << 20;
const PIECE_ROWS: usize = 256;
/// Further rows go out while fewer than so many are on their way. A follower that is far behind hears with each piece where
/// the feed ends, and would not if all rows were on their way before that.
const WINDOW_ROWS: u64 = 256;

/// A member to which rows are sent, as long as this lives.
struct Fed<'n> {
    all: &'n watch::Sender<BTreeSet<MemberId>>,
    member: MemberId,
}

impl Fed<'_> {
    fn begin(all: &watch::Sender<BTreeSet<MemberId>>, member: MemberId) -> Fed<'_> {
        all.send_modify(|all| {
            all.insert(member);
        });
        Fed { all, member }
    }
}

impl Drop for Fed<'_> {
    fn drop(&mut self) {
        self.all.send_modify(|all| {
            all.remove(&self.member);
        });
    }
}

impl Node {
    /// Sends a member the rows behind a place, to the end of the connection.
    pub(super) async fn feed(
        self: Arc<Self>,
        mut stream: MemberStream,
        Follow { member, place, heard }: Follow,
    ) {
        self.heard(heard);
        if self.is_twin(member).await {
            let _ = self.refuse(&mut stream, Refusal::Twin.into()).await;
            return;
        }
        let node = self.clone();
        let answered = spawn_blocking(move || node.answer(&place)).await;
        let refused = match answered {
            Ok(Ok(Ok(following))) => match self.send_rows(&mut stream, member, following).await {
                Ok(()) => return,
                Err(why) => {
                    self.say(Severity::Info, &format!("member {member} follows no more: {why}"));
                    return;
                }
            },
            Ok(Ok(Err(refusal))) => {
                if matches!(refusal, Refusal::Behind { .. } | Refusal::Forked { .. }) {
                    self.stop(refusal.clone());
                }
                (refusal, None)
            }
            Ok(Err(why)) => (Refusal::Other, Some(why.to_string())),
            Err(why) => (Refusal::Other, Some(why.to_string())),
        };
        let (reason, text) = refused;
        // It may be gone.
        let _ = self.refuse(&mut stream, Refused { reason, text, heard: None }).await;
    }

    /// Whether a member that wants to follow does so already, over another connection that is alive: then one of the two is a
    /// copy of the other's folder. An earlier connection of a member that has lost it is silent.
    async fn is_twin(&self, member: MemberId) -> bool {
        let heard = || {
            let progress = self.progress.lock().unpoisoned();
            progress.all().find(|(id, _)| *id == member).map(|(_, known)| known.heard)
        };
        if !self.fed.borrow().contains(&member) {
            return false;
        }
        let before = heard();
        sleep(HEARTBEAT_EVERY + HEARTBEAT_EVERY / 2).await;
        self.fed.borrow().contains(&member) && heard() > before
    }

    /// Waits until the members that follow this one have all that is here; not long, as they may be far behind. With etcd
    /// they find it there.
    pub async fn followed(&self) {
        let is_followed = || {
            let Ok(end) = self.parts.directory.position() else { return true };
            let fed = self.fed.borrow();
            let progress = self.progress.lock().unpoisoned();
            !progress.all().any(|(id, known)| fed.contains(&id) && known.position < Some(end))
        };
        let mut looks = interval(FOLLOWED_EVERY);
        let until = Instant::now() + FOLLOWED_WAIT;
        while !self.has_etcd && !is_followed() && Instant::now() < until {
            looks.tick().await;
        }
    }

    /// Whether a member may follow from a place.
    fn answer(&self, asked: &Place) -> Result<Result<Following, Refusal>, Failure> {
        let own = self.place()?;
        let serving = self.may_serve();
        let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
        let read = self.parts.store.read().map_err(unreadable)?;
        let view = read.view();
        let first = view.feed_head().map_err(unreadable)?.map_or(u64::MAX, |head| head.first);
        let digest_at = |position: u64| {
            // The row behind it names it, also if it is not kept itself.
            let mut rows = view.feed_after(position).ok()?.raw();
            rows.next()?.ok().map(|row| Digest(row.before().0))
        };
        Ok(answer_follow(&own, serving, first, digest_at, asked))
    }

    async fn send_rows(
        self: &Arc<Self>,
        stream: &mut MemberStream,
        member: MemberId,
        following: Following,
    ) -> Result<(), StreamError> {
        let Following { epoch, head, mut after } = following;
        stream.send(&Frame::Answer(Answer::Following { epoch, head }), SEND_WAIT).await?;
        self.progress.lock().unpoisoned().acknowledged(member, after, self.now());
        let _fed = Fed::begin(&self.fed, member);
        let mut positions = self.parts.directory.positions();
        let mut turns = self.turns();
        let mut beat = interval(HEARTBEAT_EVERY);
        let mut acknowledged = after;
        let mut heard = Instant::now();
        loop {
            while after.saturating_sub(acknowledged) < WINDOW_ROWS {
                let rows = self.rows(after).await;
                let rows = match rows {
                    Ok(rows) => rows,
                    Err(Error::FeedTrimmed { first, .. }) => {
                        return self.refuse(stream, Refusal::Trimmed { first }.into()).await;
                    }
                    Err(why) => {
                        return self.refuse(stream, Refused::because(why)).await;
                    }
                };
                let Some(last) = rows.last().map(RawRow::position) else { break };
                if self.parts.directory.position().is_ok_and(|head| head > last) {
                    self.beat(stream, epoch, last).await?;
                }
                for row in rows {
                    after = row.position();
                    let frame = Frame::Row { position: after, stored: row.bytes().to_vec() };
                    stream.send(&frame, SEND_WAIT).await?;
                }
            }
            tokio::select! {
                () = sleep_until(heard + FOLLOWER_WAIT) => {
                    return Err(StreamError::Silent(FOLLOWER_WAIT));
                }
                frame = stream.next(FOLLOWER_WAIT) => match frame? {
                    Frame::Acknowledge { position } => {
                        heard = Instant::now();
                        acknowledged = position;
                        self.progress.lock().unpoisoned().acknowledged(member, position, self.now());
                    }
                    _ => return Ok(()),
                },
                _ = positions.changed() => {}
                _ = turns.changed() => {
                    // One after the other: both take the lock.
                    let reign = self.standing().reign();
                    if !self.has_member(member) {
                        return self.refuse(stream, Refusal::UnknownMember.into()).await;
                    }
                    if let Err(why) = self.may_serve() {
                        return self.refuse(stream, why.into()).await;
                    }
                    if reign.is_some_and(|reign| reign.epoch != epoch) {
                        // It begins anew, in the epoch that there is now.
                        return Ok(());
                    }
                }
                _ = beat.tick() => self.beat(stream, epoch, after).await?,
            }
        }
    }

    /// Says that this member is there, and where its feed ends: not before `least`.
    async fn beat(
        &self,
        stream: &mut MemberStream,
        epoch: u64,
        least: u64,
    ) -> Result<(), StreamError> {
        let head = self.parts.directory.position().unwrap_or(least);
        let beat = Heartbeat { head, epoch, unix_us: now_unix_us(), contents: None };
        stream.send(&Frame::Heartbeat(beat), SEND_WAIT).await
    }

    /// Says no, and the highest reign that this member has heard of.
    pub(super) async fn refuse(
        &self,
        stream: &mut MemberStream,
        why: Refused,
    ) -> Result<(), StreamError> {
        let heard = self.standing().highest();
        stream.send(&Frame::Answer(Refused { heard, ..why }.answer()), SEND_WAIT).await
    }

    /// Some rows behind a position, in their order; none if there are no more.
    async fn rows(&self, after: u64) -> Result<Vec<RawRow>, Error> {
        let store = self.parts.store.clone();
        let read = spawn_blocking(move || {
            let read = store.read()?;
            let (mut rows, mut bytes) = (Vec::new(), 0);
            for row in read.view().feed_after(after)?.raw().take(PIECE_ROWS) {
                let row = row?;
                bytes += row.bytes().len();
                rows.push(row);
                if bytes >= PIECE_BYTES {
                    break;
                }
            }
            Ok(rows)
        });
        read.await.unwrap_or_else(|why| Err(Error::Failed { why: why.to_string() }))
    }
}
