//! A running member's work for others, and its work of its own: following, the way to the writer, questions to members.

use super::limits::{SEND_WAIT, TOLD_WAIT};
use super::node::{Node, fenced};
use super::service::{Boxed, Follow, MemberService, Refused};
use super::stream::MemberStream;
use keyway_cluster::message::{
    Answer, Contents, Digest, FollowerStatus, Frame, MemberId, Reign, Request, RoleName, Status,
};
use keyway_cluster::role::{ASK_EVERY, Role, STILL_MIN};
use keyway_folder::member;
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::log::Severity;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsStream;

/// How often a member looks at its row and its clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it is kept how far the members are, so that rows are kept for them.
const KEEP_EVERY: Duration = Duration::from_secs(30);
/// The pauses before the way to the writer is tried again, the first and the longest: one that has just begun to write
/// may take no requests for a moment.
const AGAIN_AFTER: Duration = Duration::from_millis(25);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(1);

impl MemberService for Node {
    fn may_add(&self) -> Result<(), Refused> {
        Node::may_write(self).map_err(Refused::from)
    }

    fn members_changed(self: Arc<Self>) {
        self.look();
    }

    fn status(&self) -> Boxed<Result<Status, Refused>> {
        let status = self.own_status().map_err(Refused::because);
        Box::pin(async move { status })
    }

    fn promote(self: Arc<Self>, force: bool) -> Boxed<Result<u64, Refused>> {
        Box::pin(async move { Node::promote(&self, force).await.map_err(Refused::because) })
    }

    fn prepare(self: Arc<Self>, stream: MemberStream, reign: Reign) -> Boxed<()> {
        Box::pin(self.keep_promise(stream, reign))
    }

    fn follow(self: Arc<Self>, stream: MemberStream, asked: Follow) -> Boxed<()> {
        Box::pin(self.feed(stream, asked))
    }

    fn forward(self: Arc<Self>, mut stream: MemberStream, member: MemberId) -> Boxed<()> {
        Box::pin(async move {
            if let Err(why) = Node::may_write(&self) {
                // It may be gone.
                let _ = self.refuse(&mut stream, why.into()).await;
                return;
            }
            if stream.send(&Frame::Answer(Answer::Forwarding {}), SEND_WAIT).await.is_err() {
                return;
            }
            let (stream, _) = stream.into_parts();
            let Ok(from) = stream.get_ref().0.peer_addr() else { return };
            if let TlsStream::Server(stream) = stream {
                tokio::select! {
                    () = self.parts.server.serve_member(stream, from) => {}
                    () = self.is_removed(member) => {}
                }
            }
        })
    }
}

impl Node {
    /// Whether the cluster has another one as a member.
    pub(super) fn has_member(self: &Arc<Self>, member: MemberId) -> bool {
        let is_known = || self.standing().row().is_some_and(|row| row.member(member).is_some());
        // It may have joined just now.
        is_known() || {
            self.look();
            is_known()
        }
    }

    /// Resolves when another one is no member any more.
    async fn is_removed(self: &Arc<Self>, member: MemberId) {
        let mut turns = self.turns();
        while self.has_member(member) {
            if turns.changed().await.is_err() {
                return;
            }
        }
    }

    /// Works until it is dropped.
    pub async fn run(self: Arc<Self>) {
        tokio::join!(
            self.clone().follow(),
            self.clone().stay_in_reach(),
            self.clone().ask_others(),
            self.clone().ask_when_still(),
            self.clone().say_it_runs(),
            self.clone().look_around(),
            self.clone().stay_as_configured(),
        );
    }

