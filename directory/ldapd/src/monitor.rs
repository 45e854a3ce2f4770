//! `cn=monitor`: what the server is doing, as entries. They look as OpenLDAP's do, so that programs
//! that know those find their way; below `cn=Counters` everything that is counted has the name that
//! `keyway top` and `keyway metrics` know.

use crate::limits::RUNNING_SHOWN_MAX;
use crate::limits::{MONITORED_CONNECTIONS_MAX, RUNNING_SHOWN_MIN};
use crate::listen::{Mode, Socket, Urls};
use crate::registry::Registry;
use crate::seen::Seen;
use crate::slow::{Operation, Slowest};
use keyway_codec::dn::Ava;
use keyway_lock::Unpoisoned;
use keyway_meter::{Distribution, EVENTS, Snapshot};
use keyway_schema::operational::{NUM_SUBORDINATES, generalized_time};
use keyway_server::log::stages::FIELDS;
use keyway_server::{Directory, VirtualEntry, VirtualTree, Wanted, all_shapes};
use std::fmt::Write;
use std::sync::{Arc, RwLock, Weak};
use std::time::{Instant, SystemTime};

/// The parts of the server that the monitor shows.
pub(crate) struct Monitor {
    pub directory: Weak<Directory>,
    pub registry: Arc<Registry>,
    pub slowest: Arc<Slowest>,
    /// When the server started, by the monotonic clock.
    pub started: Instant,
    /// When it started, by the wall clock.
    pub started_at: SystemTime,
    /// URLs without a path.
    pub listeners: Urls,
    /// The entries that the program adds.
    pub beside: Arc<Beside>,
}

