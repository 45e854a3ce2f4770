//! A member that follows: rows come from the writer and are applied, one transaction each.

use super::limits::SEND_WAIT;
use super::node::Node;
use super::row_header::{header, is_cluster_row, is_of_entries};
use super::stream::{MemberStream, StreamError};
use keyway_cluster::follower::{Follower, SILENCE, Step, Stop};
use keyway_cluster::message::{Answer, Digest, Frame, History, LARGE_FRAME, Place, Refusal};
use keyway_folder::member;
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::ApplyError;
use keyway_server::log::Severity;
use keyway_store::{Error, RawRow};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How long a row waits that the store does not take now.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why a connection to a writer is over.
enum Over {
    /// It broke, or the writer sent it away.
    Lost(String),
    /// This member does not follow any more, or cannot until it is mended.
    Stopped,
    /// This member's store is not where it was when it asked: it asks anew.
    Moved,
}

impl From<StreamError> for Over {
    fn from(why: StreamError) -> Over {
        Over::Lost(why.to_string())
    }
}

impl Node {
    /// Follows whenever this member is a follower.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut turns = self.turns();
        loop {
            while !self.follows_writer() {
                if turns.changed().await.is_err() {
                    return;
                }
            }
            match self.begin().await {
                Ok(follower) => *self.follower.lock().unpoisoned() = Some(follower),
                Err(why) => {
                    self.say(Severity::Error, &why.to_string());
                    sleep(AGAIN_AFTER).await;
                    continue;
                }
            }
            while self.follows_writer() && !self.is_overtaken() && self.with(|_| ()).is_ok() {
                let mut once = pin!(self.follow_once());
                loop {
                    tokio::select! {
                        () = &mut once => break,
                        // A row that is being applied is applied to its end.
                        _ = turns.changed() => if !self.follows_writer() || self.is_overtaken() { break },
                    }
                }
            }
            *self.follower.lock().unpoisoned() = None;
            self.trouble.lock().unpoisoned().take();
        }
    }

    /// Whether it has stopped, and has heard of another writer since: that one may be followed.
    fn is_overtaken(&self) -> bool {
        let highest = self.standing().highest();
        let follower = self.follower.lock().unpoisoned();
        follower.as_ref().is_some_and(|it| it.stopped().is_some() && it.highest() < highest)
    }

    async fn begin(&self) -> Result<Follower, Failure> {
        // It may have written until now.
        self.commit_all().await?;
        let own = member::read(&self.parts.folder)?;
        let urls = own.map(|own| own.follow).unwrap_or_default();
        let place = self.place()?;
        let standing = self.standing();
        let mut follower = Follower::new(standing.own(), place, standing.row(), urls, self.now());
        standing.highest().into_iter().for_each(|reign| follower.heard(reign));
        Ok(follower)
    }

    /// Works with the follower, if there is one.
    fn with<R>(&self, work: impl FnOnce(&mut Follower) -> R) -> Result<R, Over> {
        self.follower.lock().unpoisoned().as_mut().map(work).ok_or(Over::Stopped)
    }

    /// One step: a connection to its end, or a pause.
    async fn follow_once(self: &Arc<Self>) {
        let Ok(step) = self.with(|follower| follower.step(self.now())) else { return };
        match step {
            Step::Connect(url) => {
                let over = match self.connect(&url).await {
                    Ok(stream) => self.follow_on(stream).await.err(),
                    Err(why) => Some(Over::Lost(why.to_string())),
                };
                match over {
                    Some(Over::Lost(why)) => {
                        self.note_lost(&why);
                        let _ = self.with(|follower| follower.lost(why, self.now()));
                    }
                    Some(Over::Moved) => {
                        *self.follower.lock().unpoisoned() = None;
                        sleep(AGAIN_AFTER).await;
                    }
                    Some(Over::Stopped) | None => {}
                }
            }
            Step::Close => {
                let why = "the writer was silent".to_owned();
                let _ = self.with(|follower| follower.lost(why, self.now()));
            }
            Step::Wait(until) => sleep(until.saturating_sub(self.now())).await,
            Step::Stopped => std::future::pending().await,
        }
    }

    /// Says in the log why a connection ended, if rows came over it.
    fn note_lost(&self, why: &str) {
        if self.with(|follower| follower.is_following()).unwrap_or(false) {
            self.say(Severity::Warning, &format!("the writer is not followed any more: {why}"));
        }
    }

    /// Says in the log that another process is this member too, once for all tries in a row.
    fn note_twin(&self, answer: &Answer, error_before: Option<&str>) {
        if let Answer::Refused { reason: reason @ Refusal::Twin, .. } = answer {
            let text = reason.to_string();
            if error_before != Some(&text) {
                self.say(Severity::Error, &text);
            }
        }
    }

    /// Has the follower hear of the highest reign that this member knows.
    ///
    /// # Errors
    /// If it did not know of it: the member that it follows does not write any more, and is to hear of that too.
    fn tell_follower(&self) -> Result<(), Over> {
        let Some(highest) = self.standing().highest() else { return Ok(()) };
        let is_news = self.with(|follower| {
            let is_news = follower.highest() < Some(highest);
            follower.heard(highest);
            is_news
        })?;
        match is_news {
            true => Err(Over::Lost(format!("member {} writes by now", highest.writer))),
            false => Ok(()),
        }
    }

    /// The next frame, as long as its sender is of the highest reign that this member knows.
    async fn next_frame(
        &self,
        stream: &mut MemberStream,
        turns: &mut watch::Receiver<u64>,
    ) -> Result<Frame, Over> {
        let mut next = pin!(stream.next(SILENCE));
        loop {
            tokio::select! {
                frame = &mut next => return Ok(frame?),
                _ = turns.changed() => self.tell_follower()?,
            }
        }
    }

    /// Follows over a connection, to its end.
    async fn follow_on(self: &Arc<Self>, mut stream: MemberStream) -> Result<(), Over> {
        let mut turns = self.turns();
        // The request has it.
        let _ = self.tell_follower();
        let request = self.with(|follower| follower.connected(self.now()))?;
        stream.send(&Frame::Request(request), SEND_WAIT).await?;
        stream.allow(LARGE_FRAME);
        let (mut is_told, mut ready) = (false, None);
        loop {
            let frame = match ready.take() {
                Some(frame) => frame,
                None => self.next_frame(&mut stream, &mut turns).await?,
            };
            match frame {
                Frame::Answer(answer) => {
                    let error = self.with(|it| it.last_error().map(str::to_owned))?;
                    let answered = self.with(|follower| follower.answered(&answer, self.now()))?;
                    let heard = self.with(|follower| follower.highest())?;
                    self.heard(heard);
                    self.stopped_by(answered)?;
                    if !self.with(|follower| follower.is_asking())? {
                        self.note_twin(&answer, error.as_deref());
                        return Ok(());
                    }
                    if self.with(|follower| follower.is_following())? && !is_told {
                        is_told = true;
                        self.say(Severity::Info, "the writer is followed");
                    }
                }
                Frame::Row { position, stored } => {
                    let mut rows = vec![self.received(position, &stored)?];
                    // What has come while the last ones were written goes to the disk with one sync.
                    ready = loop {
                        match stream.ready()? {
                            Some(Frame::Row { position, stored }) => {
                                rows.push(self.received(position, &stored)?);
                            }
                            other => break other,
                        }
                    };
                    let position = rows.last().map_or(position, RawRow::position);
                    for together in
                        rows.chunk_by(|one, next| is_of_entries(one) && is_of_entries(next))
                    {
                        self.apply(together.into()).await?;
                    }
                    stream.send(&Frame::Acknowledge { position }, SEND_WAIT).await?;
                }
                Frame::Heartbeat(heartbeat) => {
                    let fits = self.with(|follower| follower.heartbeat(&heartbeat, self.now()))?;
                    self.stopped_by(fits)?;
                    let position = self.with(|follower| follower.place().position)?;
                    stream.send(&Frame::Acknowledge { position }, SEND_WAIT).await?;
                }
                _ => return Err(Over::Lost("the writer sent what is not asked for".into())),
            }
        }
    }

    /// A row that came, if it is the next one.
    fn received(self: &Arc<Self>, position: u64, stored: &[u8]) -> Result<RawRow, Over> {
        let row = RawRow::parse(position, stored)
            .map_err(|why| Over::Lost(format!("position {position}: {why}")))?;
        let header = header(&row).map_err(|why| Over::Lost(why.to_string()))?;
        let fits = self.with(|follower| follower.row(&header, self.now()))?;
        self.stopped_by(fits)?;
        Ok(row)
    }

    fn stopped_by(self: &Arc<Self>, outcome: Result<(), Stop>) -> Result<(), Over> {
        outcome.map_err(|why| {
            self.say(Severity::Error, &why.to_string());
            // Clients of one that was replaced are told so.
            self.settle();
            Over::Stopped
        })
    }

    /// Applies rows with one commit, and takes what one changes of the cluster. One that does so comes alone.
    async fn apply(self: &Arc<Self>, rows: Arc<[RawRow]>) -> Result<(), Over> {
        let Some(last) = rows.last() else { return Ok(()) };
        let (position, digest) = (last.position(), Digest(last.digest().0));
        let is_of_cluster = last.changes().any(is_cluster_row);
        loop {
            let turn = self.applying.lock().await;
            if !self.follows_writer() {
                return Err(Over::Stopped);
            }
            let (directory, next) = (self.parts.directory.clone(), rows.clone());
            // It goes on to its end also if this future is dropped: the turn goes with it.
            let applied = spawn_blocking(move || directory.apply(next)).await;
            drop(turn);
            let why = match applied {
                Ok(Ok(())) => break,
                // One of them is the reason, and those before it are well.
                Ok(Err(why)) if rows.len() > 1 && !why.may_pass() => {
                    for row in rows.iter() {
                        Box::pin(self.apply(Arc::new([row.clone()]))).await?;
                    }
                    return Ok(());
                }
                Ok(Err(ApplyError::Store(Error::ContentsDiffer))) => {
                    let stopped = self.with(|follower| follower.differs(position))?;
                    return self.stopped_by(Err(stopped));
                }
                Ok(Err(ApplyError::Store(Error::NotNext { .. }))) => return Err(Over::Moved),
                Ok(Err(why)) if why.may_pass() => why.to_string(),
                Ok(Err(why)) => {
                    let why = format!("position {position} cannot be applied: {why}");
                    self.trouble.lock().unpoisoned().replace(why.clone());
                    return Err(Over::Lost(why));
                }
                Err(why) => why.to_string(),
            };
            self.trouble.lock().unpoisoned().replace(why);
            sleep(AGAIN_AFTER).await;
        }
        self.trouble.lock().unpoisoned().take();
        if is_of_cluster {
            self.look();
        }
        let (reign, row) = {
            let standing = self.standing();
            (standing.reign(), standing.row().cloned().filter(|_| is_of_cluster))
        };
        let history = History(self.parts.store.incarnation());
        self.with(|follower| {
            follower.applied(Place {
                history,
                epoch: reign.map_or(0, |reign| reign.epoch),
                writer: reign.map(|reign| reign.writer),
                position,
                digest,
            });
            if row.is_some() {
                follower.row_applied(row.as_ref());
            }
        })
    }
}
