//! One connection: two streams of octets, from which messages are cut and paired.

mod mode;
mod recognise;

use crate::direction::{Direction, Side};
use crate::error::Error;
use crate::framing::{Frame, Framer, is_request};
use crate::operation::{Connection, Event, Note, Sink};
use crate::pairing::{Consequence, Options, Pairing, Raw, peek_tag};
use crate::tls::Keys;
use keyway_codec::ber::SEQUENCE;
use mode::Mode;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection being decoded.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    mode: Mode,
    framers: [Framer; 2],
    pairing: Pairing,
    options: Options,
    /// The end that was named first.
    first: SocketAddr,
    client_side: Side,
    /// Whether that is more than a guess.
    client_known: bool,
    unbind: bool,
    /// Whether anything was told of it.
    is_told: bool,
    /// Whether it is LDAP whatever it begins with: by its port, or by who asks.
    expected: bool,
    /// The mechanism of a SASL bind that has succeeded, as long as it is not known whether a layer
    /// of its protects what follows (RFC 4513 § 5.2.1).
    layer: Option<String>,
    /// With which TLS may be read.
    keys: Option<Arc<Keys>>,
}

impl Session {
    /// One between these addresses, the first of which is likely the client. Whether it is `midway`
    /// decides if what comes first must be a message. Whatever a connection that is not `expected`
    /// to be LDAP begins with must look like it.
    #[must_use]
    pub fn new(
        number: u64,
        (client, server): (SocketAddr, SocketAddr),
        midway: bool,
        expected: bool,
        options: Options,
    ) -> Self {
        let framer = || if midway { Framer::midway() } else { Framer::default() };
        let (tls, udp, bound) = (false, false, String::new());
        let connection = Connection { number, client, server, tls, udp, bound };
        Session {
            connection,
            mode: Mode::Unknown,
            framers: [framer(), framer()],
            pairing: Pairing::default(),
            options,
            first: client,
            client_side: Side::First,
            client_known: false,
            unbind: false,
            is_told: false,
            expected,
            layer: None,
            keys: None,
        }
    }

    /// A session of UDP datagrams.
    #[must_use]
    pub fn over_udp(mut self) -> Self {
        self.connection.udp = true;
        self
    }

    /// The end that was named first: its octets are [`Side::First`]'s.
    #[must_use]
    pub fn first(&self) -> SocketAddr {
        self.first
    }

    /// A session with keys to read TLS with.
    #[must_use]
    pub fn with_keys(mut self, keys: Option<Arc<Keys>>) -> Self {
        self.keys = keys;
        self
    }