/// Makes entries that are wanted, each after the one above it; it must not wait.
pub(crate) type Beside =
    RwLock<Option<Box<dyn Fn(&Wanted<'_>) -> Vec<VirtualEntry> + Send + Sync>>>;

/// The branches right below the top, by their names.
const BRANCHES: [(&str, &str); 10] = [
    ("Connections", "Connections that are open"),
    ("Counters", "All that is counted, by the names of keyway top"),
    ("Databases", "Parts of the tree that this server holds"),
    ("Filters", "What searches cost, by scope and filter without its values"),
    ("Listeners", "Where the server listens"),
    ("Operations", "Operations that were answered"),
    ("Running", "Operations under way for a tenth of a second or longer"),
    ("Slow", "The slowest operations of the last minutes"),
    ("Statistics", "What was sent and received"),
    ("Time", "When the server was started, and how long it has run"),
];
/// How many operations were answered.
const COMPLETED: &str = "monitorOpCompleted";
/// The class of what there may be thousands of.
const CONNECTION_CLASS: &str = "monitorConnection";

/// OpenLDAP's names of operations, and our counters of them.
const OPERATION_COUNTERS: [(&str, &str); 10] = [
    ("Bind", "ldap.bind"),
    ("Unbind", "ldap.unbind"),
    ("Search", "ldap.search"),
    ("Compare", "ldap.compare"),
    ("Modify", "ldap.modify"),
    ("Modrdn", "ldap.modify_dn"),
    ("Add", "ldap.add"),
    ("Delete", "ldap.delete"),
    ("Abandon", "ldap.abandon"),
    ("Extended", "ldap.extended"),
];
/// OpenLDAP's names of quantities, and our counters of them.
const STATISTIC_COUNTERS: [(&str, &str); 3] = [
    ("Bytes", "ldap.bytes_out"),
    ("Bytes Received", "ldap.bytes_in"),
    ("Entries", "ldap.entries_sent"),
];

impl Monitor {
    /// The entries that are wanted, each after the one above it.
    pub fn entries(&self, wanted: &Wanted<'_>) -> Vec<VirtualEntry> {
        let Some(directory) = self.directory.upgrade() else { return Vec::new() };
        let now = (directory.clock().monotonic)();
        let mut all = vec![top()];
        for (name, description) in BRANCHES.into_iter().filter(|(name, _)| wanted.shows(name)) {
            let dn = below(VirtualTree::Monitor.dn(), name);
            all.push(container(&dn, description));
            if wanted.fills(name) {
                self.fill(&mut all, (name, &dn), &directory, now, wanted);
            }
        }
        let beside = self.beside.read().unpoisoned();
        all.extend(beside.iter().flat_map(|beside| beside(wanted)));
        all
    }

    /// Adds what is below the last entry.
    fn fill(
        &self,
        all: &mut Vec<VirtualEntry>,
        (name, dn): (&str, &str),
        directory: &Directory,
        now: Instant,
        wanted: &Wanted<'_>,
    ) {
        let nothing = || Snapshot {
            pid: 0,
            started_unix_ms: 0,
            counters: Vec::new(),
            histograms: Vec::new(),
        };
        let page = || Snapshot::own().unwrap_or_else(nothing);
        match name {
            "Connections" => self.connections(all, dn, now, wanted),
            "Counters" => counters(all, dn, &page()),
            "Databases" => databases(all, dn, directory),
            "Filters" => filters(all, dn),
            "Listeners" => {
                let urls = self.listeners.read().unpoisoned();
                listeners(all, dn, &urls.iter().map(|(_, url)| url.clone()).collect::<Vec<_>>());
            }
            "Operations" => operations(all, dn, &page()),
            "Running" => self.running(all, dn, (now, directory.now())),
            "Slow" => all.extend(self.slowest.all(now).iter().map(|one| operation(dn, one))),
            "Statistics" => statistics(all, dn, &page()),
            _ => self.time(all, dn, now, directory.now()),
        }
    }

    /// Connections themselves are made only if a client wants to see them: there may be thousands.
    fn connections(
        &self,
        all: &mut Vec<VirtualEntry>,
        dn: &str,
        now: Instant,
        wanted: &Wanted<'_>,
    ) {
        let (open, total) = self.registry.counts();
        let shown = open.min(MONITORED_CONNECTIONS_MAX);
        let counts =
            [("Total", total, "accepted since the start"), ("Current", open as u64, "open now")];
        if let Some(branch) = all.last_mut() {
            tell(branch, NUM_SUBORDINATES, counts.len() + shown);
        }
        all.extend(counts.map(|(name, count, what)| number(dn, name, count, what)));
        if !wanted.has_use_for(CONNECTION_CLASS, "Connections") {
            return;
        }
        let (open, _) = self.registry.seen();
        let shown = open.iter().take(MONITORED_CONNECTIONS_MAX);
        let shown = shown.filter(|(id, _)| wanted.names("Connections", &connection_name(*id)));
        all.extend(shown.map(|(id, seen)| connection(dn, *id, seen, now)));
    }

    /// Operations that are under way for longer than most take.
    fn running(&self, all: &mut Vec<VirtualEntry>, dn: &str, now: (Instant, SystemTime)) {
        let (open, _) = self.registry.seen();
        let mut found = Vec::new();
        for (id, seen) in &open {
            let is_slow = |since| now.0.saturating_duration_since(since) >= RUNNING_SHOWN_MIN;
            for asked in seen.waiting().iter().filter(|asked| asked.began().is_some_and(is_slow)) {
                found.push(asked.seen(*id, &seen.peer, seen.who().dn, now));
            }
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.total_us));
        all.extend(found.iter().take(RUNNING_SHOWN_MAX).map(|one| operation(dn, one)));
    }

    fn time(&self, all: &mut Vec<VirtualEntry>, dn: &str, now: Instant, wall: SystemTime) {
        let at = |time| vec![generalized_time(time)];
        let object = |name: &str, attributes: &[(&str, Vec<String>)]| {
            VirtualEntry::new(below(dn, name), "monitoredObject", &with_name(name, attributes))
        };
        all.push(object("Start", &[("monitorTimestamp", at(self.started_at))]));
        all.push(object("Current", &[("monitorTimestamp", at(wall))]));
        let up = now.saturating_duration_since(self.started).as_secs();
        all.push(object("Uptime", &[("monitoredInfo", vec![up.to_string()])]));
    }
}

fn top() -> VirtualEntry {
    let version = concat!("Keyway ", env!("CARGO_PKG_VERSION"));
    let attributes = [
        ("cn", vec!["monitor".to_owned()]),
        ("description", vec!["What the server is doing, made when it is asked for".to_owned()]),
        ("monitoredInfo", vec![version.to_owned()]),
    ];
    VirtualEntry::new(VirtualTree::Monitor.dn().to_owned(), "monitorServer", &attributes)
}

/// `cn=NAME,PARENT`
fn below(parent: &str, name: &str) -> String {
    let rdn = Ava { attribute: "cn".to_owned(), value: name.as_bytes().to_vec() };
    format!("{rdn},{parent}")
}

fn with_name<'a>(name: &str, attributes: &[(&'a str, Vec<String>)]) -> Vec<(&'a str, Vec<String>)> {
    let mut all = vec![("cn", vec![name.to_owned()])];
    all.extend_from_slice(attributes);
    all
}

fn container(dn: &str, description: &str) -> VirtualEntry {
    let name = dn.split(['=', ',']).nth(1).unwrap_or_default();
    let attributes = with_name(name, &[("description", vec![description.to_owned()])]);
    VirtualEntry::new(dn.to_owned(), "monitorContainer", &attributes)
}

/// Adds a number to what is said of an entry.
fn tell(entry: &mut VirtualEntry, attribute: &str, number: impl ToString) {
    entry.attributes.push((attribute.to_owned(), vec![number.to_string().into_bytes()]));
}

