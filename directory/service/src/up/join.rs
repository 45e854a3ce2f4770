//! A first start that follows another server: a process of its own joins it, which becomes the folder's user for that. This
//! one still has ports to bind.

use super::process::{Program, code};
use crate::cluster::has_joined;
use crate::options::{FollowOptions, UpOptions};
use keyway_config::MemberUrl;
use keyway_host::failure::{Failure, plain};
use keyway_host::listeners::Listen;
use keyway_host::output;
use std::io::{self, Write};
use std::process::{ExitCode, Stdio};

/// Joins, unless the data folder is a member's. Returns the exit status if that went wrong, which the process has said.
///
/// # Errors
/// If it cannot be started.
pub fn join(arguments: &UpOptions, follow: &FollowOptions) -> Result<Option<ExitCode>, Failure> {
    let serve = &arguments.serve;
    if has_joined(&serve.folder) {
        output::note(format_args!(
            "{} is a member of a cluster already: --follow and --join are not looked at",
            serve.folder.display()
        ));
        return Ok(None);
    }
    let mut command = Program::new()?.command("cluster");
    // What is on a command line can be seen by all users of a machine.
    command.args(["join", "--join", "-"]).arg("--data").arg(&serve.folder);
    let url = follow.url.clone().or_else(|| own(serve.overrides.listen_tls));
    let user = |account: &Option<_>| account.as_ref().map(ToString::to_string);
    for (flag, value) in [
        ("--follow", Some(follow.follow.to_string())),
        ("--name", follow.member.clone()),
        ("--url", url.map(|url| url.to_string())),
        ("--user", user(&serve.user)),
        ("--cryptod-user", user(&arguments.cryptod_user)),
    ] {
        if let Some(value) = value {
            command.arg(flag).arg(value);
        }
    }
    if serve.json {
        command.arg("--json");
    }
    let system = |why: io::Error| Failure::new(format!("cannot join: {}", plain(&why)));
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(system)?;
    if let Some(mut input) = child.stdin.take() {
        // One that has ended says why.
        let _ = input.write_all(follow.token.text().as_bytes());
    }
    let status = child.wait().map_err(system)?;
    Ok((!status.success()).then(|| code(status)))
}

/// Where others reach a server that listens there, if the flag says so.
fn own(listen_tls: Option<Listen>) -> Option<MemberUrl> {
    let address = listen_tls.flatten().filter(|address| address.port() != 0)?;
    Some(crate::cluster::own_url(None, Some(address)))
}