    /// The connection, as far as it is known.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How many bytes it holds back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let framers: usize = self.framers.iter().map(Framer::held_bytes).sum();
        let tls = match &self.mode {
            Mode::Tls(tls) => tls.held_bytes(),
            _ => 0,
        };
        framers + tls + self.pairing.held_bytes()
    }

    /// Whether there is nothing in it to be told.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        matches!(self.mode, Mode::Ignored)
    }

    /// Whether anything was told of it.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// The caller has removed TLS: all later octets are those within.
    pub fn is_opened(&mut self) {
        self.connection.tls = true;
        self.mode = Mode::Ldap;
    }

    /// Tells why something of it cannot be told.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn remark(
        &mut self,
        time_ns: u64,
        why: Cow<'_, str>,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        self.note(time_ns, Event::Unreadable(why), sink)
    }

    /// Nothing of it is to be told.
    pub fn ignore(&mut self) {
        self.mode = Mode::Ignored;
    }

    /// Octets of one side.
    ///
    /// # Errors
    /// If what they say cannot be told.
    pub fn octets(
        &mut self,
        side: Side,
        time_ns: u64,
        octets: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        if matches!(self.mode, Mode::Unknown) {
            self.recognise(side, time_ns, octets, sink)?;
        }
        match &self.mode {
            Mode::Ldap => self.ldap(side, time_ns, octets, sink),
            Mode::Tls(_) => self.within_tls(side, time_ns, octets, sink),
            Mode::Unknown | Mode::Ignored => Ok(()),
        }
    }

    /// Octets of one side that were not captured.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn gap(
        &mut self,
        side: Side,
        time_ns: u64,
        bytes: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let direction = self.direction(side);
        match &mut self.mode {
            Mode::Ignored => return Ok(()),
            Mode::Tls(tls) => {
                let lost = tls.gap(side);
                // The loss of messages within is not known.
                self.framers[side.index()] = Framer::midway();
                self.note(time_ns, Event::Gap { direction, bytes }, sink)?;
                return lost.or_else(|why| self.unreadable(time_ns, why, sink));
            }
            Mode::Unknown if !self.expected => {
                self.mode = Mode::Ignored;
                return Ok(());
            }
            Mode::Unknown => self.mode = Mode::Ldap,
            Mode::Ldap => {}
        }
        self.note(time_ns, Event::Gap { direction, bytes }, sink)?;
        let Self { framers, .. } = self;
        let framer = &mut framers[side.index()];
        if let Some(Frame::Head { head, total }) = framer.gap(bytes) {
            let head = head.to_vec();
            self.message(side, Raw { time_ns, octets: &head, total }, sink)?;
        }
        self.ldap(side, time_ns, &[], sink)
    }

    /// The connection is over, `closed` by its ends or because no more of it was captured.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn finish(
        &mut self,
        time_ns: u64,
        closed: bool,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        self.pairing.finish(&mut self.connection, self.options, sink)?;
        if closed && self.is_told {
            self.note(time_ns, Event::Closed { unbind: self.unbind }, sink)?;
        }
        self.mode = Mode::Ignored;
        Ok(())
    }

    fn ldap(
        &mut self,
        side: Side,
        time_ns: u64,
        octets: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let mut input = octets;
        loop {
            if let Some(mechanism) = self.protecting_layer(side, input) {
                let why = format!("a SASL layer ({mechanism}) protects what follows");
                return self.unreadable(time_ns, why.into(), sink);
            }
            let mut framer = std::mem::take(&mut self.framers[side.index()]);
            let done = self.frame(&mut framer, side, time_ns, &mut input, sink);
            self.framers[side.index()] = framer;
            match done? {
                Step::Next => {}
                Step::Done => return Ok(()),
                Step::Tls => {
                    self.protected(time_ns, sink)?;
                    return self.octets(side, time_ns, input, sink);
                }
            }
        }
    }

    /// Takes one frame out of `input`.
    fn frame(
        &mut self,
        framer: &mut Framer,
        side: Side,
        time_ns: u64,
        input: &mut &[u8],
        sink: &mut impl Sink,
    ) -> Result<Step, Error> {
        let (octets, total) = match framer.next(input) {
            None => return Ok(Step::Done),
            Some(Frame::Message(octets)) => (octets, octets.len() as u64),
            Some(Frame::Head { head, total }) => (head, total),
            Some(Frame::Lost(why)) => {
                let direction = self.direction(side);
                self.note(time_ns, Event::OutOfStep { direction, why }, sink)?;
                return Ok(Step::Next);
            }
            Some(Frame::Found(bytes)) => {
                let direction = self.direction(side);
                self.note(time_ns, Event::InStep { direction, bytes }, sink)?;
                return Ok(Step::Next);
            }
        };
        match self.message(side, Raw { time_ns, octets, total }, sink)? {
            Consequence::Tls => Ok(Step::Tls),
            Consequence::Unbind => {
                self.unbind = true;
                Ok(Step::Next)
            }
            Consequence::Layer(mechanism) => {
                self.layer = Some(mechanism);
                Ok(Step::Next)
            }
            Consequence::None => Ok(Step::Next),
        }
    }

    /// The mechanism whose layer protects these octets, if that is what they are: such a layer
    /// puts a length of four octets before each buffer (RFC 4422 § 3.7), a message of LDAP begins
    /// with its tag.
    fn protecting_layer(&mut self, side: Side, octets: &[u8]) -> Option<String> {
        let first = octets.first()?;
        self.layer.as_ref()?;
        if self.framers[side.index()].held_bytes() > 0 {
            return None;
        }
        let layer = self.layer.take()?;
        (*first != SEQUENCE).then_some(layer)
    }

    fn message(
        &mut self,
        side: Side,
        raw: Raw<'_>,
        sink: &mut impl Sink,
    ) -> Result<Consequence, Error> {
        let Some(operation) = peek_tag(raw.octets) else { return Ok(Consequence::None) };
        self.is_told = true;
        if !self.client_known {
            self.learn_client(side, is_request(operation));
        }
        let Self { pairing, connection, options, .. } = self;
        pairing.take(connection, raw, operation, *options, sink)
    }

    /// The end that sends a request is the client, whatever its port.
    fn learn_client(&mut self, side: Side, is_request: bool) {
        self.client_known = true;
        if is_request == (side == self.client_side) {
            return;
        }
        self.client_side = self.client_side.other();
        let Connection { client, server, .. } = &mut self.connection;
        std::mem::swap(client, server);
    }

    fn direction(&self, side: Side) -> Direction {
        if side == self.client_side { Direction::Request } else { Direction::Response }
    }

    fn note(&mut self, time_ns: u64, what: Event<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        self.is_told = true;
        sink.note(&Note { time_ns, connection: Some(&self.connection), what })
    }
}

enum Step {
    Next,
    Done,
    Tls,
}
