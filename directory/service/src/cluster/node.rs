//! A running member: where it stands in its cluster, and where changes of its clients are made because of that.

use super::row;
use keyway_cluster::follower::{Follower, Stop};
use keyway_cluster::lease::StoreId;
use keyway_cluster::message::{ClusterRow, Digest, History, MemberId, Place, Refusal, Reign};
use keyway_cluster::role::{ASK_EVERY, Role, Standing};
use keyway_cluster::writer::Progress;
use keyway_engine::Engine;
use keyway_folder::data;
use keyway_folder::member::{self, Member};
use keyway_host::failure::Failure;
use keyway_ldapd::{Forwarder, Forwarding, ServerHandle, Writes};
use keyway_lock::Unpoisoned;
use keyway_server::log::{Log, Severity, Value};
use keyway_server::{BindsTaken, BindsTaker, Directory};
use keyway_store::{Error, Store};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;

/// The file in the data folder that has the highest reign that it has heard of.
const HEARD: &str = "cluster/heard.json";

/// How long the consequences of binds may take to come back from the server that writes.
const BINDS_WAIT: Duration = Duration::from_secs(30);

/// What a member is told by its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Whether a follower sends changes to the writer; else it refers clients there.
    pub forward: bool,
    /// How long a read waits for what its connection has written.
    pub own_writes_wait: Duration,
    /// Whether all connections of an address wait for what one of them has written.
    pub by_address: bool,
    /// For how long rows are kept for a member that is silent.
    pub member_age_max: Duration,
    /// Of the access rules of the configuration.
    pub rules: Digest,
    /// Where others are to reach this server, if that is configured.
    pub url: Option<String>,
    /// The naming contexts of the configuration.
    pub naming_contexts: Vec<String>,
}

/// The parts that a member is made of.
pub struct Parts {
    /// The data folder.
    pub folder: PathBuf,
    /// Its directory and the store below it.
    pub directory: Arc<Directory>,
    /// See there.
    pub store: Store,
    /// Does its TLS.
    pub engine: Engine,
    /// Hears of what happens.
    pub log: Log,
    /// Its server of clients, which makes changes where this one says.
    pub server: ServerHandle,
}

/// A member that runs. It is one in a cluster, or could begin one.
pub struct Node {
    pub(super) parts: Parts,
    settings: RwLock<NodeSettings>,
    began: Duration,
    standing: Mutex<Standing>,
    pub(super) progress: Mutex<Progress>,
    pub(super) forwarder: Forwarder,
    /// How it follows, while it does.
    pub(super) follower: Mutex<Option<Follower>>,
    /// What went wrong last while a row was applied.
    pub(super) trouble: Mutex<Option<String>>,
    /// Why the cluster is not as this server's configuration says.
    pub(super) not_as_configured: Mutex<Option<String>>,
    /// Why clients' changes do not come to the writer.
    pub(super) not_forwarding: Mutex<Option<String>>,
    /// Held while a row is applied, or while this becomes the writer.
    pub(super) applying: tokio::sync::Mutex<()>,
    /// Members whose connections rows are sent over now.
    pub(super) fed: watch::Sender<BTreeSet<MemberId>>,
    /// Whether a lease in etcd says which member writes.
    pub(super) has_etcd: bool,
    pub(super) leased: Mutex<Leased>,
    /// When it last had all that is in etcd.
    pub(super) had_all: Mutex<Option<Duration>>,
    /// Has the members asked that are to be asked.
    pub(super) asks: Notify,
    /// Whether commits may be acknowledged may have changed: goes with `standing`.
    pub(super) acknowledges: Condvar,
    /// Counts changes of where it stands.
    turns: watch::Sender<u64>,
}

/// The state of a member's work with etcd.
#[derive(Default)]
pub(super) struct Leased {
    /// It writes: it holds the lease, and has all that is in etcd.
    pub is_open: bool,
    /// Why it writes no more, until it writes again or has all that is in etcd.
    pub closed: Option<String>,
    /// That another member writes without this server's etcd.
    pub elsewhere: Option<String>,
    /// Why etcd did not do what it was asked for last.
    pub unreached: Option<String>,
    /// Why the changes in etcd cannot be applied here: a person has to look at it.
    pub stuck: Option<String>,
    /// That another process is this member too.
    pub twin: Option<String>,
    /// The member that keeps this one from the lease.
    pub held_up: Option<String>,
    /// The etcd whose last row contradicts what is here.
    pub diverged_from: Option<StoreId>,
}

