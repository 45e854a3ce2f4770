//! Entries straight to a server.

use super::arguments::Make;
use super::stop::Stop;
use crate::data::{name, read_secret};
use crate::failure::{Failure, plain};
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::trust;
use keyway_data::{Client, ClientError, Maker, Plan};
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long a server may think about an add.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// A server's address, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Url {
    host: String,
    port: u16,
    tls: bool,
}

/// Both kinds of connections.
trait Connection: Read + Write {}
impl<S: Read + Write> Connection for S {}

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
    let server = parse(url)?;
    let password = arguments.password_file.as_deref().map(read_secret).transpose()?;
    let is_local = server.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        || server.host == "localhost";
    if password.is_some() && !server.tls && !arguments.start_tls && !is_local {
        return Err(Failure::usage(
            "the password would be sent in the clear; say ldaps://, or --start-tls",
        ));
    }
    let stop = Stop::watch()?;
    let stream = connect(arguments, &server)?;
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

fn parse(url: &str) -> Result<Url, Failure> {
    let bad = || {
        Failure::usage(format!(
            "--to {url}: write ldaps://HOST or ldap://HOST, with :PORT if that is not 636 or 389"
        ))
    };
    let (tls, rest) = match url.split_once("://").ok_or_else(bad)? {
        ("ldaps", rest) => (true, rest),
        ("ldap", rest) => (false, rest),
        _ => return Err(bad()),
    };
    let rest = rest.trim_end_matches('/');
    let usual = if tls { 636 } else { 389 };
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(bad)?)),
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    if host.is_empty() || host.contains(['/', '?']) {
        return Err(bad());
    }
    let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| bad()))?;
    Ok(Url { host: host.to_owned(), port, tls })
}

/// Connects, with TLS if that is asked for.
fn connect(arguments: &Make, server: &Url) -> Result<Box<dyn Connection>, Failure> {
    let Url { host, port, tls } = server;
    let bad = |why: std::io::Error| {
        Failure::new(format!("cannot connect to {host} port {port}: {}", plain(&why)))
    };
    let mut last = None;
    let mut stream = None;
    for address in (host.as_str(), *port).to_socket_addrs().map_err(bad)? {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(why) => last = Some(why),
        }
    }
    let stream =
        stream.ok_or_else(|| bad(last.unwrap_or(std::io::ErrorKind::HostUnreachable.into())))?;
    stream.set_nodelay(true).map_err(bad)?;
    stream.set_read_timeout(Some(ANSWER_WAIT)).map_err(bad)?;
    stream.set_write_timeout(Some(ANSWER_WAIT)).map_err(bad)?;
    let stream = match arguments.start_tls && !tls {
        true => Client::new(stream, 1)
            .start_tls()
            .map_err(|why| Failure::new(format!("{host}: {why}")))?,
        false => stream,
    };
    if !tls && !arguments.start_tls {
        return Ok(Box::new(stream));
    }
    secured(arguments, host, stream)
}

fn secured(
    arguments: &Make,
    host: &str,
    mut stream: TcpStream,
) -> Result<Box<dyn Connection>, Failure> {
    let own = Path::new("keyway-data").join(name::CA_CERTIFICATE);
    let roots = trust::authorities(arguments.ca.as_deref(), Some(&own))?;
    let provider = keyway_tls::provider(&keyway_drivers::engine());
    let config = keyway_tls::client_config(&provider, roots)
        .map_err(|why| Failure::new(format!("cannot use TLS: {why}")))?;
    let server = ServerName::try_from(host.to_owned())
        .map_err(|_| Failure::usage(format!("{host} is no name of a server")))?;
    let mut connection = ClientConnection::new(Arc::new(config), server)
        .map_err(|why| Failure::new(format!("cannot use TLS: {why}")))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|why| {
            Failure::new(format!(
                "no TLS with {host}: {}; name its certificate authority with --ca FILE (Keyway's \
                 own is ca.pem in its data folder)",
                plain(&why)
            ))
        })?;
    }
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url = |host: &str, port, tls| Url { host: host.to_owned(), port, tls };
        assert_eq!(parse("ldaps://a.b").unwrap(), url("a.b", 636, true));
        assert_eq!(parse("ldap://a:1389/").unwrap(), url("a", 1389, false));
        assert_eq!(parse("ldap://[::1]:1").unwrap(), url("::1", 1, false));
        assert_eq!(parse("ldaps://[::1]").unwrap(), url("::1", 636, true));
        for bad in ["", "ldap://", "http://a", "ldap://a:x", "ldap://[::1]x", "ldap://a/dc=x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
