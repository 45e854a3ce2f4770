//! A server seen over LDAP: its `cn=monitor`, and what slapd's and 389's have of the same.

use super::sight::{Facts, Lists, Sight};
use crate::failure::{Failure, plain};
use crate::ldap::{Connection, Manner, Url};
use keyway_codec::Filter;
use keyway_codec::ber;
use keyway_codec::message::{
    Authentication, BindRequest, Deref, LdapResult, Message, Op, ResultCode, Scope, SearchRequest,
};
use keyway_meter::{Distribution, Snapshot};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::time::Instant;
use zeroize::Zeroizing;

/// Bytes of one answer, and of all answers to one question.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const ANSWER_BYTES_MAX: usize = 256 << 20;
const READ_BYTES: usize = 64 << 10;

const MONITOR: &str = "cn=monitor";
const BACKUPS: &str = "cn=Backups,cn=monitor";
const COUNTERS: &str = "cn=Counters,cn=monitor";
const CONFIG: &str = "cn=config";

/// Who asks: a name and its password.
pub type Login = Option<(String, Zeroizing<Vec<u8>>)>;

/// A connection to a server that is looked at.
pub struct Remote {
    stream: Box<dyn Connection>,
    read: Vec<u8>,
    id: u32,
}

/// An entry: its name, and its values by the names of attributes in small letters.
struct Entry {
    dn: String,
    values: HashMap<String, Vec<String>>,
}

impl Remote {
    /// Connects and binds.
    ///
    /// # Errors
    /// If nobody is there, or he does not let us in.
    pub fn connect(url: &Url, manner: &Manner, login: &Login) -> Result<Remote, Failure> {
        let stream = url.connect(manner)?;
        let mut remote = Remote { stream, read: Vec::new(), id: 0 };
        if let Some((name, password)) = login {
            let authentication = Authentication::Simple(password);
            remote.send(Op::BindRequest(BindRequest { version: 3, name, authentication }))?;
            remote.receive(&mut |op| match op {
                Op::BindResponse(response) => Some(good(&response.result, "does not let us in")),
                _ => None,
            })?;
        }
        Ok(remote)
    }

    /// Looks at it; at connections only if they are wanted, since there may be thousands.
    ///
    /// # Errors
    /// If the connection breaks, or the server does not show us its `cn=monitor`.
    pub fn look(&mut self, connections: bool) -> Result<Sight, Failure> {
        let filter =
            if connections { "(objectClass=*)" } else { "(!(objectClass=monitorConnection))" };
        let entries = self.search(filter)?;
        if entries.is_empty() {
            return Err(Failure::new(
                "it shows nothing of cn=monitor: bind as somebody who may see it (--bind-dn DN \
                 --password-file FILE); with Keyway that is the administrator, or whom an access rule \
                 lets",
            ));
        }
        Ok(sight(&entries))
    }

    /// The lists only: what is not in a page of counters.
    ///
    /// # Errors
    /// As [`Remote::look`].
    pub fn lists(&mut self, connections: bool) -> Result<Lists, Failure> {
        let filter = match connections {
            true => "(|(objectClass=monitoredObject)(objectClass=monitorConnection))",
            false => "(objectClass=monitoredObject)",
        };
        Ok(lists(&self.search(filter)?))
    }

