//! Lines of servers that are looked at over LDAP.

use super::{Form, Lines};
use crate::figures::{csv_header, csv_line, json_line};
use crate::rows::{name_width, of_server, servers_header};
use crate::server::{WatchedServer, watch, why_not};
use crate::source::SnapshotSource;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The default width of lines.
const WIDTH: usize = 120;
/// Lines between two headers.
const HEADER_LINES: u64 = 20;
const LOOK: Duration = Duration::from_millis(50);

/// Shows lines until there are enough, or Ctrl-C.
///
/// # Errors
/// If none of the servers can be looked at, or the lines have no reader.
pub fn of_servers(sources: Vec<(String, SnapshotSource)>, wanted: &Lines) -> Result<(), Failure> {
    let Lines { form, interval, count } = *wanted;
    let stop = Stop::watch(Second::Ends)?;
    let mut hosts: Vec<WatchedServer> =
        sources.iter().map(|(name, _)| WatchedServer::new(name.clone())).collect();
    let seen = watch(sources, interval, &Arc::new(AtomicBool::new(false)));
    if form == Form::Csv {
        output::text(csv_header())?;
    }
    let mut lines = 0;
    while !stop.is_asked() {
        let Ok((number, snapshot)) = seen.recv_timeout(LOOK) else { continue };
        let Some(host) = hosts.get_mut(number) else { continue };
        let was_gone = host.gone.is_some();
        host.seen(snapshot);
        if let (Some(why), false) = (&host.gone, was_gone) {
            output::note(format_args!("{}: {why}", host.name));
        }
        if hosts.iter().all(|host| host.now.is_none() && host.gone.is_some()) {
            return Err(why_not(&hosts));
        }
        let names = name_width(hosts.iter().map(|host| host.name.as_str()), WIDTH);
        let Some(host) = hosts.get(number).filter(|host| host.gone.is_none()) else { continue };
        let Some(change) = host.change() else { continue };
        match form {
            Form::Json => output::json(&json_line(&host.name, &change))?,
            Form::Csv => output::text(csv_line(&host.name, &change))?,
            Form::Text => {
                if lines % HEADER_LINES == 0 {
                    output::text(servers_header(names, WIDTH))?;
                }
                output::text(of_server(host, names, WIDTH))?;
            }
        }
        lines += 1;
        if count.is_some_and(|count| lines >= count) {
            break;
        }
    }
    Ok(())
}