fn number(parent: &str, name: &str, number: u64, description: &str) -> VirtualEntry {
    let attributes = with_name(
        name,
        &[
            ("description", vec![description.to_owned()]),
            ("monitorCounter", vec![number.to_string()]),
        ],
    );
    VirtualEntry::new(below(parent, name), "monitorCounterObject", &attributes)
}

/// Another process's page, and things that it tells of, as a branch of the tree: `cn=NAME,cn=monitor`, with
/// the counters and these objects, each a name and what there is to say of it, below it.
pub fn branch(
    name: &str,
    description: &str,
    page: Option<&Snapshot>,
    objects: &[(String, Vec<(&str, String)>)],
) -> Vec<VirtualEntry> {
    let top = below(VirtualTree::Monitor.dn(), name);
    let mut all = vec![container(&top, description)];
    if let Some(page) = page {
        counters(&mut all, &top, page);
    }
    for (name, told) in objects {
        let info = told.iter().map(|(what, value)| format!("{what}={value}")).collect();
        let attributes = with_name(name, &[("monitoredInfo", info)]);
        all.push(VirtualEntry::new(below(&top, name), "monitoredObject", &attributes));
    }
    all
}

/// `NAME=VALUE`, for each that has one.
fn facts(all: &[(&str, Option<String>)]) -> Vec<String> {
    let fact = |(name, value): &(&str, Option<String>)| Some(format!("{name}={}", value.as_ref()?));
    all.iter().filter_map(fact).collect()
}

/// Microseconds since 1970.
fn micros(time: SystemTime) -> u128 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros()
}

fn some(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// An operation that is slow, or was. Its name is its connection's number and its own.
fn operation(parent: &str, one: &Operation) -> VirtualEntry {
    let micros = micros(one.at);
    let name = match one.result {
        Some(_) => format!("{}.{} {micros}", one.connection, one.id),
        None => format!("{}.{}", one.connection, one.id),
    };
    let search = one.search.as_ref();
    let mut info = facts(&[
        ("at_us", some(micros)),
        ("operation", some(one.operation)),
        ("message", some(one.id)),
        ("dn", Some(one.dn.clone()).filter(|dn| !dn.is_empty())),
        ("result", one.result.map(|code| code.to_string())),
        ("time_us", some(one.total_us)),
        ("scope", search.map(|search| search.scope.to_owned())),
        ("filter", search.map(|search| search.filter.clone())),
        ("index", search.map(|search| search.access_path.clone())),
        ("candidates", search.map(|search| search.candidates.to_string())),
        ("returned", search.map(|search| search.returned.to_string())),
    ]);
    let stages = FIELDS.iter().zip(one.stages_us).filter(|(_, us)| *us > 0);
    info.extend(stages.map(|(stage, us)| format!("{stage}={us}")));
    let attributes = with_name(
        &name,
        &[
            ("monitorConnectionNumber", vec![one.connection.to_string()]),
            ("monitorConnectionPeerAddress", vec![one.from.clone()]),
            ("monitorConnectionAuthzDN", one.who.iter().cloned().collect()),
            ("monitorTimestamp", vec![generalized_time(one.at)]),
            ("monitoredInfo", info),
        ],
    );
    VirtualEntry::new(below(parent, &name), "monitoredObject", &attributes)
}

/// The cost of searches, by the shapes of their filters.
fn filters(all: &mut Vec<VirtualEntry>, dn: &str) {
    let mut shapes: Vec<_> = all_shapes().into_iter().map(|shape| (shape, shape.total())).collect();
    shapes.retain(|(_, cost)| cost.searches > 0);
    shapes.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.time_ns));
    for (shape, cost) in shapes {
        let name = format!("{} {}", shape.scope, shape.text);
        let info = facts(&[
            ("scope", some(shape.scope)),
            ("filter", some(&shape.text)),
            ("searches", some(cost.searches)),
            ("time_ns", some(cost.time_ns)),
            ("candidates", some(cost.candidates)),
            ("returned", some(cost.returned)),
            ("unindexed", some(cost.unindexed)),
            ("index", Some(cost.access_path).filter(|access_path| !access_path.is_empty())),
        ]);
        let attributes = with_name(&name, &[("monitoredInfo", info)]);
        all.push(VirtualEntry::new(below(dn, &name), "monitoredObject", &attributes));
    }
}

fn connection_name(id: u64) -> String {
    format!("Connection {id}")
}