    /// Whether who asks is an administrator: whether he may see the server's configuration.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn is_administrator(&mut self) -> Result<bool, Failure> {
        self.send(Op::SearchRequest(SearchRequest {
            base: CONFIG,
            scope: Scope::Base,
            deref: Deref::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: true,
            filter: Filter::Present("objectClass".into()),
            attributes: vec!["1.1"],
        }))?;
        let mut is_shown = false;
        self.receive(&mut |op| match op {
            Op::SearchResultEntry(_) => {
                is_shown = true;
                None
            }
            Op::SearchResultDone(_) => Some(Ok(())),
            _ => None,
        })?;
        Ok(is_shown)
    }

    fn search(&mut self, filter: &str) -> Result<Vec<Entry>, Failure> {
        let filter = Filter::parse(filter).map_err(Failure::new)?;
        self.send(Op::SearchRequest(SearchRequest {
            base: MONITOR,
            scope: Scope::Subtree,
            deref: Deref::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: false,
            filter,
            attributes: vec!["*", "+"],
        }))?;
        let mut entries = Vec::new();
        self.receive(&mut |op| match op {
            Op::SearchResultEntry(entry) => {
                let values = entry.attributes.iter().map(|attribute| {
                    let text = |value: &std::borrow::Cow<'_, [u8]>| {
                        String::from_utf8_lossy(value).into_owned()
                    };
                    let values = attribute.values.iter().map(text).collect();
                    (attribute.description.to_ascii_lowercase(), values)
                });
                entries.push(Entry { dn: entry.dn.to_string(), values: values.collect() });
                None
            }
            // What there is no more of than this is shown.
            Op::SearchResultDone(result) if result.code == ResultCode::SizeLimitExceeded => {
                Some(Ok(()))
            }
            Op::SearchResultDone(result) if result.code == ResultCode::NoSuchObject => Some(Ok(())),
            Op::SearchResultDone(result) => {
                Some(good(result, "does not show cn=monitor (say who asks with --bind-dn)"))
            }
            _ => None,
        })?;
        Ok(entries)
    }

    fn send(&mut self, op: Op<'_>) -> Result<(), Failure> {
        self.id += 1;
        let mut out = Zeroizing::new(Vec::new());
        Message::new(self.id, op).encode(&mut out);
        self.stream.write_all(&out).and_then(|()| self.stream.flush()).map_err(|why| broken(&why))
    }

    /// Takes answers until one is the last.
    fn receive(
        &mut self,
        take: &mut dyn FnMut(&Op<'_>) -> Option<Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let mut all_bytes = 0;
        loop {
            let nonsense = |why: &dyn std::fmt::Display| {
                Failure::new(format!("the server's answer makes no sense: {why}"))
            };
            let frame = ber::frame(&self.read, MESSAGE_BYTES_MAX).map_err(|why| nonsense(&why))?;
            if let Some(length) = frame {
                let bytes = self.read.get(..length).unwrap_or_default();
                let message = Message::decode(bytes).map_err(|why| nonsense(&why))?;
                if message.id == 0 {
                    return Err(Failure::new("the server ends the connection"));
                }
                let end = if message.id == self.id { take(&message.op) } else { None };
                self.read.drain(..length);
                all_bytes += length;
                match end {
                    Some(end) => return end,
                    None if all_bytes > ANSWER_BYTES_MAX => {
                        return Err(nonsense(&"it has no end"));
                    }
                    None => continue,
                }
            }
            let mut piece = vec![0; READ_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(broken(&ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.read.extend_from_slice(piece.get(..length).unwrap_or_default()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(broken(&why)),
            }
        }
    }
}

fn broken(why: &std::io::Error) -> Failure {
    Failure::new(match why.kind() {
        ErrorKind::UnexpectedEof => "the server has closed the connection".to_owned(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "the server does not answer".to_owned(),
        _ => format!("the connection broke: {}", plain(why)),
    })
}

fn good(result: &LdapResult<'_>, what: &str) -> Result<(), Failure> {
    if result.code == ResultCode::Success {
        return Ok(());
    }
    let (name, text) = (result.code.name(), &result.diagnostic);
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    Err(Failure::new(format!("the server {what}: {name}{text}")))
}

impl Entry {
    fn value(&self, attribute: &str) -> Option<&str> {
        self.values.get(attribute)?.first().map(String::as_str)
    }

    fn number(&self, attribute: &str) -> Option<u64> {
        self.value(attribute)?.parse().ok()
    }

    /// Whether it is right below that one.
    fn is_below(&self, parent: &str) -> bool {
        let end = self.dn.len().checked_sub(parent.len() + 1).and_then(|at| self.dn.get(at..));
        let parents = end.and_then(|end| end.strip_prefix(',')).unwrap_or_default();
        parents.eq_ignore_ascii_case(parent)
    }

    /// What is said of it.
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

fn sight(entries: &[Entry]) -> Sight {
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
    Sight {
        at: Instant::now(),
        uptime_s: uptime.and_then(|it| it.value("monitoredinfo")?.parse().ok()),
        kind,
        directory,
        cryptod: page_below(entries, "cn=Cryptod,cn=monitor").map(page),
        lists: Lists { missing, ..lists(entries) },
    }
}

type Page = (Vec<(String, u64)>, Vec<(String, Distribution)>);

/// Counters and histograms that are entries.
fn page_below(entries: &[Entry], parent: &str) -> Option<Page> {
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

fn lists(entries: &[Entry]) -> Lists {
    let below = |parent: &str| -> Vec<Facts> {
        entries.iter().filter(|entry| entry.is_below(parent)).map(Entry::facts).collect()
    };
    let with = |parent: &str, name: &str| -> Vec<Facts> {
        below(parent).into_iter().filter(|facts| facts.contains_key(name)).collect()
    };
    Lists {
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

/// Where slapd has what we count.
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

/// Where 389 Directory Server has it.
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

/// What another's server counts, by our names.
fn foreign(entries: &[Entry]) -> Vec<(String, u64)> {
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

    fn entry(dn: &str, values: &[(&str, &[&str])]) -> Entry {
        let values = values.iter().map(|(name, values)| {
            ((*name).to_owned(), values.iter().map(|it| (*it).to_owned()).collect())
        });
        Entry { dn: dn.to_owned(), values: values.collect() }
    }

    #[test]
    fn entries_of_ours_are_a_page_and_lists() {
        let sight = sight(&[
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
        let page = sight.directory.unwrap();
        assert_eq!((page.value("ldap.bind"), page.started_unix_ms), (Some(3), 20_261_124_165_116));
        assert_eq!(page.histogram("ldap.time.bind").map(|it| (it.count, it.max)), Some((2, 5)));
        assert_eq!((sight.kind.as_str(), sight.uptime_s), ("Keyway 0.1.0", Some(61)));
        let slow = &sight.lists.slow[0];
        assert_eq!((slow["filter"].as_str(), slow["connection"].as_str()), ("(cn=?)", "2"));
        assert!(sight.cryptod.is_none() && sight.lists.connections.is_empty());
    }

    #[test]
    fn other_servers_count_some_of_it() {
        let ds = sight(&[
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
        let slapd = sight(&[
            entry("cn=Monitor", &[("monitoredinfo", &["OpenLDAP: slapd 2.5.13 (Nov 2026)"])]),
            entry("cn=Search,cn=Operations,cn=Monitor", &[("monitoropcompleted", &["8"])]),
        ]);
        assert_eq!(slapd.kind, "OpenLDAP: slapd 2.5.13");
        assert_eq!(slapd.directory.unwrap().value("ldap.search"), Some(8));
    }
}
