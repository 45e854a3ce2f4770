//! TLS 1.2 and 1.3 from outside, with the secrets that one of the ends has written down.
//!
//! Records are opened by the engine; nothing is verified but what an AEAD verifies. After a gap the
//! record's number is not known: the next ones are tried.

mod content;
mod handshake;
mod keys;
mod record;

use crate::direction::Side;
use handshake::{Hello, Messages};
use record::{Cipher, Opener, Records};
use std::sync::Arc;

pub(crate) use content::Reason;
use content::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE};
pub use keys::Keys;
pub(crate) use record::looks_like_tls;

/// One direction.
#[derive(Debug, Default)]
struct Half {
    records: Records,
    messages: Messages,
    opener: Option<Opener>,
}

/// One connection's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    keys: Arc<Keys>,
    halves: [Half; 2],
    client: Option<Side>,
    client_random: Option<[u8; 32]>,
    server: Option<Hello>,
    cipher: Option<Cipher>,
}

impl Tls {
    pub(crate) fn new(keys: Arc<Keys>) -> Self {
        Tls {
            keys,
            halves: Default::default(),
            client: None,
            client_random: None,
            server: None,
            cipher: None,
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.halves.iter().map(|half| half.records.held_bytes() + half.messages.held_bytes()).sum()
    }

    /// Takes octets of one side, and appends what was within them to `plain`.
    pub(crate) fn octets(
        &mut self,
        side: Side,
        octets: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        self.half(side).records.push(octets);
        loop {
            let half = self.half(side);
            let Some((kind, record)) = half.records.next(half.opener.as_mut())? else {
                return Ok(());
            };
            let is_open = half.opener.is_some();
            let done = self.record(side, kind, is_open, &record, plain);
            self.half(side).records.give_back(record);
            done?;
        }
    }

    /// So many octets of one side are missing. The content is out of step then.
    pub(crate) fn gap(&mut self, side: Side) -> Result<(), Reason> {
        let half = self.half(side);
        if half.opener.is_none() {
            return Err("a part of the TLS handshake is missing: the rest cannot be read".into());
        }
        half.records.lose();
        Ok(())
    }

    fn half(&mut self, side: Side) -> &mut Half {
        let [first, second] = &mut self.halves;
        match side {
            Side::First => first,
            Side::Second => second,
        }
    }

    /// Takes the contents of a record, opened if there was a key.
    fn record(
        &mut self,
        side: Side,
        kind: u8,
        is_open: bool,
        record: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        match (kind, is_open) {
            (HANDSHAKE, _) => self.handshake(side, record),
            (CHANGE_CIPHER_SPEC, false) => self.change_cipher(side),
            (APPLICATION_DATA, true) => {
                plain.extend_from_slice(record);
                Ok(())
            }
            (APPLICATION_DATA, false) => {
                Err("TLS began before the capture did: the rest cannot be read".into())
            }
            _ => Ok(()),
        }
    }

    fn handshake(&mut self, side: Side, octets: &[u8]) -> Result<(), Reason> {
        self.half(side).messages.push(octets);
        while let Some((kind, body)) = self.half(side).messages.next()? {
            match kind {
                handshake::CLIENT_HELLO => {
                    self.client = Some(side);
                    self.client_random = handshake::client_random(&body);
                }
                handshake::SERVER_HELLO => self.server_hello(&body)?,
                handshake::FINISHED if self.is_tls13() => self.switch(side, true)?,
                handshake::KEY_UPDATE if self.is_tls13() => {
                    if let Some(opener) = &mut self.half(side).opener {
                        opener.update()?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_tls13(&self) -> bool {
        self.server.as_ref().is_some_and(|hello| hello.is_tls13)
    }

    fn server_hello(&mut self, body: &[u8]) -> Result<(), Reason> {
        let hello = handshake::server_hello(body).ok_or("a TLS ServerHello that is none")?;
        if hello.is_retry {
            return Ok(());
        }
        let cipher = Cipher::new(hello.suite, hello.is_tls13).ok_or_else(|| {
            format!("TLS with cipher suite 0x{:04x}, which is not read here", hello.suite)
        })?;
        (self.cipher, self.server) = (Some(cipher), Some(hello));
        if self.is_tls13() {
            self.switch(Side::First, false)?;
            self.switch(Side::Second, false)?;
        }
        Ok(())
    }

    /// TLS 1.3: the keys of this side are those of the handshake, or those after it.
    fn switch(&mut self, side: Side, is_finished: bool) -> Result<(), Reason> {
        let (Some(cipher), Some(random)) = (self.cipher, self.client_random) else {
            return Err("TLS began before the capture did: the rest cannot be read".into());
        };
        let label = match (self.client == Some(side), is_finished) {
            (true, false) => keys::Label::ClientHandshake,
            (false, false) => keys::Label::ServerHandshake,
            (true, true) => keys::Label::ClientTraffic,
            (false, true) => keys::Label::ServerTraffic,
        };
        let secret = self.keys.secret(&random, label).ok_or_else(unknown)?;
        let opener = Opener::tls13(self.keys.engine(), cipher, secret)?;
        self.half(side).opener = Some(opener);
        Ok(())
    }

    /// TLS 1.2: the records that follow are protected.
    fn change_cipher(&mut self, side: Side) -> Result<(), Reason> {
        // In TLS 1.3 it means nothing (RFC 8446 appendix D.4), and may come before the version is known.
        let (Some(hello), Some(cipher)) = (&self.server, self.cipher) else { return Ok(()) };
        if hello.is_tls13 {
            return Ok(());
        }
        let random = self.client_random.ok_or_else(unknown)?;
        let master = self.keys.secret(&random, keys::Label::Master).ok_or_else(unknown)?;
        let is_client = self.client == Some(side);
        let engine = self.keys.engine();
        let opener = Opener::tls12(engine, cipher, &master, &random, &hello.random, is_client)?;
        self.half(side).opener = Some(opener);
        Ok(())
    }
}

fn unknown() -> Reason {
    "TLS protects what follows, and no key log has its keys".into()
}
