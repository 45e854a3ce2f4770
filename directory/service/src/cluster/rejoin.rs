//! A member begins anew with the writer's store: the one of before is kept beside it.

use super::copied::own_store;
use super::limits::{WRITER_LOOK_EVERY, WRITER_WAIT};
use super::link::Link;
use super::own_changes::{OwnChanges, unused, write_out};
use super::receive::receive;
use crate::backup::files::BEFORE_REJOIN;
use crate::scratch::Scratch;
use keyway_cluster::message::{Answer, ClusterRow, Request, RoleName, Status};
use keyway_config::MemberUrl;
use keyway_folder::data::{Folder, name};
use keyway_folder::member::{self, Member};
use keyway_folder::user::become_owner;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::progress::Progress;
use keyway_host::timestamp::Timestamp;
use keyway_store::{Options, Store};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

/// The folder, below the data folder, that the new store is made in.
const PLACE: &str = ".rejoining";

/// The outcome.
#[derive(Clone, Debug)]
pub struct Rejoined {
    /// The store of before.
    pub kept: PathBuf,
    /// The member whose store it has now.
    pub from: MemberUrl,
    /// What only the store of before had.
    pub own: Option<OwnChanges>,
}

/// Puts the writer's store in the place of a data folder's, which no server may use. Without `from` the writer is looked
/// for among the members that the store knows. What only the store of before has is written out as LDIF first.
///
/// # Errors
/// If a process uses the folder, it is no member's, or no writer is found; then all is as it was.
pub fn rejoin(folder: &Path, from: Option<&MemberUrl>) -> Result<Rejoined, Failure> {
    become_owner(folder)?;
    let folder = Folder::open_existing(folder, Timestamp::now())?;
    let engine = keyway_drivers::engine();
    let connect = |url: &MemberUrl| {
        let own = member::complete(folder.path())?;
        Link::connect(url, member::client(&engine, own)?)
    };
    member::complete(folder.path())?;
    let (from, mut link) = match from {
        Some(url) => (url.clone(), connect(url)?),
        None => writer(&candidates(&folder)?, &connect)?,
    };
    let scratch = Scratch::make(&folder.file(PLACE))?;
    let progress = Progress::bytes("taking the directory", None);
    receive(&mut link, scratch.path(), &mut |done, total| {
        progress.of(total);
        progress.step(done, "");
    })?;
    drop(progress);
    let configuration = folder.read(name::CONFIGURATION).ok();
    let made = scratch.path().join(name::STORE);
    let incarnation = own_store(&made, configuration.as_deref())?;
    let own = write_out(&folder, &made, Timestamp::now())?;
    let kept = folder.file(&unused(&folder, BEFORE_REJOIN, Timestamp::now(), ""));
    exchange(&folder, &made, &kept)?;
    // The next start notes it if this does not.
    if let Err(why) = folder.note_store(incarnation) {
        output::note(format_args!("warning: the folder does not remember its store: {why}"));
    }
    Ok(Rejoined { kept, from, own })
}

/// Puts `made` in the place of the store, which comes to `kept`, in one step.
fn exchange(folder: &Folder, made: &Path, kept: &Path) -> Result<(), Failure> {
    let store = folder.file(name::STORE);
    let system = |why: std::io::Error| Failure::system("put in place", &store, &why);
    fs::rename(made, kept).map_err(system)?;
    File::open(folder.path()).and_then(|it| it.sync_all()).map_err(system)?;
    // Whenever this ends, neither of the two is another one than the folder's.
    folder.forget_store()?;
    let flags = match store.exists() {
        true => RenameFlags::EXCHANGE,
        false => RenameFlags::empty(),
    };
    renameat_with(CWD, kept, CWD, &store, flags).map_err(|why| {
        // It is none that was kept.
        let _ = fs::remove_dir_all(kept);
        system(why.into())
    })?;
    File::open(folder.path()).and_then(|it| it.sync_all()).map_err(system)
}

/// Where members are, by the store and by what the folder followed first.
fn candidates(folder: &Folder) -> Result<Vec<MemberUrl>, Failure> {
    let own = member::read(folder.path())?;
    let mut urls = Vec::new();
    let opened = Store::open_to_read(&folder.file(name::STORE), &Options::default());
    // A store that cannot be read may be the reason for all this.
    if let Some(row) = opened.ok().and_then(|store| super::row::read(&store).ok().flatten()) {
        urls.extend(others(&row, own.as_ref()));
    }
    let follow = own.into_iter().flat_map(|own| own.follow);
    urls.extend(follow.filter_map(|url| url.parse().ok()));
    let mut once: Vec<MemberUrl> = Vec::new();
    urls.into_iter().for_each(|url| {
        if !once.contains(&url) {
            once.push(url);
        }
    });
    Ok(once)
}

fn others(row: &ClusterRow, own: Option<&Member>) -> Vec<MemberUrl> {
    let is_other = |id: &str| own.is_none_or(|own| own.id != id);
    let others = row.members.iter().filter(|member| is_other(&member.id.to_string()));
    others.filter_map(|member| member.url.parse().ok()).collect()
}

/// The writer of the highest epoch among members. One that has just started, and is asking which epoch it is, is waited
/// for.
fn writer(
    urls: &[MemberUrl],
    connect: &dyn Fn(&MemberUrl) -> Result<Link, Failure>,
) -> Result<(MemberUrl, Link), Failure> {
    let begun = Instant::now();
    loop {
        let mut found = Found::default();
        urls.iter().for_each(|url| found.ask(url, connect));
        match found.best {
            Some((_, url, link)) => return Ok((url, link)),
            None if found.may_come && begun.elapsed() < WRITER_WAIT => {
                thread::sleep(WRITER_LOOK_EVERY);
            }
            None => {
                let why = match found.reasons.is_empty() {
                    true => "it knows no other member".to_owned(),
                    false => found.reasons.join("; "),
                };
                return Err(Failure::new(format!(
                    "no writer is found: {why}; name one with --from ldaps://HOST:PORT"
                )));
            }
        }
    }
}

/// The answers of members.
#[derive(Default)]
struct Found {
    best: Option<(u64, MemberUrl, Link)>,
    /// One of them is about to write.
    may_come: bool,
    reasons: Vec<String>,
}

impl Found {
    fn ask(&mut self, url: &MemberUrl, connect: &dyn Fn(&MemberUrl) -> Result<Link, Failure>) {
        let asked = connect(url).and_then(|mut link| match link.ask(Request::Status {})? {
            Answer::Status(status) => Ok((link, *status)),
            _ => Err(link.unexpected()),
        });
        match asked {
            Ok((link, Status { role: RoleName::Writer, epoch, .. })) => {
                if self.best.as_ref().is_none_or(|(best, ..)| *best < epoch) {
                    self.best = Some((epoch, url.clone(), link));
                }
            }
            Ok((_, status)) => {
                self.may_come |= status.role == RoleName::Starting;
                self.reasons.push(format!("{url} does not write ({})", status.role));
            }
            Err(why) => self.reasons.push(why.to_string()),
        }
    }
}
