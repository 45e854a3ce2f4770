//! `keyway decode proxy`: between clients and a server, passing on what they say and telling of it.

mod connection;
mod header;
mod starttls;
mod trust;

use super::arguments::{Proxy, Words};
use super::live::Live;
use super::scenario::Recording;
use super::{Printed, failure, options, printer, tui};
use connection::{Shared, Upstream};
pub use header::Version;
use keyway_decode::view::{Printer, View};
use keyway_decode::{Report, Tap};
use keyway_host::failure::Failure;
use keyway_host::listeners;
use keyway_host::output;
use keyway_host::signals::Signals;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Forwards until it is told to stop; whether all could be told.
///
/// # Errors
/// Whatever keeps it from listening, or from telling.
pub fn run(proxy: &Proxy) -> Result<bool, Failure> {
    let options = options(&proxy.form, proxy.show_secrets);
    let engine = keyway_drivers::engine();
    let upstream = Upstream::new(proxy, &engine)?;
    let listener = listeners::listen(proxy.listen, "--listen")?;
    let address = listeners::address(&listener)?;
    let mut keeps = Vec::new();
    let accept = trust::acceptor(proxy, &engine, address, &mut keeps)?;
    let tap = Arc::new(Tap::default());
    let shared = Arc::new(Shared::new(proxy, upstream, accept, tap.clone()));
    let (book, stopped) = (tui::Shared::default(), Arc::new(AtomicBool::new(false)));
    let records = proxy.form.words == Some(Words::Scenario);
    let recording = records.then(|| Recording::new(proxy.into.as_deref())).transpose()?;
    let mut printer = match &recording {
        Some(recording) => recording.printer(proxy.filter.clone()),
        None => told(proxy, &book)?,
    };
    let decoding = tap.clone();
    let decoder = thread::spawn(move || {
        decoding.decode(options, &mut printer)?;
        printer.end()
    });
    // One thread forwards: a second would cost each message a wake-up.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    let done = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        ready(proxy, &shared, address)?;
        let screen = proxy.form.tui.then(|| {
            let (source, stopped) = (source(proxy, &shared, address), stopped.clone());
            thread::spawn(move || tui::run(source, true, &[], &book, &stopped))
        });
        let is_left = || screen.as_ref().is_some_and(thread::JoinHandle::is_finished);
        let ended = tokio::select! {
            () = signals.end() => Ok(()),
            () = until(is_left) => Ok(()),
            ended = connection::accept(listener, &shared) => ended,
            // Whoever read what is told has left, or it cannot be written.
            () = until(|| decoder.is_finished()) => Ok(()),
        };
        stopped.store(true, Ordering::Relaxed);
        let shown = screen.map_or(Ok(()), |screen| screen.join().unwrap_or(Ok(())));
        tokio::spawn(signals.end_at_next());
        ended.and(shown)
    });
    tap.end();
    let told = decoder.join().unwrap_or(Ok(()));
    done?;
    let left_out = tap.left_out_bytes();
    if left_out > 0 {
        output::note(format_args!(
            "{left_out} bytes were forwarded and not decoded: too many came"
        ));
    }
    recording.map_or(Ok(()), |recording| recording.write(&[]))?;
    match told {
        Ok(()) => Ok(true),
        Err(why) => failure(why).map_or(Ok(true), Err),
    }
}

/// What writes, sums up or shows what is told.
fn told(proxy: &Proxy, book: &tui::Shared) -> Result<Printed, Failure> {
    if proxy.form.tui {
        tui::check()?;
        let view: Box<dyn View + Send> = Box::new(book.clone());
        return Ok(Printer::new(view, proxy.filter.clone(), Box::new(io::sink())));
    }
    if proxy.report {
        let report = Live::start(Report::new(proxy.rows, proxy.form.json), proxy.every)?;
        let view: Box<dyn View + Send> = Box::new(report);
        return Ok(Printer::new(view, proxy.filter.clone(), Box::new(io::stdout())));
    }
    printer(&proxy.form, proxy.filter.clone(), &[])
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// From where to where.
fn source(proxy: &Proxy, shared: &Shared, address: SocketAddr) -> String {
    let scheme = if shared.is_tls() { "ldaps" } else { "ldap" };
    format!("{scheme}://{} to {}", listeners::at_home(address), proxy.to)
}

/// Says where it listens: where there are lines of JSON as one of them, else on standard error.
fn ready(proxy: &Proxy, shared: &Shared, address: SocketAddr) -> Result<(), Failure> {
    let scheme = if shared.is_tls() { "ldaps" } else { "ldap" };
    let url = format!("{scheme}://{}", listeners::at_home(address));
    if proxy.form.tui {
        return Ok(());
    }
    if proxy.form.json {
        return output::json(&json!({ "event": "ready", "url": url, "to": proxy.to.to_string() }));
    }
    output::note(format_args!("forwards {url} to {}; Ctrl-C stops it", proxy.to));
    if let Some(advice) = shared.advice() {
        output::note(advice);
    }
    Ok(())
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
