//! The one list of what is counted or recorded.

/// Something that is counted, or whose values are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The counter's or histogram's name. A part in braces stands for any one part (`{driver}`,
    /// `{algorithm}`).
    pub name: &'static str,
    /// The unit of one event. `ns`, nanoseconds, and events counted a batch or a commit make it a
    /// histogram; `unix s`, seconds since 1970, and a present state make it a gauge.
    pub unit: &'static str,
    /// Its meaning, in one line.
    pub help: &'static str,
}

impl Event {
    /// Whether a histogram keeps its values; otherwise a counter counts it.
    pub fn is_histogram(&self) -> bool {
        self.unit == "ns" || self.unit.contains(" a ")
    }

    /// Whether it is set, and not counted.
    pub fn is_gauge(&self) -> bool {
        self.unit == "unix s" || self.unit.ends_with(" now")
    }

    /// Whether a counter, gauge or histogram of this name is of this event.
    pub fn covers(&self, name: &str) -> bool {
        let (mut pattern, mut parts) = (self.name.split('.'), name.split('.'));
        loop {
            match (pattern.next(), parts.next()) {
                (None, None) => return true,
                (Some(expected), Some(part)) => {
                    let any = expected.starts_with('{') && !part.is_empty();
                    if !any && expected != part {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }
}

const fn event(name: &'static str, unit: &'static str, help: &'static str) -> Event {
    Event { name, unit, help }
}

/// Everything that is counted or recorded, in the order in which people want to read it.
pub const EVENTS: &[Event] = &[
    event("ldap.connection.opened", "connections", "accepted from clients"),
    event("ldap.connection.closed", "connections", "ended, by whichever side"),
    event("ldap.connection.made_room", "connections", "closed because others needed their place"),
    event("ldap.bind", "operations", "bind requests answered"),
    event("ldap.search", "operations", "search requests answered"),
    event("ldap.compare", "operations", "compare requests answered"),
    event("ldap.add", "operations", "add requests answered"),
    event("ldap.delete", "operations", "delete requests answered"),
    event("ldap.modify", "operations", "modify requests answered"),
    event("ldap.modify_dn", "operations", "modify DN requests answered"),
    event("ldap.unbind", "operations", "unbind requests received"),
    event("ldap.extended", "operations", "extended requests answered"),
    event("ldap.abandon", "operations", "abandon requests received"),
    event("ldap.entries_sent", "entries", "search result entries sent"),
    event("ldap.bytes_in", "bytes", "of LDAP received, TLS not counted"),
    event("ldap.bytes_out", "bytes", "of LDAP sent, TLS not counted"),
    event("ldap.refused", "operations", "answered with a result code that reports a fault"),
    event("ldap.error.{code}", "operations", "answered with this result code"),
    event("ldap.busy", "operations", "answered with busy, because a limit was reached"),
    event("ldap.time.{operation}", "ns", "from the arrival of a request to its answer"),
    event("ldap.queue", "requests now", "read and not begun"),
    event("log.left_out", "lines", "of the access log that others stand for (access_one_in)"),
    event("log.lost", "lines", "of all logs that found no room or could not be written"),
    event("tls.handshakes", "handshakes", "that succeeded"),
    event("tls.resumed", "handshakes", "of those, the ones that went on with an earlier session"),
    event("tls.failed", "handshakes", "that failed, or took too long"),
    event("tls.handshake", "ns", "that a handshake took, waiting for the peer included"),
    event("tls.certificate.ends", "unix s", "when the first of the server's certificates ends"),
    event("search.time", "nanoseconds", "that searches took"),
    event(
        "search.unindexed.{attribute}.{index}.searches",
        "searches",
        "that had no index and would have had this one",
    ),
    event(
        "search.unindexed.{attribute}.{index}.entries",
        "entries",
        "that such searches looked at",
    ),
    event("search.unindexed.{attribute}.{index}.time", "nanoseconds", "that such searches took"),
    event("search.filter.{scope}.{filter}.searches", "searches", "with a filter of this shape"),
    event("search.filter.{scope}.{filter}.time", "nanoseconds", "that such searches took"),
    event("search.filter.{scope}.{filter}.candidates", "entries", "that such searches looked at"),
    event("search.filter.{scope}.{filter}.returned", "entries", "that such searches returned"),
    event("search.filter.{scope}.{filter}.unindexed", "searches", "of them that no index helped"),
    event("password.threads", "threads now", "for checking and hashing passwords"),
    event("password.running", "passwords now", "being checked or hashed by these threads"),
    event(
        "password.waiting",
        "passwords now",
        "that wait for a thread, or for the brake on guessing",
    ),
    event("store.commits", "commits", "transactions made durable"),
    event("store.changes", "changes", "entries added, changed, moved or deleted"),
    event("store.sync_errors", "errors", "commits that the disk refused to make durable"),
    event("store.sync", "ns", "that a commit took, its sync among it"),
    event("store.group", "changes a commit", "entries that were changed together"),
    event("store.waiting", "changes now", "accepted and not on the disk yet"),
    event("store.entries", "entries now", "in the store"),
    event("store.bytes", "bytes now", "that the store's file is long"),
    event("store.used", "bytes now", "of it that entries and indexes take"),
    event("store.bytes_max", "bytes now", "that it may grow to"),
    event("store.readers", "readers now", "that hold an older state, or the present one"),
    event("store.reader_lag", "commits now", "since the state that the oldest reader holds"),
    event("backup.last", "unix s", "when all was last backed up or exported; 0 for never"),
    event("feed.position", "commits now", "that the feed has come to"),
    event("feed.changes", "changes now", "that it has had, kept or not"),
    event("feed.bytes", "bytes now", "of the changes that it keeps"),
    event("feed.age", "seconds now", "since the oldest change that it keeps"),
    event("feed.reader.{reader}.lag", "commits now", "that this reader has not read"),
    event("cluster.epoch", "epochs now", "of the cluster's writers; 0 without a cluster"),
    event("cluster.writer", "writers now", "that this server is: 1 if it writes for others"),
    event("cluster.connected", "writers now", "that this server follows and is connected to"),
    event("cluster.lag", "commits now", "that the writer has and this server has not"),
    event("cluster.lag_time", "milliseconds now", "that it is behind the writer, its silence too"),
    event("cluster.followers", "members now", "that follow this server"),
    event("engine.{driver}.{algorithm}.operations", "operations", "requests run, failed ones too"),
    event("engine.{driver}.{algorithm}.bytes", "bytes", "that the requests worked on"),
    event("engine.{driver}.{algorithm}.errors", "operations", "requests that failed"),
    event(
        "engine.{driver}.{algorithm}.busy",
        "requests",
        "that found the driver or the slow pool full",
    ),
    event(
        "engine.{driver}.{algorithm}.error.{error}",
        "operations",
        "requests that failed this way",
    ),
    event(
        "engine.{driver}.{algorithm}.recalls",
        "passwords",
        "looked for among those that were right lately, which is no operation",
    ),
    event("engine.{driver}.{algorithm}.recalled", "passwords", "found there"),
    event("engine.{driver}.{algorithm}.queue", "ns", "from submission to start, of a sample"),
    event("engine.{driver}.{algorithm}.run", "ns", "from start to finish, of a sample"),
    event("engine.{driver}.{algorithm}.deliver", "ns", "from finish to hand-over, of a sample"),
    event("engine.{driver}.backlog", "nanoseconds now", "of work that the driver has before it"),
    event(
        "engine.{driver}.pending_most",
        "requests now",
        "that the driver had before it at most, since the start",
    ),
    event(
        "engine.pending_most",
        "requests now",
        "that all drivers beside the caller had before them at most, since the start",
    ),
    event(
        "engine.{driver}.{algorithm}.predicted",
        "nanoseconds now",
        "that a request of the usual size is expected to take",
    ),
    event(
        "engine.{driver}.{algorithm}.last_failure",
        "unix seconds now",
        "when a request failed last",
    ),
    event("cryptod.requests", "requests", "of clients answered by the daemon's engine"),
    event("cryptod.bytes", "bytes", "that clients' requests named"),
    event("cryptod.refused", "requests", "of clients, malformed or beyond a limit"),
    event("cryptod.busy", "requests", "of clients that had as much under way as they may"),
    event("cryptod.throttled", "turns", "that ended because a client had had its share"),
    event("cryptod.slow", "requests", "of clients handed to the slow class, large ones too"),
    event(
        "cryptod.slow.too_costly",
        "requests",
        "refused, since they would take longer than they may",
    ),
    event("cryptod.slow.dropped", "requests", "of the slow class whose client no longer waited"),
    event("cryptod.batches", "batches", "of clients' requests handed to the engine"),
    event("cryptod.batch", "requests a batch", "that went to the engine together, of a sample"),
    event("cryptod.doorbells", "doorbells", "that clients rang to wake a pump"),
    event("cryptod.wakeups", "wake-ups", "of clients that slept over an answer"),
    event("cryptod.sleeps", "sleeps", "of pumps that had nothing to do"),
    event("cryptod.clients.connected", "clients", "let in"),
    event("cryptod.clients.gone", "clients", "that went"),
    event("cryptod.clients.turned_away", "connections", "not let in"),
    event(
        "cryptod.clients.evicted",
        "connections",
        "that had not said who they are and gave way to others",
    ),
    event("client.{client}.operations", "operations", "requests run for one client"),
    event("client.{client}.bytes", "bytes", "that one client's requests worked on"),
    event(
        "client.{client}.error.{error}",
        "operations",
        "one client's requests that failed this way",
    ),
    event("esp.{direction}.packets", "packets", "that the ESP gateway sealed (out) or opened (in)"),
    event("esp.{direction}.bytes", "bytes", "of IP packets in them"),
    event("esp.drop.{direction}.{cause}.packets", "packets", "that the ESP gateway dropped"),
    event("esp.drop.{direction}.{cause}.bytes", "bytes", "of packets that it dropped"),
    event("esp.too_big", "messages", "to senders inside that a packet is too big"),
    event("esp.keepalives", "datagrams", "that keep a NAT's mapping"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_a_page_and_differ() {
        for (index, event) in EVENTS.iter().enumerate() {
            assert!(crate::layout::is_name(event.name.as_bytes()), "{}", event.name);
            assert!(EVENTS.iter().skip(index + 1).all(|other| other.name != event.name));
        }
    }

    #[test]
    fn a_family_covers_its_members_only() {
        let family = event("engine.{driver}.{algorithm}.bytes", "", "");
        assert!(family.covers("engine.software.aes-128-gcm.bytes"));
        assert!(!family.covers("engine.software.aes-128-gcm.errors"));
        assert!(!family.covers("engine.software.bytes"));
        assert!(!family.covers("engine..aes-128-gcm.bytes"));
        assert!(!family.covers("engine.software.aes-128-gcm.bytes.more"));
        assert!(event("ldap.bind", "", "").covers("ldap.bind"));
        assert!(!event("ldap.bind", "", "").covers("ldap.bin"));
    }
}
