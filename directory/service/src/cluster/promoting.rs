//! A promotion: the members are asked to let it happen, what they have is waited for, and the next epoch begins.

use super::limits::{PREPARE_AGAIN_EVERY, SEND_WAIT, TOLD_WAIT};
use super::node::{Node, name_of};
use super::row;
use super::stream::MemberStream;
use keyway_cluster::follower::{Follower, SILENCE, Stop};
use keyway_cluster::message::{
    Answer, ClusterRow, MemberId, Refusal, Reign, Request, RoleName, Status,
};
use keyway_cluster::promise::{PROMISE_MAX, PromiseId};
use keyway_cluster::role::NotPromoted;
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::log::Severity;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

/// How long a promotion waits for what another member has.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);
/// How long a promotion waits for the end of a writer that is being stopped, how often it looks, and how often it asks
/// whether that answers again.
const FEED_WAIT: Duration = SILENCE.saturating_add(Duration::from_secs(4));
/// See [`FEED_WAIT`].
const FEED_LOOK_EVERY: Duration = Duration::from_millis(20);
/// See [`FEED_WAIT`].
const FEED_ASK_EVERY: Duration = Duration::from_secs(1);

/// What this member has promised to itself or to another one, until this is dropped.
struct Promised<'n> {
    node: &'n Arc<Node>,
    id: PromiseId,
}

impl Promised<'_> {
    /// # Errors
    /// Why not.
    fn begin(node: &Arc<Node>, reign: Reign) -> Result<Promised<'_>, Refusal> {
        let id = node.standing().promise(reign, node.now())?;
        node.settle();
        Ok(Promised { node, id })
    }
}

impl Drop for Promised<'_> {
    fn drop(&mut self) {
        self.node.standing().release(self.id);
        self.node.settle();
    }
}

/// How a member is that promises to let this one begin, as long as the connection is there.
type Answered = (Box<Status>, Box<MemberStream>);

impl Node {
    /// Makes this server the writer: the first change of the next epoch says so. Returns the epoch. Without `force` all
    /// members that answer take no changes meanwhile, what they have comes here first, and it is refused where that does not
    /// come, where a member does not know this one, and while another one is promoted.
    ///
    /// # Errors
    /// Why it cannot be.
    pub async fn promote(self: &Arc<Self>, force: bool) -> Result<u64, Failure> {
        if self.is_leased() {
            // Its row would not be in etcd, and the holder of the lease would be fenced by it.
            return Err(Failure::new(
                "the lease in etcd says which server writes ([cluster] etcd): stop the one that does, and another one takes it",
            ));
        }
        if self.was_removed() {
            // It and the one that writes would never hear of each other.
            return Err(Failure::new(NotPromoted::NoMember));
        }
        let stills = self.standing().stills(self.now());
        let near = match force {
            true => Vec::new(),
            false => self.looks_well().await?,
        };
        let next = self.next_row()?;
        let reign = Reign { epoch: next.epoch, writer: next.writer };
        let promised = Promised::begin(self, reign).map_err(|why| self.is_beside(&why))?;
        // Dropped at the end: the members keep their promises until they have heard of the new reign.
        let (statuses, promises) = self.prepare(reign, near).await?;
        self.is_furthest(&statuses).await?;
        let epoch = self.begin_epoch(reign, promised.id, stills).await?;
        self.tell_all().await;
        drop((promises, promised));
        Ok(epoch)
    }

