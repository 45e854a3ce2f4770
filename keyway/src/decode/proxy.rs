//! `keyway decode proxy`: between clients and a server, passing on what they say and telling of it.

mod trust;

use super::arguments::{Proxy, Words};
use super::printing::{Printed, into_folder, options, printer, recorder, report};
use super::tui;
use keyway_decode::Tap;
use keyway_decode::browse::SharedItems;
use keyway_decode::io::file::failure;
use keyway_decode::io::proxy::{Proxy as Forwarder, ProxyOptions};
use keyway_decode::view::{Printer, View};
use keyway_host::failure::Failure;
use keyway_host::listeners;
use keyway_host::output;
use keyway_host::signals::Signals;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Forwards until it is told to stop; whether all could be told.
///
/// # Errors
/// Whatever keeps it from listening, or from telling.
pub fn run(proxy: &Proxy) -> Result<bool, Failure> {
    let options = options(&proxy.form, proxy.show_secrets);
    let engine = keyway_drivers::engine();
    let with_server = trust::with_server(proxy, &engine)?;
    let listener = listeners::listen(proxy.listen, "--listen")?;
    let address = listeners::address(&listener)?;
    let mut keeps = Vec::new();
    let with_clients = trust::with_clients(proxy, &engine, address, &mut keeps)?;
    let advice = advice(proxy, with_clients.is_some());
    let tap = Arc::new(Tap::default());
    let forwarding = ProxyOptions {
        to: proxy.to.clone(),
        with_server,
        with_clients,
        tls: proxy.tls,
        header: proxy.proxy_protocol.map(Into::into),
    };
    let forwarder = Forwarder::new(forwarding, tap.clone())?;
    let (items, stopped) = (SharedItems::default(), Arc::new(AtomicBool::new(false)));
    let records = proxy.form.words == Some(Words::Scenario);
    let recording = records.then(|| into_folder(proxy.into.as_deref())).transpose()?;
    let mut printer = match &recording {
        Some(recording) => recorder(recording, proxy.filter.clone()),
        None => told(proxy, &items)?,
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
        ready(proxy, address, advice)?;
        let screen = proxy.form.tui.then(|| {
            let (source, stopped) = (source(proxy, address), stopped.clone());
            let inputs = inputs(proxy);
            thread::spawn(move || tui::run(source, true, &inputs, &items, &stopped))
        });
        let is_left = || screen.as_ref().is_some_and(thread::JoinHandle::is_finished);
        let ended = tokio::select! {
            () = signals.end() => Ok(()),
            () = until(is_left) => Ok(()),
            ended = forwarder.accept(listener, &|text| output::note(text)) => ended,
            // The reader of what is told has left, or it cannot be written.
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
    if let Some(recording) = recording {
        output::text(recording.write(&inputs(proxy))?)?;
    }
    match told {
        Ok(()) => Ok(true),
        Err(why) => failure(why).map_or(Ok(true), Err),
    }
}

/// The printer that writes, sums up or shows what is told.
fn told(proxy: &Proxy, items: &SharedItems) -> Result<Printed, Failure> {
    if proxy.form.tui {
        tui::check()?;
        let view: Box<dyn View + Send> = Box::new(items.clone());
        return Ok(Printer::new(view, proxy.filter.clone(), Box::new(io::sink())));
    }
    if proxy.report {
        let view: Box<dyn View + Send> =
            Box::new(report(proxy.rows, proxy.form.json, proxy.every)?);
        return Ok(Printer::new(view, proxy.filter.clone(), Box::new(io::stdout())));
    }
    printer(&proxy.form, proxy.filter.clone(), &inputs(proxy))
}

/// The files that are read, and not to be written over.
fn inputs(proxy: &Proxy) -> Vec<PathBuf> {
    [&proxy.certificate, &proxy.key, &proxy.ca].into_iter().flatten().cloned().collect()
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// From where to where.
fn source(proxy: &Proxy, address: SocketAddr) -> String {
    format!("{} to {}", own_url(proxy, address), proxy.to)
}

/// Where clients connect to.
fn own_url(proxy: &Proxy, address: SocketAddr) -> String {
    let scheme = if proxy.tls { "ldaps" } else { "ldap" };
    format!("{scheme}://{}", listeners::at_home(address))
}

/// Advice on TLS for the user who starts it.
fn advice(proxy: &Proxy, has_certificate: bool) -> Option<&'static str> {
    match has_certificate {
        true => Some(
            "TLS ends here: clients have to trust this certificate; certificates of clients, and \
             so SASL EXTERNAL, do not get to the server",
        ),
        false if !proxy.to.tls => Some(
            "what follows a StartTLS is passed on and not read; with --certificate and --key, or \
             --data, the proxy takes part in it",
        ),
        false => None,
    }
}

/// Says where it listens: where there are lines of JSON as one of them, else on standard error.
fn ready(proxy: &Proxy, address: SocketAddr, advice: Option<&str>) -> Result<(), Failure> {
    let url = own_url(proxy, address);
    if proxy.form.tui {
        return Ok(());
    }
    if proxy.form.json {
        return output::json(&json!({ "event": "ready", "url": url, "to": proxy.to.to_string() }));
    }
    output::note(format_args!("forwards {url} to {}; Ctrl-C stops it", proxy.to));
    if let Some(advice) = advice {
        output::note(advice);
    }
    Ok(())
}
