//! What else is looked at while a run goes on, each by a thread of its own: numbers of an entry, and how
//! long a change takes to be seen elsewhere.

mod client;

use crate::error::Error;
use crate::limits::{MONITOR_EVERY, REPLICATION_MAX};
use crate::run::server;
use crate::scenario::Scenario;
use crate::scenario::monitors::{Monitor, Watched};
use crate::worker::Server;
use client::Client;
use keyway_codec::Op;
use keyway_codec::message::{
    Attribute, Change, ChangeOperation, Deref, Message, ModifyRequest, Scope, SearchRequest,
};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// A value that is older is none.
const FRESH: Duration = MONITOR_EVERY.saturating_mul(2);
/// From one look for a change to the next.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// What was seen last.
#[derive(Debug, Default)]
struct Seen {
    values: BTreeMap<Arc<str>, (f64, Instant)>,
    /// Why something was not seen, once for each.
    troubles: BTreeMap<Arc<str>, String>,
}

/// Monitors at work; they end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    names: Vec<Arc<str>>,
    seen: Arc<Mutex<Seen>>,
    /// Dropped, so that they end.
    _ends: Vec<Sender<()>>,
}

/// One of them.
struct Watch<'s> {
    names: Vec<Arc<str>>,
    servers: Vec<Server>,
    tls: Option<Arc<ClientConfig>>,
    start_tls: bool,
    monitor: &'s Monitor,
    seen: Arc<Mutex<Seen>>,
}

impl Monitors {
    /// Has them look while `work` is done.
    pub(crate) fn watching<T>(
        scenario: &Scenario,
        provider: &Arc<CryptoProvider>,
        work: impl FnOnce(Monitors) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if scenario.monitors.is_empty() {
            return work(Monitors::default());
        }
        let tls = scenario.trust.config(provider)?;
        let (mut monitors, mut watches) = (Monitors::default(), Vec::new());
        for monitor in &scenario.monitors {
            let urls = match &monitor.watched {
                Watched::Entry { url, .. } => vec![url],
                Watched::Replication { write, read, .. } => vec![write, read],
            };
            let servers = urls.into_iter().map(|url| server(url, scenario));
            let names: Vec<Arc<str>> =
                monitor.names.iter().map(|name| name.as_str().into()).collect();
            monitors.names.extend(names.iter().cloned());
            watches.push(Watch {
                names,
                servers: servers.collect::<Result<_, _>>()?,
                tls: Some(tls.clone()),
                start_tls: scenario.start_tls,
                monitor,
                seen: monitors.seen.clone(),
            });
        }
        thread::scope(|scope| {
            for watch in watches {
                let (end, ended) = channel();
                monitors._ends.push(end);
                let builder = thread::Builder::new().name("load monitor".into());
                let spawned = builder.spawn_scoped(scope, move || watch.all(&ended));
                spawned.map_err(|why| Error::System("start a thread", why))?;
            }
            work(monitors)
        })
    }

    /// What was seen in the last second, by name.
    pub(crate) fn look(&self) -> Vec<(Arc<str>, Option<f64>)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |name: &Arc<str>| {
            let value = seen.values.get(name).filter(|(_, at)| at.elapsed() < FRESH);
            (name.clone(), value.map(|(value, _)| *value))
        };
        self.names.iter().map(fresh).collect()
    }

    /// What could not be seen, and why.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.troubles.iter().map(|(name, why)| format!("{name}: {why}")).collect()
    }
}