    /// That nothing speaks against a promotion, before others are asked to take no changes. Returns the members that answer.
    async fn looks_well(self: &Arc<Self>) -> Result<Vec<MemberId>, Failure> {
        let until = Instant::now() + FEED_WAIT;
        let mut answers = self.answers(self.other_urls()).await;
        while self.is_fed_by_one_that_ends(&answers) {
            if Instant::now() >= until {
                return Err(Failure::new(
                    "the writer does not answer, and sends its changes still: it is being stopped, perhaps; try again when it \
                     has ended, or add --force",
                ));
            }
            self.feed_ends().await;
            answers = self.answers(self.other_urls()).await;
        }
        let says_so = |answer: &Answer| {
            matches!(answer, Answer::Refused { reason: Refusal::UnknownMember, .. })
        };
        if answers.iter().any(says_so) {
            return Err(Failure::new(
                "a member that answers does not know this server: it was removed, and can join again with a token; or that \
                 member has not heard yet that this one has joined, and then add --force",
            ));
        }
        let had_lease = self.standing().row().is_some_and(|row| row.etcd.is_some());
        if had_lease {
            return Err(Failure::new(
                "the writer had a lease in etcd when it began, and may hold it still, while cluster.etcd is not set here: set \
                 it as on the others; where no server has it any more, add --force",
            ));
        }
        let statuses: Vec<Status> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                Answer::Status(status) => Some(*status),
                _ => None,
            })
            .collect();
        self.is_furthest(&statuses).await?;
        // The next epoch is above all that members speak of.
        statuses.iter().for_each(|status| self.heard(status.heard));
        Ok(statuses.iter().map(|status| status.member).collect())
    }

    /// The row that would make it the writer now.
    fn next_row(&self) -> Result<ClusterRow, Failure> {
        let last = self.place()?.position;
        self.standing().promoted(last).map_err(Failure::new)
    }

    /// Asks members to let a reign of this one begin, and returns what those say that do. Changes wait meanwhile: members
    /// that are not in reach are not asked again.
    ///
    /// # Errors
    /// If another one is promoted at this moment.
    async fn prepare(
        self: &Arc<Self>,
        reign: Reign,
        near: Vec<MemberId>,
    ) -> Result<(Vec<Status>, Vec<Box<MemberStream>>), Failure> {
        let urls: Vec<String> = {
            let standing = self.standing();
            let members = standing.row().into_iter().flat_map(|row| &row.members);
            let asked = members.filter(|member| near.contains(&member.id));
            asked.map(|member| member.url.clone()).collect()
        };
        let mut questions = JoinSet::new();
        for url in urls {
            let node = self.clone();
            questions.spawn(async move {
                timeout(TOLD_WAIT, node.prepared(&url, reign)).await.unwrap_or(Ok(None))
            });
        }
        let (mut statuses, mut streams) = (Vec::new(), Vec::new());
        while let Some(asked) = questions.join_next().await {
            if let Some((status, stream)) = asked.map_err(Failure::new)?? {
                statuses.push(*status);
                streams.push(stream);
            }
        }
        Ok((statuses, streams))
    }

    /// Asks one member; `None` if it does not answer, or is of a version that is not asked. One that has promised another
    /// member is asked again for a while: that one may give way.
    ///
    /// # Errors
    /// If another one is promoted at this moment.
    async fn prepared(&self, url: &str, reign: Reign) -> Result<Option<Answered>, Failure> {
        let until = Instant::now() + TOLD_WAIT - 2 * PREPARE_AGAIN_EVERY;
        loop {
            match self.ask(url, Request::Prepare { reign }).await {
                Ok((stream, Answer::Promised(status))) => {
                    return Ok(Some((status, Box::new(stream))));
                }
                Ok((_, Answer::Refused { reason: reason @ Refusal::Promised { to }, .. })) => {
                    // Of the two the one with the lower number goes on.
                    let gives_way = to < reign.writer;
                    if gives_way || Instant::now() >= until {
                        return Err(self.is_beside(&reason));
                    }
                    sleep(PREPARE_AGAIN_EVERY).await;
                }
                Ok((_, Answer::Refused { reason: Refusal::NotWriter { .. }, heard, .. }))
                    if heard.is_some_and(|heard| heard.epoch >= reign.epoch) =>
                {
                    return Err(Failure::new(format!(
                        "{url} knows of epoch {} already: another member was promoted just now; look at keyway cluster status \
                         --all, and try again if this one is to write instead",
                        reign.epoch
                    )));
                }
                _ => return Ok(None),
            }
        }
    }

    /// The words for a promotion that another one is in the way of.
    fn is_beside(&self, why: &Refusal) -> Failure {
        let Refusal::Promised { to } = why else { return Failure::new(why) };
        Failure::new(format!(
            "{} is being promoted at this moment: one of both can be; look at keyway cluster status --all, and try again if \
             this one is to write instead",
            name_of(&self.standing(), *to)
        ))
    }

    /// Begins a reign that this member has promised itself. It had stood still so often when it began to ask the others.
    async fn begin_epoch(
        self: &Arc<Self>,
        reign: Reign,
        promise: PromiseId,
        stills: u64,
    ) -> Result<u64, Failure> {
        let _turn = self.applying.lock().await;
        let row = self.next_row()?;
        let (may_begin, has_run) = {
            let (mut standing, now) = (self.standing(), self.now());
            let has_run = standing.stills(now) == stills;
            (has_run && row.epoch == reign.epoch && standing.may_begin(promise, now), has_run)
        };
        if !has_run {
            return Err(Failure::new(
                "this server stood still while it asked the others, for 2 seconds or more: what they have said counts no more; \
                 try again",
            ));
        }
        if !may_begin {
            return Err(Failure::new(
                "another member is being promoted at this moment, or was just now: look at keyway cluster status --all, and \
                 try again if this one is to write instead",
            ));
        }
        let last = self.place()?.position;
        let (store, begins) = (self.parts.store.clone(), row.clone());
        let begun = spawn_blocking(move || row::begin(&store, last, &begins));
        let begun = begun.await.map_err(Failure::new)?;
        begun.map_err(|why| Failure::new(format!("the store does not take it: {why}")))?;
        let epoch = row.epoch;
        self.standing().applied(Some(row));
        self.say(Severity::Info, &format!("this server writes from now on, in epoch {epoch}"));
        self.settle();
        Ok(epoch)
    }

    /// Promises another member that it may begin a reign, and keeps that while its connection is there.
    pub(super) async fn keep_promise(self: Arc<Self>, mut stream: MemberStream, reign: Reign) {
        if self.is_leased() {
            // etcd decides.
            let writer_url = self.standing().writer_url().map(str::to_owned);
            let _ = self.refuse(&mut stream, Refusal::NotWriter { writer_url }.into()).await;
            return;
        }
        let promised = match Promised::begin(&self, reign) {
            Ok(promised) => promised,
            Err(why) => {
                // It may be gone.
                let _ = self.refuse(&mut stream, why.into()).await;
                return;
            }
        };
        let settled = self.commit_all().await;
        let answer = match settled.and_then(|()| self.own_status()) {
            Ok(status) => Answer::Promised(Box::new(status)),
            Err(why) => super::service::Refused::because(why).answer(),
        };
        if stream.answer(answer, SEND_WAIT).await.is_ok() {
            // Nothing more is sent, but for the end.
            let _ = stream.next(PROMISE_MAX).await;
        }
        drop(promised);
    }

    /// Whether the writer has said that this is no member any more.
    fn was_removed(&self) -> bool {
        self.stopped() == Some(Stop::Refused(Refusal::UnknownMember))
    }

    /// Whether rows may come still of a writer that is stopped: it takes no connections any more, and may answer changes yet.
    fn is_fed_by_one_that_ends(&self, answers: &[Answer]) -> bool {
        let writer = self.standing().highest().map(|reign| reign.writer);
        let answers_too = |answer: &Answer| match answer {
            Answer::Status(status) => Some(status.member) == writer,
            _ => false,
        };
        self.is_fed() && !answers.iter().any(answers_too)
    }

    fn is_fed(&self) -> bool {
        self.follower.lock().unpoisoned().as_ref().is_some_and(Follower::is_following)
    }

    /// Waits until no rows come any more, for [`FEED_ASK_EVERY`] at most. The feed of a writer that hangs ends as well.
    async fn feed_ends(&self) {
        let ended = async {
            while self.is_fed() {
                sleep(FEED_LOOK_EVERY).await;
            }
        };
        let _ = timeout(FEED_ASK_EVERY, ended).await;
    }

    /// That no member which answers is further, or that what it has comes here soon.
    async fn is_furthest(self: &Arc<Self>, found: &[Status]) -> Result<(), Failure> {
        let own = self.place()?;
        // What a replaced writer has beside that counts no more.
        let counts = |one: &&Status| one.epoch >= own.epoch && one.role != RoleName::Fenced;
        let first = found.iter().filter(counts).max_by_key(|one| (one.epoch, one.position));
        let Some(first) = first else { return Ok(()) };
        let reaches = self.parts.directory.reaches(first.position, CATCH_UP_WAIT).await;
        let own = self.place()?;
        match (own.epoch >= first.epoch, reaches) {
            (true, true) => Ok(()),
            (true, false) => Err(Failure::new(format!(
                "{} is at position {}, and this server at {}: the {} changes between would be lost to the cluster; promote \
                 that one, or wait until this one has them, or add --force",
                first.name,
                first.position,
                own.position,
                first.position.saturating_sub(own.position)
            ))),
            (false, _) => Err(Failure::new(format!(
                "{} is in epoch {}, at position {}, and this server in epoch {}: changes of later epochs would be lost to \
                 the cluster; promote that one, or wait until this one follows, or add --force",
                first.name, first.epoch, first.position, own.epoch
            ))),
        }
    }
}
