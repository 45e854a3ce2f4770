//! `keyway cluster`.

mod arguments;

pub use arguments::Cluster;

use arguments::{Join, Members, Promote, Rejoin, Status, Token};
use keyway_host::failure::Failure;
use keyway_host::output::{self, shell};
use keyway_service::cluster::{self, Asked, JoinOptions};
use serde_json::json;

/// Does what the arguments ask for. Returns whether all members answered that were asked.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Cluster) -> Result<bool, Failure> {
    match command {
        Cluster::Token(token) => made(token).map(|()| true),
        Cluster::Join(join) => joined(join).map(|()| true),
        Cluster::Status(status) => asked(status),
        Cluster::Members(members) => listed(members).map(|()| true),
        Cluster::Promote(promote) => promoted(promote).map(|()| true),
        Cluster::Rejoin(rejoin) => rejoined(rejoin).map(|()| true),
    }
}

fn made(token: &Token) -> Result<(), Failure> {
    let made = cluster::make_token(&token.data.folder, token.valid, token.name.as_deref())?;
    let text = made.token.as_str();
    let command = format!("keyway up --follow {} --join {text}", made.url);
    if token.json {
        return output::json(&json!({
            "event": "token made", "token": text, "ends": made.ends, "url": made.url, "command": command,
        }));
    }
    output::note(format_args!("good once, until {}; at the other server:\n  {command}", made.ends));
    output::text(text)
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

fn asked(status: &Status) -> Result<bool, Failure> {
    let all = cluster::status(&status.data.folder, status.all)?;
    for asked in &all {
        match status.json {
            true => output::json(&asked.json()?)?,
            false => output::text(asked)?,
        }
    }
    Ok(all.iter().all(|Asked { status, .. }| status.is_ok()))
}

fn listed(members: &Members) -> Result<(), Failure> {
    let found = cluster::members(&members.data.folder)?;
    match members.json {
        true => output::json(&found.json()),
        false => output::text(found),
    }
}

fn promoted(promote: &Promote) -> Result<(), Failure> {
    let epoch = cluster::promote(&promote.data.folder)?;
    match promote.json {
        true => output::json(&json!({ "event": "promoted", "epoch": epoch })),
        false => output::text(format_args!("this server writes from now on (epoch {epoch})")),
    }
}

fn rejoined(rejoin: &Rejoin) -> Result<(), Failure> {
    let folder = &rejoin.data.folder;
    let done = cluster::rejoin(folder, rejoin.from.as_ref())?;
    let (kept, from) = (done.kept.display(), &done.from);
    if rejoin.json {
        return output::json(&json!({
            "event": "rejoined", "from": from.to_string(), "kept": kept.to_string(),
            "own_changes": done.own.as_ref().map(|own| own.changes),
            "ldif": done.own.as_ref().map(|own| own.file.display().to_string()),
        }));
    }
    if let Some(own) = &done.own {
        output::note(format_args!(
            "{} changes that only this server had are in {} (with passwords)",
            own.changes,
            own.file.display()
        ));
    }
    output::text(format_args!(
        "the directory is that of {from}; the one of before is kept in {kept}\nstart it with: keyway up --data {}",
        shell(&folder.to_string_lossy())
    ))
}
