//! Monitors, each on a thread of its own while a run goes on: numbers of an entry, how long a change
//! takes to be seen elsewhere, a Keyway server's page.

mod entry;
mod page;
mod watch;

use crate::client::Client;
use crate::error::Error;
use crate::limits::{MONITOR_EVERY, MONITOR_PATIENCE};
use crate::scenario::Scenario;
use crate::scenario::monitors::MonitorKind;
use crate::server::resolve;
use crate::target::Url;
use rustls::crypto::CryptoProvider;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use watch::{Seen, Watch, is_over, lock};

/// A value that is older is none.
const FRESH: Duration = MONITOR_EVERY.saturating_mul(2);

/// Monitors at work; they end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    names: Vec<Arc<str>>,
    seen: Arc<Mutex<Seen>>,
    /// Dropped, so that they end.
    _ends: Vec<Sender<()>>,
}

impl Monitors {
    /// Has them look while `work` is done. One that cannot see anything says so, and tries again; only if it
    /// is required that is an error.
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
            let names: Vec<Arc<str>> =
                monitor.names.iter().map(|name| name.as_str().into()).collect();
            monitors.names.extend(names.iter().cloned());
            let watch = Watch {
                names,
                monitor,
                tls: tls.clone(),
                start_tls: scenario.start_tls,
                seen: monitors.seen.clone(),
                trouble: None,
            };
            if monitor.is_required {
                let cannot =
                    |why| Error::Server(format!("monitor {}: not reached: {why}", watch.title()));
                watch.reach().map_err(cannot)?;
            }
            watches.push(watch);
        }
        thread::scope(|scope| {
            for mut watch in watches {
                let (end, ended) = channel();
                monitors._ends.push(end);
                let builder = thread::Builder::new().name("load monitor".into());
                let spawned = builder.spawn_scoped(scope, move || watch.all(&ended));
                spawned.map_err(|why| Error::System("start a thread", why))?;
            }
            work(monitors)
        })
    }

    /// The values of the last second, by name.
    pub(crate) fn look(&self) -> Vec<(Arc<str>, Option<f64>)> {
        let seen = lock(&self.seen);
        let fresh = |name: &Arc<str>| {
            let value = seen.values.get(name).filter(|(_, at)| at.elapsed() < FRESH);
            (name.clone(), value.map(|(value, _)| *value))
        };
        self.names.iter().map(fresh).collect()
    }

    /// The news since the last call.
    pub(crate) fn news(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.seen).news)
    }

    /// The figures that could not be read, and why.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        seen.troubles.iter().map(|(name, why)| format!("{name}: {why}")).collect()
    }
}

impl Watch<'_> {
    /// Looks once a second until the end; again from the beginning where something breaks.
    fn all(&mut self, ended: &Receiver<()>) {
        while let Err(why) = self.watch(ended) {
            // An account that the server does not take is not tried again.
            let is_refused = why.kind() == io::ErrorKind::PermissionDenied;
            self.lost(&why.to_string(), !is_refused);
            if is_refused || is_over(ended, MONITOR_EVERY) {
                return;
            }
        }
    }

    /// Sees whether there is something to look at.
    fn reach(&self) -> io::Result<()> {
        match &self.monitor.kind {
            MonitorKind::Entry { url, .. } => self.client(url).map(|_| ()),
            MonitorKind::Replication { write, read, .. } => {
                self.client(write).and_then(|_| self.client(read)).map(|_| ())
            }
            MonitorKind::Page { directory, .. } => page::open(directory).map(|_| ()),
        }
    }

    fn watch(&mut self, ended: &Receiver<()>) -> io::Result<()> {
        let not_reached =
            |why: io::Error| io::Error::new(why.kind(), format!("not reached: {why}"));
        let monitor = self.monitor;
        match &monitor.kind {
            MonitorKind::Entry { url, dn, attributes, growth } => {
                let mut client = self.client(url).map_err(not_reached)?;
                self.entry(&mut client, dn, attributes, *growth, ended)
            }
            MonitorKind::Replication { write, read, dn, attribute } => {
                let mut write = self.client(write).map_err(not_reached)?;
                let mut read = self.client(read).map_err(not_reached)?;
                self.replication(&mut write, &mut read, dn, attribute, ended)
            }
            MonitorKind::Page { directory, cryptod, figures } => {
                self.page(directory, cryptod.as_deref(), figures, ended)
            }
        }
    }

    /// Connects, with TLS and a bind where that is wanted.
    fn client(&self, url: &Url) -> io::Result<Client> {
        let server = resolve(url, self.start_tls, MONITOR_PATIENCE).map_err(io::Error::other)?;
        Client::open(&server, Some(&self.tls), self.start_tls, self.monitor.bind.as_ref())
    }
}
