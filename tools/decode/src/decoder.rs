//! From packets to operations: connections are told apart, their streams put together, and each
//! decoded.

mod flow;

use crate::capture::{Capture, Item, Packet};
use crate::direction::Side;
use crate::error::Error;
use crate::limits::{CONNECTIONS_MAX, HELD_BYTES_MAX};
use crate::network::{Content, Datagram, Network, Segment, named};
use crate::operation::{Event, Note, Sink};
use crate::pairing::Options;
use crate::session::Session;
use crate::tls::Keys;
use flow::Flow;
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Ports of LDAP: as registered, of Active Directory's global catalogue, and as many servers have
/// them that run without privileges.
pub const PORTS: [u16; 8] = [389, 636, 1389, 1636, 3268, 3269, 10389, 10636];

/// The counts of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets in the capture.
    pub packets: u64,
    /// Those of other protocols than TCP and UDP over IP.
    pub others: u64,
    /// Those that cannot be read, or are of an unknown link layer.
    pub unreadable: u64,
    /// Connections with LDAP in them.
    pub connections: u64,
    /// Octets that came more than once.
    pub repeated_bytes: u64,
    /// Octets that are missing.
    pub missing_bytes: u64,
    /// Connections that were given up to stay within a limit.
    pub given_up: u64,
}

/// Both ends of a connection, the lesser first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ends(SocketAddr, SocketAddr);

/// Decodes packets.
#[derive(Debug)]
pub struct Decoder {
    network: Network,
    flows: HashMap<Ends, Flow>,
    /// Messages in datagrams of UDP between two ends (CLDAP).
    datagrams: HashMap<Ends, Session>,
    ports: Vec<u16>,
    options: Options,
    counts: Counts,
    /// How many connections there were.
    number: u64,
    held_bytes: usize,
    unknown_links: Vec<u32>,
    time_ns: u64,
    keys: Option<Arc<Keys>>,
}

impl Decoder {
    /// One that takes connections from or to these ports to be LDAP, whatever they begin with.
    /// Without any those of [`PORTS`] are, and all others that look like it.
    #[must_use]
    pub fn new(ports: &[u16], options: Options) -> Self {
        Decoder {
            network: Network::default(),
            flows: HashMap::new(),
            datagrams: HashMap::new(),
            ports: ports.to_vec(),
            options,
            counts: Counts::default(),
            number: 0,
            held_bytes: 0,
            unknown_links: Vec::new(),
            time_ns: 0,
            keys: None,
        }
    }

