//! `keyway cluster`.

mod arguments;

pub use arguments::Cluster;

use arguments::Join;
use keyway_host::failure::Failure;
use keyway_service::cluster::{self, JoinOptions, say_promoted, say_removed, say_status};

/// Does what the arguments ask for. Returns whether all members answered that were asked.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Cluster) -> Result<bool, Failure> {
    let done = match command {
        Cluster::Token(token) => {
            let (folder, name) = (&token.data.folder, token.name.as_deref());
            cluster::make_token(folder, token.valid, name)?.say(token.data.json)
        }
        Cluster::Join(join) => joined(join),
        Cluster::Status(status) => {
            return say_status(
                &cluster::status(&status.data.folder, status.all)?,
                status.data.json,
            );
        }
        Cluster::Members(members) => cluster::members(&members.data.folder)?.say(members.data.json),
        Cluster::Promote(promote) => {
            say_promoted(cluster::promote(&promote.data.folder, promote.force)?, promote.data.json)
        }
        Cluster::Rejoin(rejoin) => {
            let folder = &rejoin.data.folder;
            cluster::rejoin(folder, rejoin.from.as_ref())?.say(folder, rejoin.data.json)
        }
        Cluster::Remove(remove) => {
            cluster::remove(&remove.data.folder, &remove.name)?;
            say_removed(&remove.name, remove.data.json)
        }
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