    /// Keeps the way to the writer open while this member follows.
    async fn stay_in_reach(self: Arc<Self>) {
        let mut turns = self.turns();
        let mut pause = AGAIN_AFTER;
        loop {
            let (role, url, own) = {
                let standing = self.standing();
                (standing.role(), standing.writer_url().map(str::to_owned), standing.own())
            };
            let Some(url) = url.filter(|_| role == Role::Follower) else {
                *self.not_forwarding.lock().unpoisoned() = None;
                if turns.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let forwarding = async {
                let why_not = match self.ask(&url, Request::Forward { member: own }).await {
                    Ok((stream, Answer::Forwarding {})) => {
                        *self.not_forwarding.lock().unpoisoned() = None;
                        // Requests that were on their way are told so.
                        let _ = self.forwarder.run(stream.into_parts().0).await;
                        pause = AGAIN_AFTER;
                        None
                    }
                    Ok((_, Answer::Refused { text, .. })) => Some(format!("{url}: {text}")),
                    Ok(_) => None,
                    Err(why) => Some(why.to_string()),
                };
                *self.not_forwarding.lock().unpoisoned() = why_not
                    .map(|why| format!("changes of clients do not come to the writer: {why}"));
                sleep(pause).await;
                pause = (pause * 2).min(AGAIN_AFTER_MAX);
            };
            let other_writer = async {
                let mut turns = self.turns();
                loop {
                    let is_it = {
                        let standing = self.standing();
                        standing.role() == Role::Follower && standing.writer_url() == Some(&url)
                    };
                    if !is_it || turns.changed().await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = forwarding => {}
                () = other_writer => pause = AGAIN_AFTER,
            }
        }
    }

    /// Asks the members that do not follow how they are, while this one writes or has written.
    async fn ask_others(self: Arc<Self>) {
        let mut ticks = interval(ASK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut fed = self.fed.subscribe();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // One that has gone may write itself by now.
                _ = fed.changed() => {}
            }
            let asked_at = self.now();
            let following = fed.borrow_and_update().clone();
            let asked: Vec<String> = {
                let standing = self.standing();
                let asked = standing.to_ask(|member| following.contains(&member));
                asked.map(|member| member.url.clone()).collect()
            };
            for answer in self.answers(asked).await {
                if let Answer::Status(status) = answer {
                    self.told(&status, asked_at);
                }
            }
        }
    }

    /// Says again and again that it runs, so that it can tell when it has stood still.
    async fn say_it_runs(self: Arc<Self>) {
        let mut ticks = interval(STILL_MIN / 4);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.standing().tick(self.now());
        }
    }

    /// Asks all members how they are when commits wait for that: this one writes, and has stood still.
    async fn ask_when_still(self: Arc<Self>) {
        loop {
            self.asks.notified().await;
            let asked = self.now();
            let mut questions = JoinSet::new();
            for url in self.other_urls() {
                let node = self.clone();
                questions.spawn(async move {
                    if let Ok(Ok(status)) = timeout(TOLD_WAIT, node.status_at(&url)).await {
                        node.told(&status, asked);
                    }
                });
            }
            while questions.join_next().await.is_some() {}
            // One that has promised another one to let it begin is asked again.
            sleep(AGAIN_AFTER).await;
        }
    }

    /// Tells all other members which reign it is, as far as they can be reached: one of them may not know that this server
    /// writes, and have no way to hear of it.
    pub(super) async fn tell_all(self: &Arc<Self>) {
        let urls = self.other_urls();
        let mut told = JoinSet::new();
        for url in urls {
            let node = self.clone();
            told.spawn(async move { timeout(TOLD_WAIT, node.tell(&url)).await });
        }
        while told.join_next().await.is_some() {}
    }

    /// Tells a member, which refuses to be followed by a writer, and has heard of it by then.
    async fn tell(&self, url: &str) {
        let Ok(place) = self.place() else { return };
        let (member, heard) = {
            let standing = self.standing();
            (standing.own(), standing.highest())
        };
        // One that is not reached is told later.
        let _ = self.ask(url, Request::Follow { member, place, heard }).await;
    }

