//! `keyway directory reindex`: by the server, if one has the folder, else by this process.
//!
//! The server is asked by a file in its folder and SIGHUP: who may do that may stop it as well.

use super::Reindex;
use crate::acl::look;
use keyway_folder::data::{self, name};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_host::progress::Progress;
use keyway_meter::Reader;
use keyway_server::{Directory, IndexStatus};
use keyway_service::instance::describe;
use keyway_service::offline::{self, Offline};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server may take to notice that it is asked for something.
const TAKEN_MAX: Duration = Duration::from_secs(30);
/// How often is looked how far it is.
const LOOK: Duration = Duration::from_millis(100);

/// Makes indexes anew, and waits until they are whole.
///
/// # Errors
/// If there is no directory, an attribute is not indexed, or the server does not do it.
pub fn run(arguments: &Reindex) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let progress = Progress::steps("indexing", 100);
    match is_served(folder).then(|| data::holder_of(folder)).flatten() {
        Some(server) => ask(server, arguments, &progress)?,
        None => work(arguments, &progress)?,
    }
    let seconds = progress.seconds();
    drop(progress);
    if arguments.json {
        let attributes = &arguments.attributes;
        return output::json(
            &json!({ "event": "reindexed", "attributes": attributes, "seconds": seconds }),
        );
    }
    output::text("the indexes are whole")
}

fn is_served(folder: &Path) -> bool {
    Reader::open(&folder.join(name::METER)).is_ok_and(|page| page.alive())
}

/// Does it in this process.
fn work(arguments: &Reindex, progress: &Progress) -> Result<(), Failure> {
    let Offline { instance, folder: _folder, .. } = offline::open(&arguments.data.folder)?;
    let failed = |why| Failure::new(describe(&why));
    instance.directory.reindex(&arguments.attributes, false).map_err(failed)?;
    while !instance.directory.build_piece().map_err(failed)? {
        progress.at(done(&instance.directory)?.into(), 0);
    }
    instance.close()
}

/// Has the server do it.
fn ask(server: u32, arguments: &Reindex, progress: &Progress) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let look = look::open_folder(folder, None)?;
    let allowed = look.directory.check_reindex(&arguments.attributes);
    allowed.map_err(|why| Failure::new(describe(&why)))?;
    let file = folder.join(name::REINDEX);
    data::write_secret(folder, name::REINDEX, arguments.attributes.join("\n").as_bytes())?;
    let cannot = |why| Failure::new(format!("cannot tell the server, process {server}: {why}"));
    let pid = i32::try_from(server).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| cannot("its process id makes no sense".to_owned()))?;
    kill_process(pid, Signal::HUP).map_err(|why| cannot(plain(&why.into())))?;
    let asked = Instant::now();
    let log = folder.join(name::LOG);
    let silent = |what: &str| {
        Failure::new(format!("the server {what}; {} may say why", log.join("error.log").display()))
    };
    loop {
        std::thread::sleep(LOOK);
        let is_taken = !file.exists();
        let done = done(&look.directory)?;
        progress.at(done.into(), 0);
        match () {
            () if is_taken && done == 100 => return Ok(()),
            () if !is_served(folder) => return Err(silent("has ended")),
            () if !is_taken && asked.elapsed() > TAKEN_MAX => {
                return Err(silent("has not taken what it is asked for"));
            }
            () => {}
        }
    }
}

/// How much of a hundred is done of all that is to be.
fn done(directory: &Directory) -> Result<u8, Failure> {
    let reports = directory.index_reports().map_err(|why| Failure::new(describe(&why)))?;
    let percents = reports.iter().filter_map(|report| match report.standing {
        IndexStatus::Building(percent) => Some(percent.min(99)),
        IndexStatus::Dropping => Some(0),
        _ => None,
    });
    Ok(percents.min().unwrap_or(100))
}
