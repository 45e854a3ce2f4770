//! Frames over a connection between members, each within a time.

use keyway_cluster::message::{Answer, Decoder, Frame, FrameError};
use std::fmt::{self, Display};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

/// Octets that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection between members, of either end, over which frames go.
pub struct MemberStream<S = TlsStream<TcpStream>> {
    stream: S,
    decoder: Decoder,
    out: Vec<u8>,
    input: Box<[u8]>,
}

/// Why a connection is of no more use.
#[derive(Debug)]
pub enum StreamError {
    /// The system's reason.
    Io(io::Error),
    /// The peer sent what is no frame.
    Frame(FrameError),
    /// The peer did nothing for this long.
    Silent(Duration),
    /// The peer has closed it, within a frame if that is said.
    Ended,
}

impl Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Io(why) => write!(f, "the connection broke: {why}"),
            StreamError::Frame(why) => write!(f, "the peer sent no frame: {why}"),
            StreamError::Silent(time) => write!(f, "the peer did nothing for {} s", time.as_secs()),
            StreamError::Ended => f.write_str("the peer has closed the connection"),
        }
    }
}

impl std::error::Error for StreamError {}

impl<S: AsyncRead + AsyncWrite + Unpin> MemberStream<S> {
    /// Over this connection, whose peer may send small frames only until [`MemberStream::allow`].
    pub fn new(stream: S) -> MemberStream<S> {
        let input = vec![0; READ_BYTES].into_boxed_slice();
        MemberStream { stream, decoder: Decoder::new(), out: Vec::new(), input }
    }

    /// The connection.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The connection, and what was read of it and not taken.
    pub fn into_parts(self) -> (S, Decoder) {
        (self.stream, self.decoder)
    }

    /// See [`Decoder::allow`].
    pub fn allow(&mut self, most: usize) {
        self.decoder.allow(most);
    }

    /// The next frame, all of which has to come within `time`.
    ///
    /// # Errors
    /// If it does not, or the peer goes.
    pub async fn next(&mut self, time: Duration) -> Result<Frame, StreamError> {
        let next = async {
            loop {
                if let Some(frame) = self.decoder.next_frame().map_err(StreamError::Frame)? {
                    return Ok(frame);
                }
                let read = self.stream.read(&mut self.input).await;
                match read.or_else(|why| match why.kind() {
                    // TLS says so where the peer has not said goodbye.
                    io::ErrorKind::UnexpectedEof => Ok(0),
                    _ => Err(StreamError::Io(why)),
                })? {
                    0 => return Err(StreamError::Ended),
                    bytes => {
                        let read = self.input.get_mut(..bytes).unwrap_or_default();
                        self.decoder.push(read);
                        // It may hold a token.
                        read.fill(0);
                    }
                }
            }
        };
        timeout(time, next).await.unwrap_or(Err(StreamError::Silent(time)))
    }

    /// The next frame, if all of it has come already.
    ///
    /// # Errors
    /// If it is none.
    pub fn ready(&mut self) -> Result<Option<Frame>, StreamError> {
        self.decoder.next_frame().map_err(StreamError::Frame)
    }

    /// Sends a frame; the peer has to take it within `time`.
    ///
    /// # Errors
    /// If it does not, or goes; or the frame is too long.
    pub async fn send(&mut self, frame: &Frame, time: Duration) -> Result<(), StreamError> {
        self.out.clear();
        frame.encode(&mut self.out).map_err(StreamError::Frame)?;
        let sent = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        timeout(time, sent).await.unwrap_or(Err(io::ErrorKind::TimedOut.into())).map_err(|why| {
            match why.kind() {
                io::ErrorKind::TimedOut => StreamError::Silent(time),
                _ => StreamError::Io(why),
            }
        })
    }

    /// Answers.
    ///
    /// # Errors
    /// As [`MemberStream::send`].
    pub async fn answer(&mut self, answer: Answer, time: Duration) -> Result<(), StreamError> {
        self.send(&Frame::Answer(answer), time).await
    }

    /// Says that this was all.
    ///
    /// # Errors
    /// If the peer is gone.
    pub async fn close(&mut self, time: Duration) -> Result<(), StreamError> {
        let closed = timeout(time, self.stream.shutdown()).await;
        closed.unwrap_or(Err(io::ErrorKind::TimedOut.into())).map_err(StreamError::Io)
    }
}