impl Watch<'_> {
    /// Looks once a second until the end; connects again where a connection is gone.
    fn all(&self, ended: &Receiver<()>) {
        while let Err(why) = self.connected(ended) {
            for name in &self.names {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.troubles.insert(name.clone(), why.to_string());
            }
            if is_over(ended, MONITOR_EVERY) {
                return;
            }
        }
    }

    fn connected(&self, ended: &Receiver<()>) -> io::Result<()> {
        let open = |server| {
            Client::open(server, self.tls.as_ref(), self.start_tls, self.monitor.bind.as_ref())
        };
        let mut clients = self.servers.iter().map(open).collect::<io::Result<Vec<Client>>>()?;
        match (&self.monitor.watched, clients.as_mut_slice()) {
            (Watched::Entry { dn, attributes, growth, .. }, [client]) => {
                self.entry(client, dn, attributes, *growth, ended)
            }
            (Watched::Replication { dn, attribute, .. }, [write, read]) => {
                self.replication(write, read, dn, attribute, ended)
            }
            _ => Ok(()),
        }
    }

    fn say(&self, name: &Arc<str>, value: f64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.values.insert(name.clone(), (value, Instant::now()));
    }

    fn entry(
        &self,
        client: &mut Client,
        dn: &str,
        attributes: &[String],
        growth: bool,
        ended: &Receiver<()>,
    ) -> io::Result<()> {
        let mut last: Vec<Option<(f64, Instant)>> = vec![None; attributes.len()];
        loop {
            let at = Instant::now();
            let numbers = numbers(client, dn, attributes)?;
            for ((name, number), last) in self.names.iter().zip(numbers).zip(&mut last) {
                let before = last.replace((number, at)).filter(|_| growth);
                match before {
                    Some((before, then)) => {
                        self.say(name, (number - before) / (at - then).as_secs_f64().max(1e-3));
                    }
                    None if growth => {}
                    None => self.say(name, number),
                }
            }
            if is_over(ended, MONITOR_EVERY.saturating_sub(at.elapsed())) {
                return Ok(());
            }
        }
    }

    fn replication(
        &self,
        write: &mut Client,
        read: &mut Client,
        dn: &str,
        attribute: &str,
        ended: &Receiver<()>,
    ) -> io::Result<()> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let [name] = self.names.as_slice() else { return Ok(()) };
        for turn in 0.. {
            let value = format!("keyway load {}.{turn}", since.as_nanos());
            let attribute_value =
                Attribute { description: attribute.into(), values: vec![value.as_bytes().into()] };
            let operation = ChangeOperation::Replace;
            let changes = vec![Change { operation, attribute: attribute_value }];
            write.ask(Op::ModifyRequest(ModifyRequest { dn, changes }), &mut |_| ())?;
            let written = Instant::now();
            while self::values(read, dn, &[attribute.to_owned()])?.first() != Some(&value) {
                if written.elapsed() > REPLICATION_MAX {
                    let why = format!("a change was not seen after {REPLICATION_MAX:?}");
                    return Err(io::Error::other(why));
                }
                if is_over(ended, LOOK_EVERY) {
                    return Ok(());
                }
            }
            self.say(name, written.elapsed().as_secs_f64() * 1e3);
            if is_over(ended, MONITOR_EVERY) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Waits so long; says whether the end has come meanwhile.
fn is_over(ended: &Receiver<()>, at_most: Duration) -> bool {
    !matches!(ended.recv_timeout(at_most), Err(RecvTimeoutError::Timeout))
}

/// The first value of each attribute of an entry, as a number.
fn numbers(client: &mut Client, dn: &str, attributes: &[String]) -> io::Result<Vec<f64>> {
    let values = values(client, dn, attributes)?;
    let number = |(value, attribute): (&String, &String)| {
        let wrong = || match value.is_empty() {
            true => io::Error::other(format!("{dn} has no {attribute} that we may read")),
            false => io::Error::other(format!("{attribute} is no number: '{value}'")),
        };
        value.trim().parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong)
    };
    values.iter().zip(attributes).map(number).collect()
}

/// The first value of each attribute of an entry; empty where there is none.
fn values(client: &mut Client, dn: &str, attributes: &[String]) -> io::Result<Vec<String>> {
    let search = SearchRequest {
        base: dn,
        scope: Scope::Base,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter: keyway_codec::Filter::Present(Cow::Borrowed("objectClass")),
        attributes: attributes.iter().map(String::as_str).collect(),
    };
    let mut values = vec![String::new(); attributes.len()];
    client.ask(Op::SearchRequest(search), &mut |message: &Message<'_>| {
        let Op::SearchResultEntry(entry) = &message.op else { return };
        for (value, wanted) in values.iter_mut().zip(attributes) {
            let mut found = entry.attributes.iter();
            let found = found.find(|found| found.description.eq_ignore_ascii_case(wanted));
            if let Some(first) = found.and_then(|found| found.values.first()) {
                *value = String::from_utf8_lossy(first).into_owned();
            }
        }
    })?;
    Ok(values)
}
