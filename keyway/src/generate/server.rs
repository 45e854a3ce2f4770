//! Entries straight to a server.

use super::arguments::Make;
use crate::data::{name, read_secret};
use crate::failure::Failure;
use crate::ldap::{Manner, Url};
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::signals::Second;
use crate::stop::Stop;
use keyway_data::{Client, ClientError, Maker, Plan};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long a server may think about an add.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Adds the entries. Says whether the server took all of them.
///
/// # Errors
/// If the server cannot be reached, or does not go on.
pub fn run(
    arguments: &Make,
    url: &str,
    plan: Arc<Plan>,
    (from, count): (u64, u64),
) -> Result<bool, Failure> {
    let server = Url::parse("--to", url)?;
    let password = arguments.password_file.as_deref().map(read_secret).transpose()?;
    if password.is_some() {
        server.may_carry_password(arguments.start_tls)?;
    }
    let stop = Stop::watch(Second::Ends)?;
    let stream = server.connect(&Manner {
        ca: arguments.ca.clone(),
        own_ca: Path::new("keyway-data").join(name::CA_CERTIFICATE),
        start_tls: arguments.start_tls,
        connect_wait: CONNECT_WAIT,
        answer_wait: ANSWER_WAIT,
    })?;
    let mut client = Client::new(stream, usize::from(arguments.in_flight));
    let failed = |why: ClientError| Failure::new(format!("{url}: {why}"));
    if let Some(dn) = &arguments.bind_dn {
        let password = password.as_deref().map(|it| it.trim_end_matches(['\n', '\r']));
        let Some(password) = password.filter(|password| !password.is_empty()) else {
            return Err(Failure::usage("--bind-dn needs a password: --password-file FILE"));
        };
        client.bind(dn, password.as_bytes()).map_err(failed)?;
    }
    let maker = Maker::new(plan, from).map_err(Failure::new)?;
    let mut maker = maker.with_generation(arguments.generation);
    let bar = Progress::entries("adding entries", count);
    let added = client.add(&mut maker, count, &mut |done| {
        let all = done.added + done.present + done.refused;
        bar.at(all, all);
        !stop.is_asked()
    });
    let seconds = bar.seconds();
    drop(bar);
    let done = client.done.clone();
    client.unbind();
    for (dn, why) in &done.reasons {
        output::note(format_args!("{dn}: {why}"));
    }
    let unsaid = done.refused.saturating_sub(done.reasons.len() as u64);
    if unsaid > 0 {
        output::note(format_args!("{} more were refused", grouped(unsaid)));
    }
    let words = format!(
        "added {} entries to {url}, {} were there already, {} refused ({seconds:.1} s)",
        grouped(done.added),
        grouped(done.present),
        grouped(done.refused)
    );
    match added {
        Ok(()) => {}
        Err(ClientError::Stopped) => return Err(Stop::failure(&format!("stopped: {words}"))),
        Err(why) => return Err(Failure::new(format!("{url}: {why}; {words}"))),
    }
    if arguments.json {
        let reason = |(dn, why): &(String, String)| json!({ "dn": dn, "why": why });
        output::json(&json!({
            "event": "added", "server": url, "template": arguments.template,
            "seed": arguments.seed, "from": from, "added": done.added, "present": done.present,
            "refused": done.refused, "seconds": seconds,
            "reasons": done.reasons.iter().map(reason).collect::<Vec<_>>(),
        }))?;
    } else {
        output::text(words)?;
    }
    Ok(done.refused == 0)
}
