//! A server as the page sees it: its snapshots, and what a data folder says beside them.

use crate::limits::BACKUPS_SHOWN_MAX;
use crate::monitor::{Detail, Source};
use keyway_folder::control::Control;
use keyway_folder::data::name;
use keyway_folder::history::{self as history, Done};
use keyway_host::timestamp::Timestamp;
use keyway_load::{Host, HostUse};
use keyway_meter::{Distribution, Snapshot};
use keyway_ring::control::KeyInfo;
use keyway_watch::ldap::{ConnectOptions, Login, ServerUrl};
use keyway_watch::{ServerFolder, ServerSnapshot, SnapshotSource};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use time::{Date, Month};

/// An index that searches lack.
#[derive(Clone, Debug, Serialize)]
pub struct IndexAdvice {
    /// The attribute.
    pub attribute: String,
    /// The kind of index.
    pub index: String,
    /// The line for `[indexes]` of the configuration that makes it.
    pub line: String,
}

/// Says which indexes the searches lack that a page of counters has counted.
pub type Advisor = Box<dyn FnMut(&Snapshot) -> Vec<IndexAdvice> + Send>;

/// A server that is looked at, over LDAP or on its data folder.
pub struct ServerSource {
    source: SnapshotSource,
    /// Its data folder, if it is of this machine.
    folder: Option<PathBuf>,
    advisor: Advisor,
    /// The text to show where it has no figures, if it is of another make.
    missing: Option<String>,
    /// This machine, if it runs here.
    host: Option<Host>,
}

impl ServerSource {
    /// The processes on a data folder of this machine.
    #[must_use]
    pub fn folder(
        folder: ServerFolder,
        options: ConnectOptions,
        login: Login,
        advisor: Advisor,
    ) -> ServerSource {
        let (path, host) = (Some(folder.path.clone()), Some(Host::new()));
        let source = SnapshotSource::folder(folder, options, login);
        ServerSource { source, folder: path, advisor, missing: None, host }
    }

    /// The server at a URL.
    #[must_use]
    pub fn server(url: ServerUrl, options: ConnectOptions, login: Login) -> ServerSource {
        let source = SnapshotSource::server(url, options, login);
        // Over LDAP no configuration is seen that advice could be held against.
        let advisor: Advisor = Box::new(|_| Vec::new());
        ServerSource { source, folder: None, advisor, missing: None, host: None }
    }

    fn snapshot(&mut self, connections: bool) -> Result<ServerSnapshot, String> {
        self.source.look(connections).map_err(|why| why.to_string())
    }

    /// The daemon's keys, if it tells us.
    fn keys(&self) -> Result<Vec<Value>, String> {
        let folder = self.folder.as_ref().ok_or("its keys are not told over LDAP")?;
        let control = Control::connect(&name::socket_at(folder), "keyway web");
        let keys = control.and_then(|control| control.keys()).map_err(|why| why.to_string())?;
        Ok(keys.iter().map(key).collect())
    }
}

impl Source for ServerSource {
    fn look(&mut self) -> Result<Snapshot, String> {
        let snapshot = self.source.counters().map_err(|why| why.to_string())?;
        self.missing = snapshot.lists.missing.filter(|_| self.folder.is_none());
        let page = snapshot.directory.ok_or("the directory does not run there")?;
        Ok(match self.folder {
            Some(_) => page,
            None => {
                Snapshot { started_unix_ms: unix_ms(page.started_unix_ms).unwrap_or(0), ..page }
            }
        })
    }

    fn host(&mut self) -> Option<HostUse> {
        self.host.as_mut()?.look()
    }

    fn missing(&self) -> Option<String> {
        self.missing.clone()
    }

    fn detail(&mut self, what: Detail) -> Result<Value, String> {
        if what == Detail::Backups {
            return self.backups();
        }
        let snapshot = self.snapshot(what == Detail::Connections)?;
        let mut said = match what {
            Detail::Slow => {
                json!({ "operations": snapshot.lists.slow, "running": snapshot.lists.running })
            }
            Detail::Connections => json!({ "connections": snapshot.lists.connections }),
            Detail::Filters => {
                let advice = snapshot.directory.as_ref().map(|page| (self.advisor)(page));
                json!({ "ways": snapshot.lists.filters, "advice": advice.unwrap_or_default() })
            }
            Detail::Crypto | Detail::Backups => json!({ "daemon": self.daemon(&snapshot) }),
        };
        if let (Some(why), Some(said)) = (&snapshot.lists.missing, said.as_object_mut()) {
            said.insert("missing".into(), why.as_str().into());
        }
        Ok(said)
    }
}

impl ServerSource {
    /// Imports, exports and checks, by the folder's file or over LDAP by `cn=monitor`.
    fn backups(&mut self) -> Result<Value, String> {
        let done: Vec<Done> = match &self.folder {
            Some(folder) => history::read(folder),
            None => {
                let told = self.snapshot(false)?.lists.backups;
                let told =
                    told.ok_or("This server does not tell when it was exported or checked.")?;
                told.iter().filter_map(Done::of_facts).collect()
            }
        };
        let (export, check) = (history::last_backup(&done), history::last_check(&done));
        let warnings = history::warnings(&done, Timestamp::now());
        let done = done.get(done.len().saturating_sub(BACKUPS_SHOWN_MAX)..).unwrap_or_default();
        Ok(json!({ "done": done, "export": export, "check": check, "warnings": warnings }))
    }

    fn daemon(&self, snapshot: &ServerSnapshot) -> Value {
        let Some(page) = &snapshot.cryptod else { return Value::Null };
        let (mut counts, mut times) = (Map::new(), Map::new());
        for (name, value) in &page.counters {
            counts.insert(name.clone(), (*value).into());
        }
        for (name, values) in page.histograms.iter().filter(|(_, values)| values.count > 0) {
            times.insert(name.clone(), json!({ "since_start": shown(values) }));
        }
        let (keys, why) = match self.keys() {
            Ok(keys) => (keys, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        json!({
            "counts": counts, "times": times, "clients": snapshot.lists.clients, "keys": keys, "why": why,
        })
    }
}

/// Over LDAP a start is told as the digits of a time: `20261124165116`.
fn unix_ms(digits: u64) -> Option<u64> {
    let part = |unit: u64| u8::try_from(digits / unit % 100).ok();
    let year = i32::try_from(digits / 10_000_000_000).ok()?;
    let month = Month::try_from(part(100_000_000)?).ok()?;
    let day = Date::from_calendar_date(year, month, part(1_000_000)?).ok()?;
    let time = day.with_hms(part(10_000)?, part(100)?, part(1)?).ok()?;
    u64::try_from(time.assume_utc().unix_timestamp()).ok()?.checked_mul(1_000)
}

fn shown(values: &Distribution) -> Value {
    json!({
        "count": values.count, "mean": values.mean() as u64, "p50": values.percentile(50.0),
        "p99": values.percentile(99.0), "max": values.max,
    })
}

fn key(key: &KeyInfo) -> Value {
    json!({
        "name": key.name, "algorithms": key.policy.algorithms, "version": key.version,
        "state": key.state, "made_ms": key.created.saturating_mul(1_000), "uses": key.uses,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn starts_are_told_in_digits() {
        assert_eq!(super::unix_ms(20_261_124_165_116), Some(1_795_539_076_000));
        assert_eq!(super::unix_ms(0), None);
        assert_eq!(super::unix_ms(u64::MAX), None);
    }
}
