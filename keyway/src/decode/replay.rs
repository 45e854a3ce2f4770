//! `keyway decode replay`: the requests of a capture sent to a server again, and what comes of them
//! compared.

mod connection;

use super::arguments::Replay;
use super::{keys, reading};
use crate::limits::{REPLAY_CONNECTIONS_MAX, REPLAY_PASSWORDS_BYTES_MAX};
use connection::{Server, replay};
use keyway_decode::replay::{Comparison, List, Now, Passwords, Recorder, Request, Script, Speed};
use keyway_decode::view::Printer;
use keyway_decode::{Decoder, Options, Secrets};
use keyway_folder::data::is_secret;
use keyway_host::failure::{Failure, plain};
use keyway_host::limits::raise_open_files;
use keyway_host::output::{self, grouped};
use keyway_host::signals::Signals;
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinSet, LocalSet};
use zeroize::Zeroizing;

/// Sends them; whether all came to the same.
///
/// # Errors
/// Whatever keeps it from reading the capture, or from sending anything at all.
pub fn run(arguments: &Replay) -> Result<bool, Failure> {
    let passwords = passwords(arguments)?;
    let engine = keyway_drivers::engine();
    let server = Server::new(arguments, &keyway_tls::provider(&engine))?;
    let recorder = Recorder::new(passwords);
    let printer = Printer::new(recorder, arguments.filter.clone(), io::sink());
    // Which requests have passwords is found out where they are; none goes further unasked.
    let options = Options { secrets: Secrets::Shown, keep_answers: false };
    let decoder = Decoder::new(&arguments.ports, options);
    let decoder = decoder.with_keys(keys(arguments.keylog.as_deref())?);
    let (send, recorded) = channel();
    let is_whole = reading::run(&arguments.files, decoder, printer, move |recorder, stopped| {
        // Whoever reads the capture has gone only if the program ends.
        let _ = (!stopped).then(|| send.send(recorder.script()));
        Ok(())
    })?;
    let Ok(script) = recorded.recv() else {
        return Err(Failure::new("stopped while the capture was read; nothing was sent"));
    };
    announce(arguments, &script);
    raise_open_files();
    let telling = Telling::new(arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {}", plain(&why))))?;
    let left_out = script.left_out.clone();
    let sent_all = runtime.block_on(LocalSet::new().run_until(async {
        server.probe().await?;
        let mut signals = Signals::catch()?;
        let all = send_all(script, arguments.speed, server, &telling);
        let sent_all = tokio::select! {
            () = all => true,
            () = signals.end() => false,
            // Nobody hears any more what comes of it.
            () = telling.0.unheard.notified() => false,
        };
        Ok::<_, Failure>(sent_all)
    }))?;
    let is_same = telling.end(sent_all, &left_out)?;
    Ok(is_same && sent_all && is_whole)
}

fn passwords(arguments: &Replay) -> Result<Passwords, Failure> {
    if arguments.captured_passwords {
        return Ok(Passwords::Captured);
    }
    if arguments.bind_dn.is_some() {
        return Ok(Passwords::Ours);
    }
    let Some(path) = &arguments.passwords else { return Ok(Passwords::None) };
    let text = secret(path, REPLAY_PASSWORDS_BYTES_MAX)?;
    let list = List::parse(&text).map_err(|line| {
        let path = path.display();
        Failure::new(format!("{path}, line {line}: it should be a name, a tab and a password"))
    })?;
    Ok(Passwords::Listed(list))
}

/// Reads a file of secrets that has no more than so many bytes.
fn secret(path: &Path, bytes_max: u64) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let wrong = |why: io::Error| Failure::system("read", path, &why);
    let mut text = Zeroizing::new(Vec::new());
    let file = File::open(path).map_err(wrong)?;
    is_secret(path, &file)?;
    file.take(bytes_max + 1).read_to_end(&mut text).map_err(wrong)?;
    if text.len() as u64 > bytes_max {
        let path = path.display();
        return Err(Failure::new(format!("{path} is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

/// Says what is sent, and what is not.
fn announce(arguments: &Replay, script: &Script) {
    let requests: usize = script.conversations.iter().map(|one| one.requests.len()).sum();
    output::note(format_args!(
        "sends {} requests on {} connections to {}",
        grouped(requests as u64),
        grouped(script.conversations.len() as u64),
        arguments.to
    ));
    for (what, count) in &script.left_out {
        output::note(format_args!("left out: {} {what}", grouped(*count)));
    }
    if script.without_passwords() > 0 {
        output::note(
            "passwords are sent with --captured-passwords, or in binds with --passwords FILE; or \
             --bind-dn binds for every connection",
        );
    }
}

/// Sends each connection's requests when they are due.
async fn send_all(script: Script, speed: Speed, server: Server, telling: &Telling) {
    let first_ns = script.conversations.first().map_or(0, |one| one.start_ns);
    let places = match speed {
        Speed::Max => script.open_max.clamp(1, REPLAY_CONNECTIONS_MAX),
        Speed::Times(_) => REPLAY_CONNECTIONS_MAX,
    };
    let (places, server) = (Arc::new(Semaphore::new(places)), Rc::new(server));
    let clock = Clock { begin: Instant::now(), first_ns, speed };
    let mut running = JoinSet::new();
    for conversation in script.conversations {
        clock.wait_until(conversation.start_ns).await;
        // It is never closed.
        let place = places.clone().acquire_owned().await;
        let (server, telling) = (server.clone(), telling.clone());
        running.spawn_local(async move {
            replay(&conversation, &clock, &server, &telling).await;
            drop(place);
        });
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

/// When what was captured at a time is due.
#[derive(Clone, Copy)]
struct Clock {
    begin: Instant,
    first_ns: u64,
    speed: Speed,
}

impl Clock {
    fn due(&self, time_ns: u64) -> Instant {
        let since_ns = self.speed.due_ns(time_ns.saturating_sub(self.first_ns));
        self.begin + Duration::from_nanos(since_ns)
    }

    async fn wait_until(&self, time_ns: u64) {
        let due = self.due(time_ns);
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
    }
}

/// Says what comes of requests, and sums it up.
#[derive(Clone)]
struct Telling(Rc<Told>);

struct Told {
    comparison: RefCell<Comparison>,
    json: bool,
    rows: u64,
    told: Cell<u64>,
    /// Why nothing can be said any more.
    failed: RefCell<Option<Failure>>,
    unheard: Notify,
    not_opened: Cell<u64>,
}

impl Telling {
    fn new(arguments: &Replay) -> Telling {
        Telling(Rc::new(Told {
            comparison: RefCell::default(),
            json: arguments.json,
            rows: arguments.rows,
            told: Cell::new(0),
            failed: RefCell::new(None),
            unheard: Notify::new(),
            not_opened: Cell::new(0),
        }))
    }

    /// What came of a request.
    fn result(&self, connection: u64, request: &Request, now: Now) {
        let told = &self.0;
        let mut comparison = told.comparison.borrow_mut();
        let Some(difference) = comparison.add(connection, request, now) else { return };
        if told.told.get() >= told.rows || told.failed.borrow().is_some() {
            return;
        }
        told.told.set(told.told.get() + 1);
        let said = match told.json {
            true => output::json(&difference.value()),
            false => output::text(difference),
        };
        if let Err(why) = said {
            *told.failed.borrow_mut() = Some(why);
            told.unheard.notify_one();
        }
    }

    /// A request was sent so long after its time.
    fn late(&self, late: Duration) {
        let ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.0.comparison.borrow_mut().was_late(ns);
    }

    /// The server does not take the account: nothing is sent any more.
    fn refused(&self, why: &str) {
        let mut failed = self.0.failed.borrow_mut();
        failed.get_or_insert_with(|| Failure::refused(why));
        self.0.unheard.notify_one();
    }

    /// A connection is of no use, for this reason. Where that is so for many, a few are told.
    fn connection(&self, number: u64, why: &str) {
        if self.0.failed.borrow().is_some() {
            return;
        }
        let count = self.0.not_opened.get() + 1;
        self.0.not_opened.set(count);
        if count <= 3 {
            output::note(format_args!("c{number}: {why}"));
        }
    }

    /// Says what all came to; whether that is what it did before.
    fn end(&self, sent_all: bool, left_out: &BTreeMap<&'static str, u64>) -> Result<bool, Failure> {
        let told = &self.0;
        if let Some(why) = told.failed.borrow_mut().take() {
            return Err(why);
        }
        let comparison = told.comparison.borrow();
        if told.not_opened.get() > 3 {
            output::note(format_args!("and {} connections more", told.not_opened.get() - 3));
        }
        if told.json {
            let mut value = comparison.value();
            value["left_out"] = json!(left_out);
            value["complete"] = json!(sent_all);
            output::json(&value)?;
        } else {
            output::text(comparison.table().trim_end())?;
            self.summary(&comparison, sent_all)?;
        }
        Ok(comparison.different == 0)
    }

    fn summary(&self, comparison: &Comparison, sent_all: bool) -> Result<(), Failure> {
        let Comparison { sent, same, different, unknown, .. } = comparison;
        let mut text = format!(
            "\n{} requests sent: {} answered as when captured, {} otherwise",
            grouped(*sent),
            grouped(*same),
            grouped(*different)
        );
        if *unknown > 0 {
            text.push_str(&format!("; {} have no answer in the capture", grouped(*unknown)));
        }
        let untold = different.saturating_sub(self.0.told.get());
        if untold > 0 {
            text.push_str(&format!("; {} differences not told (--rows)", grouped(untold)));
        }
        let (p99_ns, max_ns) = comparison.late_ns();
        if max_ns > 0 {
            let ms = |ns: u64| ns as f64 / 1e6;
            text.push_str(&format!(
                "\nsent late, answers waited for included: p99 {:.3} ms, max {:.3} ms",
                ms(p99_ns),
                ms(max_ns)
            ));
        }
        if !sent_all {
            text.push_str("\nstopped before the end");
        }
        output::text(text)
    }
}
