//! A connection's bytes, with or without TLS.

use crate::limits::{LEFT_BYTES_MAX, LINGER_BYTES_MAX, LINGER_MAX};
use crate::seen::TlsSeen;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::block_in_place;
use tokio::time::timeout;
use tokio_rustls::rustls::server::{Acceptor, ClientHello};
use tokio_rustls::rustls::{HandshakeKind, ServerConfig};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, LazyConfigAcceptor, TlsAcceptor};
use zeroize::Zeroizing;

/// All kinds of connection.
pub(crate) enum Stream {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Takes the peer through a TLS handshake. One that fails ends with an alert that says why.
    pub async fn accept_tls(tcp: TcpStream, config: Arc<ServerConfig>) -> io::Result<Self> {
        Stream::shake_hands(TlsAcceptor::from(config).accept(tcp)).await
    }

    /// As [`Stream::accept_tls`], with the configuration that is chosen by what the peer asks for.
    pub async fn accept_tls_by(
        tcp: TcpStream,
        choose: impl FnOnce(&ClientHello<'_>) -> Arc<ServerConfig>,
    ) -> io::Result<Self> {
        let mut acceptor = LazyConfigAcceptor::new(Acceptor::default(), tcp);
        match (&mut acceptor).await {
            Ok(start) => {
                let config = choose(&start.client_hello());
                Stream::shake_hands(start.into_stream(config)).await
            }
            Err(error) => {
                if let Some(tcp) = acceptor.take_io() {
                    turn_away(tcp).await;
                }
                Err(error)
            }
        }
    }

    async fn shake_hands(handshake: Accept<TcpStream>) -> io::Result<Self> {
        let mut handshake = handshake.into_fallible();
        // A key may be in another process, and that may hang: others go on meanwhile.
        let apart = poll_fn(|context| block_in_place(|| Pin::new(&mut handshake).poll(context)));
        match apart.await {
            Ok(tls) => Ok(Stream::Tls(Box::new(tls))),
            Err((error, tcp)) => {
                turn_away(tcp).await;
                Err(error)
            }
        }
    }

    /// Reads what is there now, without waiting for the poller to say that there is something; `None` if there is
    /// nothing. Over TLS it is not asked.
    ///
    /// # Errors
    /// The system's.
    pub fn read_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let received = match self {
            Stream::Plain(tcp) => rustix::net::recv(tcp, buffer, RecvFlags::DONTWAIT),
            Stream::Unix(unix) => rustix::net::recv(unix, buffer, RecvFlags::DONTWAIT),
            Stream::Tls(_) => return Ok(None),
        };
        match received {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether TLS has something to say that was not written: an alert, which reading may bring about.
    /// A flush sends it.
    pub fn has_alert(&self) -> bool {
        match self {
            Stream::Plain(_) | Stream::Unix(_) => false,
            Stream::Tls(tls) => tls.get_ref().1.wants_write(),
        }
    }

    /// The outcome of the TLS handshake, if there was one.
    pub fn handshake(&self) -> Option<TlsSeen> {
        let Stream::Tls(tls) = self else { return None };
        let connection = tls.get_ref().1;
        let name = |debug: &dyn std::fmt::Debug| format!("{debug:?}");
        Some(TlsSeen {
            version: connection.protocol_version().map(|it| name(&it))?.replace('_', "."),
            suite: name(&connection.negotiated_cipher_suite()?.suite()),
            group: connection.negotiated_key_exchange_group().map(|group| name(&group.name())),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        })
    }

    /// The certificate that the peer proved to have, DER; the handshake has verified it.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) | Stream::Unix(_) => None,
            Stream::Tls(tls) => Some(tls.get_ref().1.peer_certificates()?.first()?.as_ref()),
        }
    }
}

/// Closes after a handshake that failed, so that the peer sees the alert. Nothing can go wrong worse than that did.
async fn turn_away(mut tcp: TcpStream) {
    let _ = tcp.shutdown().await;
    let _ = timeout(LINGER_MAX, drain(&mut tcp, 0)).await;
}

/// Reads on for a little after the last word: closing with input unread would make the system reset
/// the connection, and the peer might never see it. `beside` is what is known to come besides, in bytes.
pub(crate) async fn drain(stream: &mut (impl AsyncRead + Unpin), beside: usize) -> io::Result<()> {
    let mut dropped = Zeroizing::new([0; 4096]);
    let mut left = LINGER_BYTES_MAX.saturating_add(beside.min(LEFT_BYTES_MAX));
    while left > 0 {
        match stream.read(&mut *dropped).await? {
            0 => break,
            bytes => left = left.saturating_sub(bytes),
        }
    }
    Ok(())
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Stream::Unix(unix) => Pin::new(unix).poll_read(context, buffer),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Stream::Unix(unix) => Pin::new(unix).poll_write(context, bytes),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Stream::Unix(unix) => Pin::new(unix).poll_flush(context),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Stream::Unix(unix) => Pin::new(unix).poll_shutdown(context),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_shutdown(context),
        }
    }
}
