//! A server seen over LDAP: Keyway's `cn=monitor`, and the figures in those of slapd and 389 Directory Server.

use crate::ldap::{ConnectOptions, FoundEntry, Login, SearchClient, SearchResult, ServerUrl};
use crate::snapshot::{Facts, ServerLists, ServerSnapshot};
use keyway_codec::message::{ResultCode, Scope};
use keyway_host::failure::Failure;
use keyway_meter::{Distribution, Snapshot};
use std::time::Instant;

const MONITOR: &str = "cn=monitor";
const BACKUPS: &str = "cn=Backups,cn=monitor";
const COUNTERS: &str = "cn=Counters,cn=monitor";
const CONFIG: &str = "cn=config";

/// A connection to a server that is looked at.
pub struct MonitorClient(SearchClient);

impl MonitorClient {
    /// Connects and binds.
    ///
    /// # Errors
    /// If no server is there, or it does not let us in.
    pub fn connect(
        url: &ServerUrl,
        options: &ConnectOptions,
        login: &Login,
    ) -> Result<MonitorClient, Failure> {
        SearchClient::open(url, options, login).map(MonitorClient)
    }

    /// Looks at it; at connections only if they are wanted, since there may be thousands.
    ///
    /// # Errors
    /// If the connection breaks, or the server does not show us its `cn=monitor`.
    pub fn look(&mut self, connections: bool) -> Result<ServerSnapshot, Failure> {
        let filter =
            if connections { "(objectClass=*)" } else { "(!(objectClass=monitorConnection))" };
        let entries = self.search(filter)?;
        if entries.is_empty() {
            return Err(Failure::new(
                "it shows nothing of cn=monitor: bind as a user who may see it (--bind-dn DN \
                 --password-file FILE); with Keyway that is the administrator, or a user that an access \
                  rule lets",
            ));
        }
        Ok(snapshot(&entries))
    }

    /// The lists only, which are not in a page of counters.
    ///
    /// # Errors
    /// As [`MonitorClient::look`].
    pub fn lists(&mut self, connections: bool) -> Result<ServerLists, Failure> {
        let filter = match connections {
            true => "(|(objectClass=monitoredObject)(objectClass=monitorConnection))",
            false => "(objectClass=monitoredObject)",
        };
        Ok(lists(&self.search(filter)?))
    }

    /// Whether the login is an administrator's: whether it may see the server's configuration.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn is_administrator(&mut self) -> Result<bool, Failure> {
        let found = self.0.search(CONFIG, Scope::Base, "(objectClass=*)", &["1.1"])?;
        Ok(!found.entries.is_empty())
    }

    fn search(&mut self, filter: &str) -> Result<Vec<FoundEntry>, Failure> {
        let SearchResult { entries, end } =
            self.0.search(MONITOR, Scope::Subtree, filter, &["*", "+"])?;
        match end {
            Ok(()) => Ok(entries),
            // As much as there is of it is shown.
            Err(why)
                if matches!(why.code, ResultCode::SizeLimitExceeded | ResultCode::NoSuchObject) =>
            {
                Ok(entries)
            }
            Err(why) => Err(Failure::new(format!(
                "the server does not show cn=monitor (say who asks with --bind-dn): {}",
                why.words
            ))),
        }
    }
}

impl FoundEntry {
    fn number(&self, attribute: &str) -> Option<u64> {
        self.value(attribute)?.parse().ok()
    }

    /// Whether it is right below that one.
    fn is_below(&self, parent: &str) -> bool {
        let end = self.dn.len().checked_sub(parent.len() + 1).and_then(|at| self.dn.get(at..));
        let parents = end.and_then(|end| end.strip_prefix(',')).unwrap_or_default();
        parents.eq_ignore_ascii_case(parent)
    }