impl Leased {
    /// What is wrong, if anything is: what a person has to mend first.
    pub fn trouble(&self) -> Option<&String> {
        let Leased { stuck, twin, elsewhere, unreached, held_up, closed, .. } = self;
        let all = [stuck, twin, elsewhere, unreached, held_up, closed];
        all.into_iter().find_map(Option::as_ref)
    }
}

impl Node {
    /// One of these parts, as its store and its folder say.
    ///
    /// # Errors
    /// If these cannot be read.
    pub fn new(parts: Parts, settings: NodeSettings, has_etcd: bool) -> Result<Arc<Node>, Failure> {
        let own = own(&parts.folder)?;
        let row = row::read(&parts.store)?;
        let heard = read_heard(&parts.folder)?;
        let id = own.as_ref().and_then(Member::number).map_or(MemberId(0), MemberId);
        let mut standing = Standing::new(id, row.filter(|_| own.is_some()), heard, Duration::ZERO);
        let had_lease = standing.row().is_some_and(|row| row.etcd.is_some());
        if had_lease && !has_etcd && standing.role() == Role::Writer {
            standing.stop(Refusal::Unleased);
        }
        let node = Arc::new(Node {
            parts,
            settings: RwLock::new(settings),
            began: clock(),
            standing: Mutex::new(standing),
            progress: Mutex::default(),
            forwarder: Forwarder::default(),
            follower: Mutex::default(),
            trouble: Mutex::default(),
            not_as_configured: Mutex::default(),
            not_forwarding: Mutex::default(),
            applying: tokio::sync::Mutex::default(),
            fed: watch::Sender::default(),
            has_etcd,
            leased: Mutex::default(),
            had_all: Mutex::default(),
            asks: Notify::new(),
            acknowledges: Condvar::new(),
            turns: watch::Sender::new(0),
        });
        let weak = Arc::downgrade(&node);
        let confirms = move || weak.upgrade().map_or(Ok(()), |node| node.confirms());
        node.parts.store.confirm_by(confirms);
        node.settle();
        Ok(node)
    }

    /// The time by this member's clock, which never steps, and goes on while the host sleeps.
    pub(super) fn now(&self) -> Duration {
        clock().saturating_sub(self.began)
    }

    /// Hears of changes of where it stands.
    pub(super) fn turns(&self) -> watch::Receiver<u64> {
        self.turns.subscribe()
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unpoisoned()
    }

    /// What it does.
    pub fn role(&self) -> Role {
        self.standing().role()
    }

    /// Takes other settings.
    pub fn reconfigure(self: &Arc<Self>, settings: NodeSettings) {
        *self.settings.write().unpoisoned() = settings;
        self.settle();
    }

    pub(super) fn settings(&self) -> NodeSettings {
        self.settings.read().unpoisoned().clone()
    }