    /// Takes what a member says of itself, and tells it what it does not know.
    fn told(self: &Arc<Self>, status: &Status, asked: Duration) {
        let highest = self.standing().highest();
        if let Some(url) = status.url.clone().filter(|_| status.heard < highest) {
            let node = self.clone();
            tokio::spawn(async move { timeout(TOLD_WAIT, node.tell(&url)).await });
        }
        self.heard(status.heard);
        let Ok(place) = self.place() else { return };
        let (before, after) = {
            let mut standing = self.standing();
            let before = standing.role_name();
            standing.answered(status, &place, asked, self.now());
            (before, standing.role_name())
        };
        self.acknowledges.notify_all();
        if before != after {
            self.settle();
        }
    }

    /// Looks at the row, which may have been changed here, and at the time; keeps how far members are.
    async fn look_around(self: Arc<Self>) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut kept = Duration::ZERO;
        loop {
            ticks.tick().await;
            let node = self.clone();
            let looked = spawn_blocking(move || {
                node.look();
                let (before, after) = {
                    let mut standing = node.standing();
                    let before = standing.role_name();
                    standing.tick(node.now());
                    (before, standing.role_name())
                };
                if before != after {
                    node.settle();
                }
                node.keep_contents();
                if node.now().saturating_sub(kept) < KEEP_EVERY {
                    return kept;
                }
                node.keep_progress();
                node.now()
            });
            kept = looked.await.unwrap_or(kept);
        }
    }

    /// Has the store keep a digest of its entries, by which members can tell that they hold the same.
    fn keep_contents(&self) {
        if self.role() == Role::Alone {
            return;
        }
        let store = &self.parts.store;
        let is_kept = store.read().and_then(|read| Ok(read.view().contents()?.is_some()));
        if matches!(is_kept, Ok(false))
            && let Err(why) = store.write_now(|write| write.keep_contents())
        {
            self.say(Severity::Warning, &format!("no digest of the entries is kept: {why}"));
        }
    }

    /// Keeps how far the members are, as readers of the feed; those that were silent for too long are none any more.
    fn keep_progress(&self) {
        if self.role() != Role::Writer {
            return;
        }
        let (now, limit) = (self.now(), self.settings().member_age_max);
        let all: Vec<_> = self.progress.lock().unpoisoned().all().collect();
        for (member, known) in &all {
            let name = reader_name(*member);
            let kept = match known.position {
                _ if now.saturating_sub(known.heard) >= limit => {
                    // One that is not there is forgotten already.
                    let _ = self.parts.directory.forget_feed_reader(&name);
                    Ok(())
                }
                Some(position) => self.parts.directory.note_feed_reader(&name, position),
                None => Ok(()),
            };
            if let Err(why) = kept {
                let text = format!("it is not kept how far member {member} is: {why}");
                self.say(Severity::Warning, &text);
            }
        }
        // Members that were removed.
        for reader in self.parts.directory.feed_readers().unwrap_or_default() {
            let is_gone = reader.name.starts_with(READER)
                && all.iter().all(|(member, _)| reader_name(*member) != reader.name);
            if is_gone {
                let _ = self.parts.directory.forget_feed_reader(&reader.name);
            }
        }
    }

    /// How it is.
    ///
    /// # Errors
    /// If its store cannot be read.
    pub fn own_status(&self) -> Result<Status, Failure> {
        let place = self.place()?;
        let now = self.now();
        let own = member::read(&self.parts.folder)?;
        let (lag, is_connected, error, stopped) = {
            let follower = self.follower.lock().unpoisoned();
            let follower = follower.as_ref();
            let error = follower.and_then(|it| it.last_error().map(str::to_owned));
            let stopped = follower.and_then(|it| it.stopped().cloned());
            let is_following = follower.is_some_and(|it| it.is_following());
            (follower.map(|it| it.lag(now)), is_following, error, stopped)
        };
        let waits_for_lease = self.is_leased() && !self.is_open();
        let trouble = self.trouble.lock().unpoisoned().clone();
        let (trouble, diverged_from) = {
            let leased = self.leased.lock().unpoisoned();
            (leased.trouble().cloned().or(trouble), leased.diverged_from)
        };
        let mut behind = lag.and_then(|lag| lag.time);
        let mut is_connected = is_connected;
        if self.is_leased() {
            // Its changes come from etcd, which it asks again and again whether there are more.
            behind = self.had_all.lock().unpoisoned().map(|at| now.saturating_sub(at));
            is_connected = behind.is_some() && trouble.is_none();
        }
        let mut standing = self.standing();
        let refused = standing.may_write(now).err();
        let is_fenced = standing.role() == Role::Fenced && !self.has_etcd;
        let refused = refused.filter(|_| is_fenced);
        let refused = refused.map(|why| fenced(&standing, &why, stopped.as_ref()));
        if self.has_etcd && standing.row().is_some() && standing.highest() > standing.reign() {
            // A later writer is known, and nothing of it has come.
            (behind, is_connected) = (None, false);
        }
        let is_connected = is_connected && standing.may_follow();
        let follows = is_connected || standing.role() == Role::Follower;
        let row = standing.row();
        let may_lack = matches!(standing.role(), Role::Follower | Role::Fenced) && !self.has_etcd;
        let lacks_etcd = may_lack && row.is_some_and(|row| row.etcd.is_some());
        let lacks_etcd = lacks_etcd.then(|| {
            "the writer had a lease in etcd when it began, and cluster.etcd is not set here: set it as on the others; \
             where no server has it any more, keyway cluster promote --force begins without it"
                .to_owned()
        });
        let apart = self.not_forwarding.lock().unpoisoned().clone();
        let apart = apart.or_else(|| self.not_as_configured.lock().unpoisoned().clone());
        let name_of = |id: MemberId| row.and_then(|row| row.member(id)).map(|it| it.name.clone());
        let progress = self.progress.lock().unpoisoned();
        let is_followed = standing.role() != Role::Follower;
        let followers = progress.all().filter(|_| is_followed).filter_map(|(member, known)| {
            Some(FollowerStatus {
                member,
                name: name_of(member).unwrap_or_default(),
                position: known.position?,
                heard_seconds: now.saturating_sub(known.heard).as_secs_f64(),
            })
        });
        let contents = self.parts.directory.contents().ok().flatten();
        Ok(Status {
            role: match standing.role_name() {
                RoleName::Writer | RoleName::Alone if waits_for_lease => RoleName::Starting,
                role => role,
            },
            member: standing.own(),
            name: own.map(|own| own.name).or(name_of(standing.own())).unwrap_or_default(),
            url: row.and_then(|row| row.member(standing.own())).map(|it| it.url.clone()),
            epoch: place.epoch,
            writer: row.map(|row| row.writer),
            heard: standing.highest(),
            is_connected,
            position: place.position,
            digest: place.digest,
            head: place.position.saturating_add(lag.map_or(0, |lag| lag.changes)),
            lag_changes: match standing.role() {
                // With etcd it has all that is there, or does not know.
                _ if follows && self.has_etcd => behind.map(|_| 0),
                _ if follows => behind.and(lag).map(|lag| lag.changes),
                Role::Writer | Role::Alone => Some(0),
                Role::Follower | Role::Fenced => None,
            },
            lag_seconds: match standing.role() {
                _ if follows => behind.map(|time| time.as_secs_f64()),
                Role::Writer | Role::Alone => Some(0.0),
                Role::Follower | Role::Fenced => None,
            },
            last_error: [trouble, lacks_etcd, error, refused, apart].into_iter().flatten().next(),
            followers: followers.collect(),
            contents: contents
                .map(|(position, digest)| Contents { position, digest: Digest(digest.0) }),
            rules: Some(self.settings().rules),
            diverged_from: diverged_from.map(|store| store.0),
            promised: standing.promised(now),
            has_stopped: stopped.is_some(),
        })
    }
}

/// How the names of members begin among the readers of the feed.
const READER: &str = "member-";

fn reader_name(member: MemberId) -> String {
    format!("{READER}{member}")
}
