//! Entries straight to a server.

use super::arguments::Make;
use keyway_data::{Client, ClientError, Maker, Plan};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use keyway_watch::ldap::ServerUrl;
use serde_json::json;
use std::sync::Arc;

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
    let server = ServerUrl::parse("--to", url)?;
    let login = arguments.access.login(&server)?;
    let stop = Stop::watch(Second::Ends)?;
    let stream = arguments.access.connect_options().connect(&server)?;
    let mut client = Client::new(stream, arguments.in_flight as usize);
    if let Some((dn, password)) = &login {
        client.bind(dn, password).map_err(|why| Failure::new(format!("{url}: {why}")))?;
    }
    let maker = Maker::new(plan, from).map_err(Failure::new)?;
    let mut maker = maker.with_generation(arguments.entries.generation);
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
            "event": "added", "server": url, "template": arguments.entries.template,
            "seed": arguments.entries.seed, "from": from, "added": done.added, "present": done.present,
            "refused": done.refused, "seconds": seconds,
            "reasons": done.reasons.iter().map(reason).collect::<Vec<_>>(),
        }))?;
    } else {
        output::text(words)?;
    }
    Ok(done.refused == 0)
}