    /// Where its store stands.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn place(&self) -> Result<Place, Failure> {
        let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
        let read = self.parts.store.read().map_err(unreadable)?;
        let head = read.view().feed_head().map_err(unreadable)?;
        let row = read.view().meta_get(ClusterRow::NAME).map_err(unreadable)?;
        let row = row.map(ClusterRow::parse).transpose().map_err(Failure::new)?;
        Ok(Place {
            history: History(self.parts.store.incarnation()),
            epoch: row.as_ref().map_or(0, |row| row.epoch),
            writer: row.map(|row| row.writer),
            position: head.as_ref().map_or(0, |head| head.position),
            digest: Digest(head.map_or([0; 32], |head| head.digest.0)),
        })
    }

    /// Looks at its row again, which may have changed, and at its own number, which it has from its first token on.
    pub(super) fn look(self: &Arc<Self>) {
        let found =
            own(&self.parts.folder).and_then(|own| Ok((own, row::read(&self.parts.store)?)));
        let (own, row) = match found {
            Ok(found) => found,
            Err(why) => return self.say(Severity::Error, &why.to_string()),
        };
        let Some(id) = own.as_ref().and_then(Member::number).map(MemberId) else { return };
        {
            let mut standing = self.standing();
            if standing.own() == id && standing.row() == row.as_ref() {
                return;
            }
            if standing.own() != id {
                // It has just become the first member: there is no other to ask who writes.
                *standing = Standing::new(id, None, standing.highest(), self.now());
            }
            standing.applied(row);
        }
        self.settle();
    }

    /// Why it follows no more until a person has mended it.
    pub(super) fn stopped(&self) -> Option<Stop> {
        self.follower.lock().unpoisoned().as_ref().and_then(Follower::stopped).cloned()
    }

    /// Takes note of a reign that another member speaks of.
    pub(super) fn heard(self: &Arc<Self>, reign: Option<Reign>) {
        let Some(reign) = reign else { return };
        let (was, is_fenced) = {
            let mut standing = self.standing();
            (standing.highest(), standing.heard(reign))
        };
        if was < Some(reign) {
            self.keep_heard(reign);
        }
        if is_fenced && !self.has_etcd {
            let text = format!(
                "member {} writes in epoch {}: this server refuses changes, and follows that one unless it has changes of its \
                 own",
                reign.writer, reign.epoch
            );
            self.say(Severity::Warning, &text);
        }
        self.settle();
    }

    /// Whether a commit that is on the disk may be acknowledged. A writer that has stood still asks the others first, on the
    /// committer's thread: commits wait meanwhile.
    fn confirms(&self) -> Result<(), Error> {
        if self.has_etcd {
            return Ok(());
        }
        let mut standing = self.standing();
        loop {
            let now = self.now();
            match standing.may_acknowledge(now) {
                Some(Ok(())) => return Ok(()),
                Some(Err(why)) => {
                    return Err(Error::NotConfirmed {
                        why: format!(
                            "{why}; it was made the writer before this change was acknowledged, and the change is at this \
                             server alone: make it again"
                        ),
                    });
                }
                None => {}
            }
            self.asks.notify_one();
            let wait = standing.deadline().map_or(ASK_EVERY, |at| at.saturating_sub(now));
            standing = self.acknowledges.wait_timeout(standing, wait).unpoisoned().0;
        }
    }

    /// Stops writing for this reason.
    pub(super) fn stop(self: &Arc<Self>, why: Refusal) {
        self.say(Severity::Error, &why.to_string());
        self.standing().stop(why);
        self.settle();
    }

    /// Has changes made where they are to be made now.
    pub(super) fn settle(self: &Arc<Self>) {
        let Parts { directory, store, server, .. } = &self.parts;
        let stopped = self.stopped();
        let mut standing = self.standing();
        let may_write = standing.may_write(self.now());
        let is_leased = self.has_etcd && standing.row().is_some();
        let (is_open, trouble) = {
            let leased = self.leased.lock().unpoisoned();
            (leased.is_open, leased.trouble().cloned())
        };
        let may_write = match may_write {
            Ok(()) if is_leased && !is_open => Err(Refusal::NotWriter { writer_url: None }),
            answer => answer,
        };
        let (role, own) = (standing.role(), standing.own());
        let url = standing.writer_url().map(str::to_owned);
        let row = standing.row();
        let members = row.iter().flat_map(|row| &row.members).map(|member| member.id);
        let others: Vec<MemberId> = members.filter(|id| *id != own).collect();
        self.progress.lock().unpoisoned().members(others, self.now());
        let settings = self.settings();
        store.follow(may_write.is_err());
        let follows = role == Role::Follower;
        directory.send_binds_by(follows.then(|| self.clone() as Arc<dyn BindsTaker>));
        server.write(match (may_write, role) {
            (Ok(()), _) => Writes::Here,
            (Err(_), Role::Follower) if settings.forward => Writes::Forwarded(Forwarding {
                forwarder: self.forwarder.clone(),
                wait: settings.own_writes_wait,
                by_address: settings.by_address,
            }),
            (Err(why), Role::Follower) => match url {
                Some(url) => Writes::Referred(url),
                None => Writes::Refused(why.to_string()),
            },
            (Err(_), Role::Writer | Role::Fenced | Role::Alone) if is_leased => {
                let why = trouble.map(|why| format!(" ({why})")).unwrap_or_default();
                Writes::Unavailable(format!(
                    "no server holds the writer's lease in etcd yet{why}: changes are not taken until one does; try again"
                ))
            }
            (Err(why), Role::Fenced) if standing.may_follow() && stopped.is_none() => {
                Writes::Unavailable(fenced(&standing, &why, None))
            }
            (Err(why), Role::Fenced) => Writes::Refused(fenced(&standing, &why, stopped.as_ref())),
            (Err(why @ Refusal::Busy), _) => Writes::Unavailable(why.to_string()),
            (Err(Refusal::Promised { to }), _) => Writes::Unavailable(format!(
                "{} is being made the writer at this moment: changes are not taken until that is done; try again",
                name_of(&standing, to)
            )),
            (Err(why), _) => Writes::Refused(why.to_string()),
        });
        drop(standing);
        self.acknowledges.notify_all();
        self.turns.send_modify(|turns| *turns += 1);
    }

    /// Waits until all changes that were taken are on the disk: those before one that changes nothing.
    ///
    /// # Errors
    /// If the store takes none.
    pub(super) async fn commit_all(&self) -> Result<(), Failure> {
        let store = self.parts.store.clone();
        let committed = spawn_blocking(move || store.write_now(|_| Ok::<(), Error>(())));
        committed.await.map_err(Failure::new)?.map_err(Failure::new)
    }

    /// Where the other members are reached.
    pub(super) fn other_urls(&self) -> Vec<String> {
        let standing = self.standing();
        let members = standing.row().into_iter().flat_map(|row| &row.members);
        members.filter(|one| one.id != standing.own()).map(|one| one.url.clone()).collect()
    }

    /// Writes into the error log.
    pub(super) fn say(&self, severity: Severity, text: &str) {
        let fields = [("text", Value::Text(text))];
        self.parts.log.say(SystemTime::now(), severity, "cluster", &fields);
    }

    fn keep_heard(&self, reign: Reign) {
        let kept = serde_json::to_string(&reign).map_err(Failure::new);
        let kept = kept.and_then(|text| data::write(&self.parts.folder, HEARD, text.as_bytes()));
        if let Err(why) = kept {
            self.say(
                Severity::Warning,
                &format!("what was heard of other members is not kept: {why}"),
            );
        }
    }
}

