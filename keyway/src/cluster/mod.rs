//! `keyway cluster`.

mod arguments;

pub use arguments::Cluster;

use arguments::{Join, Promote, Remove};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_service::cluster::{self, JoinOptions, say_status};
use serde_json::json;

/// Does what the arguments ask for. Returns whether all members answered that were asked.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Cluster) -> Result<bool, Failure> {
    let done = match command {
        Cluster::Token(token) => {
            let (folder, name) = (&token.data.folder, token.name.as_deref());
            cluster::make_token(folder, token.valid, name)?.say(token.json)
        }
        Cluster::Join(join) => joined(join),
        Cluster::Status(status) => {
            return say_status(&cluster::status(&status.data.folder, status.all)?, status.json);
        }
        Cluster::Members(members) => cluster::members(&members.data.folder)?.say(members.json),
        Cluster::Promote(promote) => promoted(promote),
        Cluster::Rejoin(rejoin) => {
            let folder = &rejoin.data.folder;
            cluster::rejoin(folder, rejoin.from.as_ref())?.say(folder, rejoin.json)
        }
        Cluster::Remove(remove) => removed(remove),
    };
    done.map(|()| true)
}

fn joined(join: &Join) -> Result<(), Failure> {
    cluster::join(&JoinOptions {
        folder: join.data.folder.clone(),
        follow: join.follow.clone(),
        token: join.join.clone(),
        name: join.name.clone(),
        url: join.url.clone(),
        user: join.user.clone(),
        cryptod_user: join.cryptod_user.clone(),
    })
}

fn promoted(promote: &Promote) -> Result<(), Failure> {
    let epoch = cluster::promote(&promote.data.folder)?;
    match promote.json {
        true => output::json(&json!({ "event": "promoted", "epoch": epoch })),
        false => output::text(format_args!("this server writes from now on (epoch {epoch})")),
    }
}

fn removed(remove: &Remove) -> Result<(), Failure> {
    cluster::remove(&remove.data.folder, &remove.name)?;
    match remove.json {
        true => output::json(&json!({ "event": "removed", "member": remove.name })),
        false => output::text(format_args!("{} is no member any more", remove.name)),
    }
}
