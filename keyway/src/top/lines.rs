//! `keyway top` without a terminal, of servers that are looked at over LDAP: a line each interval.

use crate::cli::Top;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use keyway_watch::figures::{csv_header, csv_line, json_line};
use keyway_watch::rows::{name_width, of_server, servers_header};
use keyway_watch::{SnapshotSource, WatchedServer, watch, why_not};
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
pub fn run(
    sources: Vec<(String, SnapshotSource)>,
    interval: Duration,
    arguments: &Top,
) -> Result<(), Failure> {
    let stop = Stop::watch(Second::Ends)?;
    let mut hosts: Vec<WatchedServer> =
        sources.iter().map(|(name, _)| WatchedServer::new(name.clone())).collect();
    let seen = watch(sources, interval, &Arc::new(AtomicBool::new(false)));
    if arguments.csv {
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
        match (arguments.json, arguments.csv) {
            (true, _) => output::json(&json_line(&host.name, &change))?,
            (_, true) => output::text(csv_line(&host.name, &change))?,
            _ => {
                if lines % HEADER_LINES == 0 {
                    output::text(servers_header(names, WIDTH))?;
                }
                output::text(of_server(host, names, WIDTH))?;
            }
        }
        lines += 1;
        if arguments.count.is_some_and(|count| lines >= count) {
            break;
        }
    }
    Ok(())
}
