//! What members say of themselves, and what this host's own member is asked to do.

use super::link::Link;
use super::own_url::{from_here, of_running};
use super::row;
use crate::offline::store_to_read;
use keyway_cluster::message::{Answer, Member, Request, Status};
use keyway_config::{Configuration, Given, MemberUrl, Running};
use keyway_engine::Engine;
use keyway_folder::data::{self, name};
use keyway_folder::member;
use keyway_folder::user::become_owner;
use keyway_host::failure::Failure;
use keyway_host::output::shell;
use std::path::Path;

/// A member, and what it says.
pub struct Asked {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub url: String,
    /// How it is; or why it does not say so.
    pub status: Result<Status, Failure>,
}

/// The members of a cluster, by the data folder's store.
#[derive(Clone, Debug)]
pub struct Members {
    /// Which cluster it is, in hexadecimal digits.
    pub cluster: String,
    /// The epoch of its writer.
    pub epoch: u64,
    /// The writer's number.
    pub writer: String,
    /// All of them.
    pub members: Vec<Member>,
}

/// Asks the server that runs on a data folder how it is; or all members of its cluster, if `all`. The process becomes the
/// folder's user for good.
///
/// # Errors
/// If the folder is no member's, or its server does not run and no other is to be asked.
pub fn status(folder: &Path, all: bool) -> Result<Vec<Asked>, Failure> {
    become_owner(folder)?;
    let engine = keyway_drivers::engine();
    let own = member::complete(folder)?;
    let (id, name) = (format!("{:016x}", own.member), own_name(folder)?);
    drop(own);
    let ask = |url: &MemberUrl| -> Result<Status, Failure> {
        let mut link = connect(&engine, folder, url)?;
        match link.ask(Request::Status {})? {
            Answer::Status(status) => Ok(*status),
            _ => Err(link.unexpected()),
        }
    };
    let running = Running::look(folder);
    let configuration = Configuration::ahead(folder, &Given::none())?;
    let url = of_running(&configuration, running.as_ref()).to_string();
    let status = here(folder, running.as_ref()).and_then(|url| ask(&url));
    if !all {
        return Ok(vec![Asked { name, url, status: Ok(status?) }]);
    }
    let mut asked = vec![Asked { name, url, status }];
    for Member { name, url, .. } in
        members(folder)?.members.into_iter().filter(|one| one.id.to_string() != id)
    {
        let status = url.parse::<MemberUrl>().map_err(Failure::new).and_then(|url| ask(&url));
        asked.push(Asked { name, url, status });
    }
    Ok(asked)
}

/// Makes the server that runs on a data folder the writer, with `force` also if it lacks changes that another member has.
/// Returns its epoch. The process becomes the folder's user for
/// good.
///
/// # Errors
/// Why it does not become the writer.
pub fn promote(folder: &Path, force: bool) -> Result<u64, Failure> {
    become_owner(folder)?;
    let engine = keyway_drivers::engine();
    let url = here(folder, Running::look(folder).as_ref())?;
    let mut link = connect(&engine, folder, &url)?;
    link.wait_long()?;
    match link.ask(Request::Promote { force })? {
        Answer::Promoted { epoch } => Ok(epoch),
        _ => Err(link.unexpected()),
    }
}

/// Has the server that runs on a data folder, and writes, remove a member by its name. The process becomes the folder's
/// user for good.
///
/// # Errors
/// If there is no such member, or it writes itself.
pub fn remove(folder: &Path, name: &str) -> Result<(), Failure> {
    become_owner(folder)?;
    let engine = keyway_drivers::engine();
    let mut link = connect(&engine, folder, &here(folder, Running::look(folder).as_ref())?)?;
    match link.ask(Request::Remove { name: name.to_owned() })? {
        Answer::Removed {} => Ok(()),
        _ => Err(link.unexpected()),
    }
}

/// The members of the cluster that a data folder's store is of.
///
/// # Errors
/// If it is of none.
pub fn members(folder: &Path) -> Result<Members, Failure> {
    become_owner(folder)?;
    let row = row::read(&store_to_read(folder)?)?.ok_or_else(|| {
        Failure::new(format!(
            "{} is in no cluster yet: make a token with keyway cluster token, and have another server join",
            folder.display()
        ))
    })?;
    Ok(Members {
        cluster: row.cluster.to_string(),
        epoch: row.epoch,
        writer: row.writer.to_string(),
        members: row.members,
    })
}

fn own_name(folder: &Path) -> Result<String, Failure> {
    Ok(member::read(folder)?.map(|own| own.name).unwrap_or_default())
}

fn connect(engine: &Engine, folder: &Path, url: &MemberUrl) -> Result<Link, Failure> {
    Link::connect(url, member::client(engine, member::complete(folder)?)?)
}

/// Where the folder's own server listens.
fn here(folder: &Path, running: Option<&Running>) -> Result<MemberUrl, Failure> {
    let shown = shell(&folder.to_string_lossy());
    // A folder of another user's says nothing of its server.
    member::read(folder)?;
    let running = running.ok_or_else(|| {
        Failure::new(match data::user_id(folder) {
            Some(process) => format!(
                "process {process} uses {shown}, and has not said yet where it listens: it has just started, or its disk is \
                 full (error.log)"
            ),
            None => format!("no server runs on {shown}: start it with keyway up --data {shown}"),
        })
    })?;
    let ldaps = running.ldaps.ok_or_else(|| {
        Failure::new(format!(
            "the server on {shown} does not listen for LDAPS, over which members speak: set listen_tls in {}",
            folder.join(name::CONFIGURATION).display()
        ))
    })?;
    Ok(from_here(ldaps))
}
