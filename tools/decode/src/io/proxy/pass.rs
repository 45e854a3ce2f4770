//! Octets on their way between the two sides, with a copy of each for the tap.

use crate::limits::PROXY_BUFFER_BYTES;
use crate::starttls::{StartTlsMessage, StartTlsWatch};
use crate::{Side, Tap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The octets that are being passed on.
pub(super) struct Pass<'p> {
    pub tap: &'p Tap,
    pub number: u64,
}

/// Between the two directions: a StartTLS that is under way.
#[derive(Default)]
struct StartTls {
    /// The request's message id; ids begin with 1.
    asked: AtomicU32,
    granted: AtomicBool,
    answered: Notify,
}

/// The step after octets were passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    /// Nothing is passed on until StartTLS was answered.
    Wait,
    /// TLS begins.
    Tls,
}

impl StartTls {
    /// Looks at what a client sends. After a request for StartTLS it is silent until that is answered
    /// (RFC 4511 § 4.14.1).
    fn requested(&self, watch: &mut StartTlsWatch, octets: &[u8]) -> Then {
        let (used, seen) = watch.look(octets);
        let asked = match seen {
            // More than that is against the rules, and none of our business.
            Some(StartTlsMessage::Request(id)) if used == octets.len() => id,
            _ => 0,
        };
        self.asked.store(asked, Ordering::Relaxed);
        if asked > 0 { Then::Wait } else { Then::GoOn }
    }

    /// Looks at what a server sends.
    fn answered(&self, watch: &mut StartTlsWatch, octets: &[u8]) -> io::Result<Then> {
        let mut rest = octets;
        while !rest.is_empty() {
            let (used, seen) = watch.look(rest);
            rest = rest.get(used..).unwrap_or_default();
            let Some(StartTlsMessage::Answer(id, granted)) = seen else { continue };
            if id != self.asked.load(Ordering::Relaxed) {
                continue;
            }
            self.granted.store(granted, Ordering::Relaxed);
            self.answered.notify_one();
            if granted && !rest.is_empty() {
                let what = "the server sent more than its answer before TLS began";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if granted {
                return Ok(Then::Tls);
            }
        }
        Ok(Then::GoOn)
    }
}

impl Pass<'_> {
    /// Passes both directions on until both have ended.
    pub async fn both(
        &self,
        (mut from_client, mut to_client): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
        (mut from_server, mut to_server): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let start = StartTls::default();
        let go_on = |_: &[u8]| Ok(Then::GoOn);
        let requests = self.one(&mut from_client, &mut to_server, Side::First, &start, go_on);
        let responses = self.one(&mut from_server, &mut to_client, Side::Second, &start, go_on);
        tokio::try_join!(requests, responses).map(|_| ())
    }

    /// Passes both on until StartTLS was granted: whether it was, and the connection did not end.
    pub async fn until_tls(
        &self,
        client: &mut TcpStream,
        server: &mut TcpStream,
    ) -> io::Result<bool> {
        let start = StartTls::default();
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let (mut of_client, mut of_server) = (StartTlsWatch::default(), StartTlsWatch::default());
        let asks = |octets: &[u8]| Ok(start.requested(&mut of_client, octets));
        let requests = self.one(&mut from_client, &mut to_server, Side::First, &start, asks);
        let answers = |octets: &[u8]| start.answered(&mut of_server, octets);
        let responses = self.one(&mut from_server, &mut to_client, Side::Second, &start, answers);
        tokio::try_join!(requests, responses)?;
        Ok(start.granted.load(Ordering::Relaxed))
    }

    /// Passes one direction on, until it ends or TLS begins. `look` sees octets before they are sent, and
    /// says what is to be done afterwards.
    async fn one(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        side: Side,
        start: &StartTls,
        mut look: impl FnMut(&[u8]) -> io::Result<Then>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; PROXY_BUFFER_BYTES];
        loop {
            let count = from.read(&mut buffer).await?;
            let octets = buffer.get(..count).unwrap_or_default();
            if octets.is_empty() {
                // No answer comes any more to one that waits for it.
                start.answered.notify_one();
                return to.shutdown().await;
            }
            let then = look(octets)?;
            self.tap.octets(self.number, now_ns(), side, octets);
            to.write_all(octets).await?;
            to.flush().await?;
            if then == Then::Wait {
                start.answered.notified().await;
            }
            if then == Then::Tls || then == Then::Wait && start.granted.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}