    /// A decoder with keys to read TLS with; those that come with the packets are added to them.
    #[must_use]
    pub fn with_keys(mut self, keys: Arc<Keys>) -> Self {
        self.keys = Some(keys);
        self
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Decodes a capture to its end, or its first error. `go_on` is asked now and then.
    ///
    /// # Errors
    /// As [`Capture::read`] and `sink`. The operations before the error were reported by then.
    pub fn run(
        &mut self,
        capture: &mut Capture<'_>,
        sink: &mut impl Sink,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        loop {
            if !capture.is_ready() {
                sink.flush()?;
                if !go_on() {
                    return Ok(());
                }
            }
            match capture.read()? {
                Some(Item::Packet(packet)) => self.packet(&packet, sink)?,
                Some(Item::KeyLog(log)) => {
                    self.keys.iter().for_each(|keys| {
                        keys.add(log);
                    });
                }
                None => return Ok(()),
            }
        }
    }

    /// Decodes a packet.
    ///
    /// # Errors
    /// As `sink`.
    pub fn packet(&mut self, packet: &Packet<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        self.counts.packets += 1;
        self.time_ns = packet.time_ns;
        let mut network = std::mem::take(&mut self.network);
        let done = match network.content(packet) {
            Content::Segment(segment) => self.segment(packet.time_ns, &segment, sink),
            Content::Datagram(datagram) => self.datagram(packet.time_ns, &datagram, sink),
            Content::Fragment => Ok(()),
            Content::Other => {
                self.counts.others += 1;
                Ok(())
            }
            Content::Unreadable => {
                self.counts.unreadable += 1;
                Ok(())
            }
            Content::UnknownLink(link) => self.unknown_link(link, sink),
        };
        self.network = network;
        done
    }

    fn unknown_link(&mut self, link: u32, sink: &mut impl Sink) -> Result<(), Error> {
        self.counts.unreadable += 1;
        if self.unknown_links.contains(&link) || self.unknown_links.len() > 16 {
            return Ok(());
        }
        self.unknown_links.push(link);
        let link = named(link);
        let what = format!("packets of this link layer are passed over: {link}");
        let (time_ns, what) = (self.time_ns, Event::Unreadable(Cow::Owned(what)));
        sink.note(&Note { time_ns, connection: None, what })
    }

    /// A message of CLDAP (RFC 1798, and as Active Directory's clients look for a server). Only ports
    /// that are LDAP's are looked at: most of UDP is something else.
    fn datagram(
        &mut self,
        time_ns: u64,
        datagram: &Datagram<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let (from, to) = (datagram.from, datagram.to);
        if !self.is_ours(from) && !self.is_ours(to) {
            self.counts.others += 1;
            return Ok(());
        }
        let ends = if from <= to { Ends(from, to) } else { Ends(to, from) };
        if !self.datagrams.contains_key(&ends) {
            if self.datagrams.len() >= CONNECTIONS_MAX {
                self.counts.given_up += self.datagrams.len() as u64;
                self.finish_datagrams(sink)?;
            }
            self.number += 1;
            let pair =
                if self.is_ours(from) && !self.is_ours(to) { (to, from) } else { (from, to) };
            let session = Session::new(self.number, pair, false, true, self.options).over_udp();
            self.datagrams.insert(ends, session);
        }
        let Some(session) = self.datagrams.get_mut(&ends) else { return Ok(()) };
        let side = if session.first() == from { Side::First } else { Side::Second };
        session.octets(side, time_ns, datagram.payload, sink)?;
        self.counts.missing_bytes += datagram.missing as u64;
        match datagram.missing {
            0 => Ok(()),
            missing => session.gap(side, time_ns, missing as u64, sink),
        }
    }

    fn finish_datagrams(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        let mut all: Vec<Session> = self.datagrams.drain().map(|(_, session)| session).collect();
        all.sort_unstable_by_key(|session| session.connection().number);
        for mut session in all {
            session.finish(self.time_ns, false, sink)?;
            self.counts.connections += u64::from(session.is_told());
        }
        Ok(())
    }

    /// Whether it is a port of LDAP.
    fn is_ours(&self, end: SocketAddr) -> bool {
        match self.ports.as_slice() {
            [] => PORTS.contains(&end.port()),
            ports => ports.contains(&end.port()),
        }
    }

    fn segment(
        &mut self,
        time_ns: u64,
        segment: &Segment<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let (from, to) = (segment.from, segment.to);
        let ends = if from <= to { Ends(from, to) } else { Ends(to, from) };
        if segment.syn {
            self.end_former(&ends, segment, sink)?;
        }
        let is_empty = segment.payload.is_empty() && segment.missing == 0 && !segment.syn;
        if !self.flows.contains_key(&ends) {
            // Nothing begins with an acknowledgement, or with an end.
            if is_empty || segment.rst {
                return Ok(());
            }
            self.make_room(sink)?;
            let flow = self.begin(segment);
            self.flows.insert(ends, flow);
        }
        let used = self.counts.packets;
        let Some(flow) = self.flows.get_mut(&ends) else { return Ok(()) };
        if flow.is_closed {
            return Ok(());
        }
        flow.used = used;
        let missing = flow.take(time_ns, segment, sink)?;
        self.counts.missing_bytes += missing;
        let held = flow.held();
        let closed = flow.is_closed;
        self.held_bytes = self.held_bytes + held - flow.held_bytes;
        flow.held_bytes = held;
        if closed {
            self.counts.repeated_bytes += flow.repeated();
            self.counts.connections += u64::from(flow.session.is_told());
        }
        while self.held_bytes > HELD_BYTES_MAX {
            self.give_up_largest(sink)?;
        }
        Ok(())
    }

    /// A new connection between the same ends: the rest of the former one is told.
    fn end_former(
        &mut self,
        ends: &Ends,
        segment: &Segment<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let Some(flow) = self.flows.get(ends) else { return Ok(()) };
        let continued = flow.is_continued_by(segment);
        // Nothing is known of a connection that is not looked at; only its first packet begins another.
        let is_over = flow.session.is_ignored() && segment.acknowledgement.is_none();
        if continued && !flow.is_closed && !is_over {
            return Ok(());
        }
        self.remove(ends, sink)
    }

    fn begin(&mut self, segment: &Segment<'_>) -> Flow {
        let (from, to) = (segment.from, segment.to);
        // The end that opens it is the client; joined midway, the end that is not at a server's
        // port.
        let answers = match segment.syn {
            true => segment.acknowledgement.is_some(),
            false => self.is_ours(from) && !self.is_ours(to),
        };
        let (client, server) = if answers { (to, from) } else { (from, to) };
        let expected = self.is_ours(from) || self.is_ours(to);
        self.number += 1;
        let number = self.number;
        let midway = !segment.syn;
        let mut session = Session::new(number, (client, server), midway, expected, self.options);
        session = session.with_keys(self.keys.clone());
        if !expected && !self.ports.is_empty() {
            session.ignore();
            self.number -= 1;
        }
        Flow::new(session, client)
    }

    /// Has room for one more connection: those that are closed go first, then those that were quiet
    /// for longest.
    fn make_room(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        if self.flows.len() < CONNECTIONS_MAX {
            return Ok(());
        }
        self.flows.retain(|_, flow| !flow.is_closed);
        let mut used: Vec<u64> = self.flows.values().map(|flow| flow.used).collect();
        used.sort_unstable();
        if used.len() < CONNECTIONS_MAX / 4 * 3 {
            return Ok(());
        }
        let median = used.get(used.len() / 2).copied().unwrap_or_default();
        let quiet = |(ends, flow): (&Ends, &Flow)| (flow.used <= median).then_some(*ends);
        let quiet: Vec<Ends> = self.flows.iter().filter_map(quiet).collect();
        self.counts.given_up += quiet.len() as u64;
        quiet.iter().try_for_each(|ends| self.remove(ends, sink))
    }

    fn give_up_largest(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        let largest = self.flows.iter().max_by_key(|(_, flow)| flow.held_bytes);
        let Some(ends) = largest.map(|(ends, _)| *ends) else {
            self.held_bytes = 0;
            return Ok(());
        };
        self.counts.given_up += 1;
        self.remove(&ends, sink)
    }

    fn remove(&mut self, ends: &Ends, sink: &mut impl Sink) -> Result<(), Error> {
        let Some(mut flow) = self.flows.remove(ends) else { return Ok(()) };
        self.held_bytes -= flow.held_bytes;
        if flow.is_closed {
            return Ok(());
        }
        self.counts.missing_bytes += flow.finish(false, sink)?;
        self.counts.repeated_bytes += flow.repeated();
        self.counts.connections += u64::from(flow.session.is_told());
        Ok(())
    }

    /// Nothing more comes: tells of what is open.
    ///
    /// # Errors
    /// As `sink`.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Result<Counts, Error> {
        let mut open: Vec<(u64, Ends)> = self
            .flows
            .iter()
            .map(|(ends, flow)| (flow.session.connection().number, *ends))
            .collect();
        open.sort_unstable_by_key(|(number, _)| *number);
        open.iter().try_for_each(|(_, ends)| self.remove(ends, sink))?;
        self.finish_datagrams(sink)?;
        Ok(self.counts)
    }
}