fn connection(parent: &str, id: u64, seen: &Seen, now: Instant) -> VirtualEntry {
    let (name, who) = (connection_name(id), seen.who());
    let tls = seen.tls.get();
    let mut info = vec![format!("over {}", who.strength)];
    info.extend(facts(&[
        ("tls", tls.map(|tls| tls.version.clone())),
        ("suite", tls.map(|tls| tls.suite.clone())),
        ("group", tls.and_then(|tls| tls.group.clone())),
        ("resumed", tls.map(|tls| tls.resumed.to_string())),
        ("idle_ms", some(seen.idle(now).as_millis())),
        ("in_flight", some(seen.waiting().len())),
        ("queued", some(seen.queue())),
        ("since_us", some(micros(seen.since))),
    ]));
    let attributes = with_name(
        &name,
        &[
            ("monitorConnectionNumber", vec![id.to_string()]),
            ("monitorConnectionProtocol", vec!["3".to_owned()]),
            ("monitorConnectionPeerAddress", vec![seen.peer.to_string()]),
            ("monitorConnectionAuthzDN", who.dn.into_iter().collect()),
            ("monitorConnectionOpsReceived", vec![seen.requests().to_string()]),
            ("monitorConnectionStartTime", vec![generalized_time(seen.since)]),
            ("monitoredInfo", info),
        ],
    );
    VirtualEntry::new(below(parent, &name), CONNECTION_CLASS, &attributes)
}

fn databases(all: &mut Vec<VirtualEntry>, dn: &str, directory: &Directory) {
    for (number, context) in directory.all_naming_contexts().into_iter().enumerate() {
        let name = format!("Database {number}");
        let attributes = with_name(&name, &[("namingContexts", vec![context])]);
        all.push(VirtualEntry::new(below(dn, &name), "monitoredObject", &attributes));
    }
}

fn listeners(all: &mut Vec<VirtualEntry>, dn: &str, urls: &[String]) {
    for (number, url) in urls.iter().enumerate() {
        let name = format!("Listener {number}");
        let attributes = with_name(&name, &[("monitorConnectionLocalAddress", vec![url.clone()])]);
        all.push(VirtualEntry::new(below(dn, &name), "monitoredObject", &attributes));
    }
}

fn operations(all: &mut Vec<VirtualEntry>, dn: &str, page: &Snapshot) {
    let counts =
        OPERATION_COUNTERS.map(|(name, counter)| (name, page.value(counter).unwrap_or_default()));
    let sum: u64 = counts.iter().map(|(_, count)| count).sum();
    if let Some(branch) = all.last_mut() {
        tell(branch, COMPLETED, sum);
    }
    for (name, count) in counts {
        let attributes = with_name(name, &[(COMPLETED, vec![count.to_string()])]);
        all.push(VirtualEntry::new(below(dn, name), "monitorOperation", &attributes));
    }
}

fn statistics(all: &mut Vec<VirtualEntry>, dn: &str, page: &Snapshot) {
    for (name, counter) in STATISTIC_COUNTERS {
        all.push(number(dn, name, page.value(counter).unwrap_or_default(), counter));
    }
}

/// Everything that is counted or recorded in a page.
fn counters(all: &mut Vec<VirtualEntry>, parent: &str, page: &Snapshot) {
    let described = |name: &str| {
        let event = EVENTS.iter().find(|event| event.covers(name));
        event.map(|event| format!("{}: {}", event.unit, event.help)).unwrap_or_default()
    };
    let is_gauge = |name: &str| EVENTS.iter().any(|event| event.is_gauge() && event.covers(name));
    for (name, value) in &page.counters {
        let value = if is_gauge(name) { page.gauge(name).unwrap_or_default() } else { *value };
        all.push(number(parent, name, value, &described(name)));
    }
    for (name, values) in page.histograms.iter().filter(|(_, values)| values.count > 0) {
        let attributes = with_name(
            name,
            &[
                ("description", vec![described(name)]),
                ("monitorCounter", vec![values.count.to_string()]),
                ("monitoredInfo", vec![summary(values), values.to_text()]),
            ],
        );
        all.push(VirtualEntry::new(below(parent, name), "monitorCounterObject", &attributes));
    }
}

fn summary(values: &Distribution) -> String {
    let mean = values.sum / values.count.max(1);
    let mut text = format!("min {} mean {mean}", values.min);
    for percent in [50.0, 99.0] {
        // Writing to a String cannot fail.
        let _ = write!(text, " {percent}% {}", values.percentile(percent));
    }
    let _ = write!(text, " max {}", values.max);
    text
}

/// How a listener is called.
pub(crate) fn url(socket: &Socket, mode: &Mode) -> Option<String> {
    match (socket, mode) {
        (Socket::Unix(socket), _) => {
            let address = socket.local_addr().ok()?;
            Some(format!("ldapi {}", address.as_pathname()?.display()))
        }
        (Socket::Tcp(socket), Mode::Tls(_)) => {
            Some(format!("ldaps://{}", socket.local_addr().ok()?))
        }
        (Socket::Tcp(socket), _) => Some(format!("ldap://{}", socket.local_addr().ok()?)),
    }
}