    /// The properties of the thing that it stands for.
    fn facts(&self) -> Facts {
        let info = self.values.get("monitoredinfo").into_iter().flatten();
        let pairs = info.filter_map(|text| text.split_once('='));
        let mut facts: Facts =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for (name, attribute) in [
            ("connection", "monitorconnectionnumber"),
            ("from", "monitorconnectionpeeraddress"),
            ("who", "monitorconnectionauthzdn"),
            ("requests", "monitorconnectionopsreceived"),
        ] {
            if let Some(value) = self.value(attribute) {
                facts.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        facts
    }
}

fn snapshot(entries: &[FoundEntry]) -> ServerSnapshot {
    let find = |dn: &str| entries.iter().find(|entry| entry.dn.eq_ignore_ascii_case(dn));
    let top = find(MONITOR);
    let version = top.and_then(|top| top.value("monitoredinfo").or(top.value("version")));
    let kind =
        version.unwrap_or("an LDAP server").split(" (").next().unwrap_or_default().to_owned();
    let started = find("cn=Start,cn=Time,cn=monitor").and_then(|it| it.value("monitortimestamp"));
    let started = started.or(top.and_then(|top| top.value("starttime"))).unwrap_or_default();
    let digits: String = started.chars().filter(char::is_ascii_digit).take(14).collect();
    let started_unix_ms = digits.parse().unwrap_or_default();
    let uptime = find("cn=Uptime,cn=Time,cn=monitor");
    let page = |(counters, histograms)| Snapshot { pid: 0, started_unix_ms, counters, histograms };
    let ours = page_below(entries, COUNTERS);
    let missing = match ours {
        Some(_) => None,
        None => Some(format!("{kind} tells less than Keyway: what is empty here is not told.")),
    };
    let directory = Some(page(ours.unwrap_or_else(|| (foreign(entries), Vec::new()))));
    ServerSnapshot {
        at: Instant::now(),
        uptime_s: uptime.and_then(|it| it.value("monitoredinfo")?.parse().ok()),
        kind,
        directory,
        cryptod: page_below(entries, "cn=Cryptod,cn=monitor").map(page),
        lists: ServerLists { missing, ..lists(entries) },
    }
}

type Page = (Vec<(String, u64)>, Vec<(String, Distribution)>);

/// Counters and histograms that are entries.
fn page_below(entries: &[FoundEntry], parent: &str) -> Option<Page> {
    let (mut counters, mut histograms) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(|entry| entry.is_below(parent)) {
        let Some(name) = entry.value("cn").map(str::to_owned) else { continue };
        let mut info = entry.values.get("monitoredinfo").into_iter().flatten();
        match info.find_map(|text| Distribution::from_text(text)) {
            Some(values) => histograms.push((name, values)),
            None => counters.extend(entry.number("monitorcounter").map(|value| (name, value))),
        }
    }
    (!counters.is_empty()).then_some((counters, histograms))
}

fn lists(entries: &[FoundEntry]) -> ServerLists {
    let below = |parent: &str| -> Vec<Facts> {
        entries.iter().filter(|entry| entry.is_below(parent)).map(FoundEntry::facts).collect()
    };
    let with = |parent: &str, name: &str| -> Vec<Facts> {
        below(parent).into_iter().filter(|facts| facts.contains_key(name)).collect()
    };
    ServerLists {
        connections: with("cn=Connections,cn=monitor", "connection"),
        slow: below("cn=Slow,cn=monitor"),
        running: below("cn=Running,cn=monitor"),
        filters: below("cn=Filters,cn=monitor"),
        clients: with("cn=Cryptod,cn=monitor", "weight"),
        backups: entries
            .iter()
            .any(|entry| entry.dn.eq_ignore_ascii_case(BACKUPS))
            .then(|| below(BACKUPS)),
        missing: None,
    }
}

/// Entries and attributes of slapd, and the counters that they are.
const OPENLDAP: [(&str, &str, &str); 15] = [
    ("cn=Bind,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.bind"),
    ("cn=Unbind,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.unbind"),
    ("cn=Search,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.search"),
    ("cn=Compare,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.compare"),
    ("cn=Modify,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.modify"),
    ("cn=Modrdn,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.modify_dn"),
    ("cn=Add,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.add"),
    ("cn=Delete,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.delete"),
    ("cn=Abandon,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.abandon"),
    ("cn=Extended,cn=Operations,cn=monitor", "monitoropcompleted", "ldap.extended"),
    ("cn=Bytes,cn=Statistics,cn=monitor", "monitorcounter", "ldap.bytes_out"),
    ("cn=Entries,cn=Statistics,cn=monitor", "monitorcounter", "ldap.entries_sent"),
    ("cn=Total,cn=Connections,cn=monitor", "monitorcounter", "ldap.connection.opened"),
    ("cn=Current,cn=Connections,cn=monitor", "monitorcounter", "connections"),
    ("cn=Pending,cn=Threads,cn=monitor", "monitoredinfo", "ldap.queue"),
];

/// Entries and attributes of 389 Directory Server, and the counters that they are.
const DS389: [(&str, &str, &str); 14] = [
    (MONITOR, "bytessent", "ldap.bytes_out"),
    (MONITOR, "entriessent", "ldap.entries_sent"),
    (MONITOR, "totalconnections", "ldap.connection.opened"),
    (MONITOR, "currentconnections", "connections"),
    ("cn=snmp,cn=monitor", "simpleauthbinds", "ldap.bind"),
    ("cn=snmp,cn=monitor", "anonymousbinds", "ldap.bind"),
    ("cn=snmp,cn=monitor", "strongauthbinds", "ldap.bind"),
    ("cn=snmp,cn=monitor", "searchops", "ldap.search"),
    ("cn=snmp,cn=monitor", "compareops", "ldap.compare"),
    ("cn=snmp,cn=monitor", "addentryops", "ldap.add"),
    ("cn=snmp,cn=monitor", "removeentryops", "ldap.delete"),
    ("cn=snmp,cn=monitor", "modifyentryops", "ldap.modify"),
    ("cn=snmp,cn=monitor", "modifyrdnops", "ldap.modify_dn"),
    ("cn=snmp,cn=monitor", "errors", "ldap.refused"),
];

/// The counters of a server of another make, by our names.
fn foreign(entries: &[FoundEntry]) -> Vec<(String, u64)> {
    let mut counters: Vec<(String, u64)> = Vec::new();
    for (dn, attribute, name) in OPENLDAP.iter().chain(&DS389) {
        let entry = entries.iter().find(|entry| entry.dn.eq_ignore_ascii_case(dn));
        let Some(value) = entry.and_then(|entry| entry.number(attribute)) else { continue };
        match counters.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => counters.push(((*name).to_owned(), value)),
        }
    }
    let value = |name: &str| counters.iter().find(|(known, _)| known == name).map(|(_, it)| *it);
    if let (Some(opened), Some(open)) = (value("ldap.connection.opened"), value("connections")) {
        counters.push(("ldap.connection.closed".to_owned(), opened.saturating_sub(open)));
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(dn: &str, values: &[(&str, &[&str])]) -> FoundEntry {
        let values = values.iter().map(|(name, values)| {
            ((*name).to_owned(), values.iter().map(|it| (*it).to_owned()).collect())
        });
        FoundEntry { dn: dn.to_owned(), values: values.collect() }
    }

    #[test]
    fn entries_of_ours_are_a_page_and_lists() {
        let snapshot = snapshot(&[
            entry("cn=monitor", &[("monitoredinfo", &["Keyway 0.1.0"])]),
            entry("cn=Start,cn=Time,cn=monitor", &[("monitortimestamp", &["20261124165116Z"])]),
            entry("cn=Uptime,cn=Time,cn=monitor", &[("monitoredinfo", &["61"])]),
            entry(
                "cn=ldap.bind,cn=Counters,cn=monitor",
                &[("cn", &["ldap.bind"]), ("monitorcounter", &["3"])],
            ),
            entry(
                "cn=ldap.time.bind,CN=counters,cn=Monitor",
                &[
                    ("cn", &["ldap.time.bind"]),
                    ("monitorcounter", &["2"]),
                    ("monitoredinfo", &["min 1 mean 3", "sum=6 min=1 max=5 1:1 5:1"]),
                ],
            ),
            entry(
                "cn=2.1 7,cn=Slow,cn=monitor",
                &[
                    ("monitorconnectionnumber", &["2"]),
                    ("monitoredinfo", &["time_us=12", "filter=(cn=?)"]),
                ],
            ),
        ]);
        let page = snapshot.directory.unwrap();
        assert_eq!((page.value("ldap.bind"), page.started_unix_ms), (Some(3), 20_261_124_165_116));
        assert_eq!(page.histogram("ldap.time.bind").map(|it| (it.count, it.max)), Some((2, 5)));
        assert_eq!((snapshot.kind.as_str(), snapshot.uptime_s), ("Keyway 0.1.0", Some(61)));
        let slow = &snapshot.lists.slow[0];
        assert_eq!((slow["filter"].as_str(), slow["connection"].as_str()), ("(cn=?)", "2"));
        assert!(snapshot.cryptod.is_none() && snapshot.lists.connections.is_empty());
    }

    #[test]
    fn other_servers_count_some_of_it() {
        let ds = snapshot(&[
            entry(
                "cn=monitor",
                &[
                    ("version", &["389-Directory/2.3"]),
                    ("totalconnections", &["9"]),
                    ("currentconnections", &["2"]),
                    ("starttime", &["20261124165116Z"]),
                ],
            ),
            entry("cn=snmp,cn=monitor", &[("simpleauthbinds", &["4"]), ("anonymousbinds", &["1"])]),
        ]);
        let page = ds.directory.unwrap();
        assert_eq!(
            (page.value("ldap.bind"), page.value("ldap.connection.closed")),
            (Some(5), Some(7))
        );
        let slapd = snapshot(&[
            entry("cn=Monitor", &[("monitoredinfo", &["OpenLDAP: slapd 2.5.13 (Nov 2026)"])]),
            entry("cn=Search,cn=Operations,cn=Monitor", &[("monitoropcompleted", &["8"])]),
        ]);
        assert_eq!(slapd.kind, "OpenLDAP: slapd 2.5.13");
        assert_eq!(slapd.directory.unwrap().value("ldap.search"), Some(8));
    }
}