/// The time since the host was started, with that for which it slept.
fn clock() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

fn own(folder: &std::path::Path) -> Result<Option<Member>, Failure> {
    member::read(folder)
}

/// How a member is called.
pub(super) fn name_of(standing: &Standing, id: MemberId) -> String {
    let member = standing.row().and_then(|row| row.member(id));
    member.map_or_else(|| format!("member {id}"), |member| member.name.clone())
}

/// Why a member refuses changes that has written before, and perhaps cannot follow, with the way out.
pub(super) fn fenced(standing: &Standing, why: &Refusal, stopped: Option<&Stop>) -> String {
    match stopped {
        Some(stopped) => format!("{why}; {stopped}"),
        None if standing.may_follow() => format!(
            "{why}; this server was replaced, and takes changes again when it follows that one"
        ),
        // It says what is to be done, or the status does.
        None => why.to_string(),
    }
}

/// The highest reign that this member had heard of.
fn read_heard(folder: &std::path::Path) -> Result<Option<Reign>, Failure> {
    let file = folder.join(HEARD);
    if !file.exists() {
        return Ok(None);
    }
    let text = data::read(&file)?;
    serde_json::from_str(&text).map(Some).map_err(|why| keyway_folder::pem::malformed(&file, why))
}

impl BindsTaker for Node {
    fn take(&self, binds: Vec<u8>) -> BindsTaken {
        let noted = self.forwarder.note_binds(&binds);
        let directory = Arc::downgrade(&self.parts.directory);
        Box::pin(async move {
            let Some(position) = noted.await else { return false };
            let Some(directory) = directory.upgrade() else { return false };
            directory.reaches(position, BINDS_WAIT).await
        })
    }
}
