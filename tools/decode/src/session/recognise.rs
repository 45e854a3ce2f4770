//! The protocol of a connection: LDAP, TLS around it, or one that cannot be read.

use super::Session;
use super::mode::Mode;
use crate::direction::Side;
use crate::error::Error;
use crate::framing::{Framer, looks_like_a_message};
use crate::operation::{Event, Sink};
use crate::tls::{Reason, Tls, looks_like_tls};

/// The preambles that may stand before the first message: the PROXY protocol's two versions.
const PREAMBLES: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];

impl Session {
    /// Recognises the protocol by the first octets.
    pub(super) fn recognise(
        &mut self,
        side: Side,
        time_ns: u64,
        octets: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        if looks_like_tls(octets) {
            if self.expected || self.keys.is_some() {
                return self.protected(time_ns, sink);
            }
            self.mode = Mode::Ignored;
        } else if self.expected || looks_like_a_message(octets, true) == Some(true) {
            self.mode = Mode::Ldap;
        } else if !octets.is_empty() {
            self.mode = Mode::Ignored;
        }
        // A preamble, such as the PROXY protocol's, is passed over.
        if PREAMBLES.iter().any(|preamble| octets.starts_with(preamble)) {
            self.mode = Mode::Ldap;
            self.framers[side.index()] = Framer::midway();
        }
        Ok(())
    }

    /// From here on there is TLS.
    pub(super) fn protected(&mut self, time_ns: u64, sink: &mut impl Sink) -> Result<(), Error> {
        if self.connection.tls {
            return self.unreadable(time_ns, "TLS within TLS".into(), sink);
        }
        self.connection.tls = true;
        self.framers = Default::default();
        match &self.keys {
            Some(keys) => {
                self.mode = Mode::Tls(Box::new(Tls::new(keys.clone())));
                Ok(())
            }
            None => self.unreadable(time_ns, "TLS protects what follows".into(), sink),
        }
    }

    /// Nothing more can be read, for this reason; nothing is said where that was no surprise.
    pub(super) fn unreadable(
        &mut self,
        time_ns: u64,
        why: Reason,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        self.mode = Mode::Ignored;
        // Whether the client says goodbye will not be known.
        self.unbind = true;
        if self.expected || self.is_told {
            self.note(time_ns, Event::Unreadable(why), sink)?;
        }
        Ok(())
    }

    pub(super) fn within_tls(
        &mut self,
        side: Side,
        time_ns: u64,
        octets: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let Mode::Tls(tls) = &mut self.mode else { return Ok(()) };
        let mut plain = Vec::new();
        let opened = tls.octets(side, octets, &mut plain);
        if !self.expected && !self.is_told && !plain.is_empty() {
            // On a port that is not known it must look like LDAP here, too.
            self.expected = looks_like_a_message(&plain, true) == Some(true);
            if !self.expected {
                self.mode = Mode::Ignored;
                return Ok(());
            }
        }
        self.ldap(side, time_ns, &plain, sink)?;
        opened.or_else(|why| self.unreadable(time_ns, why, sink))
    }
}
