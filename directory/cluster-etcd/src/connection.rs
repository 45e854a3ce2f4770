//! A connection to one endpoint: HTTP/1.1, over TLS or on loopback; requests in JSON, one at a time.

use crate::endpoint::Endpoint;
use crate::error::{Error, plain};
use crate::limits::{ANSWER_BYTES_MAX, HEAD_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::wire::{Complaint, Message};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// A connection, closed when it is dropped, with a request in flight too.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    /// Ends with the connection, with the reason; `None` once that is said.
    carrier: Option<JoinHandle<Option<hyper::Error>>>,
}

/// Why a request has no answer, and whether it may have been done all the same.
pub(crate) struct Failed {
    pub error: Error,
    pub is_sent: bool,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        failed.error
    }
}

fn unsent(error: Error) -> Failed {
    Failed { error, is_sent: false }
}

fn sent(error: Error) -> Failed {
    Failed { error, is_sent: true }
}

impl Connection {
    /// Connects. To be given up after a while by the caller.
    pub async fn open(
        endpoint: &Endpoint,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Connection, Error> {
        let away = |why: &dyn fmt::Display| {
            Error::Unavailable(format!("{endpoint}: {}", plain(&why.to_string())))
        };
        let stream = TcpStream::connect(endpoint.address()).await.map_err(|why| away(&why))?;
        // Each request is small and waits for its answer.
        stream.set_nodelay(true).map_err(|why| away(&why))?;
        let host = endpoint.authority().to_owned();
        if !endpoint.has_tls() {
            return Connection::over(stream, host).await.map_err(|why| away(&why));
        }
        let no_tls = || Error::Config(format!("{endpoint} needs TLS: name certificates for etcd"));
        let connector = TlsConnector::from(Arc::clone(tls.ok_or_else(no_tls)?));
        let stream = connector.connect(endpoint.server_name()?, stream).await;
        let stream = stream.map_err(|why| away(&format!("TLS: {why}")))?;
        Connection::over(stream, host).await.map_err(|why| away(&why))
    }

    async fn over<S>(stream: S, host: String) -> Result<Connection, hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX * 8);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        let carrier = tokio::spawn(async move { connection.await.err() });
        Ok(Connection { sender, host, carrier: Some(carrier) })
    }

    /// Whether another request may be sent.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    async fn send(&mut self, path: &str, body: Bytes) -> Result<Response<Incoming>, Failed> {
        let request = Request::post(path)
            .header(HOST, &*self.host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|why| unsent(Error::Config(why.to_string())))?;
        if let Err(why) = self.sender.ready().await {
            return Err(unsent(self.broken(&why).await));
        }
        match self.sender.try_send_request(request).await {
            Ok(answer) => Ok(answer),
            Err(mut why) => {
                let is_sent = why.take_message().is_none();
                Err(Failed { error: self.broken(why.error()).await, is_sent })
            }
        }
    }

    /// The error of a connection that takes no request: its own reason, such as an alert of TLS, where it has one.
    async fn broken(&mut self, why: &hyper::Error) -> Error {
        let carrier = self.carrier.take().filter(|_| self.sender.is_closed());
        let reason = match carrier {
            Some(carrier) => carrier.await.ok().flatten(),
            None => None,
        };
        let why = words(reason.as_ref().unwrap_or(why));
        Error::Unavailable(format!("{}: the connection broke: {}", self.host, plain(&why)))
    }

    /// Sends a request and reads its answer.
    pub async fn ask<A: DeserializeOwned>(&mut self, path: &str, body: Bytes) -> Result<A, Failed> {
        let answer = self.send(path, body).await?;
        let status = answer.status();
        let body = self.whole(answer.into_body()).await.map_err(sent)?;
        if status != StatusCode::OK {
            return Err(self.complaint(status, &body));
        }
        serde_json::from_slice(&body).map_err(|why| sent(self.senseless(&why)))
    }

    async fn whole(&self, body: Incoming) -> Result<Bytes, Error> {
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|why| {
            match why.is::<http_body_util::LengthLimitError>() {
                true => Error::Answer(format!("{}: more than {ANSWER_BYTES_MAX} bytes", self.host)),
                false => Error::Unavailable(format!("{}: the answer breaks off: {why}", self.host)),
            }
        })
    }

    fn senseless(&self, why: &serde_json::Error) -> Error {
        Error::Answer(format!("{}: {}", self.host, plain(&why.to_string())))
    }

    fn complaint(&self, status: StatusCode, body: &[u8]) -> Failed {
        match serde_json::from_slice::<Complaint>(body) {
            Ok(complaint) if !complaint.message.is_empty() => judge(&self.host, &complaint),
            _ => sent(Error::Answer(format!("{}: {status}", self.host))),
        }
    }

    /// Begins a stream of messages, with the connection for itself.
    pub async fn stream(mut self, path: &str, body: Bytes) -> Result<Messages, Failed> {
        let answer = self.send(path, body).await?;
        let status = answer.status();
        if status != StatusCode::OK {
            let body = self.whole(answer.into_body()).await.map_err(sent)?;
            return Err(self.complaint(status, &body));
        }
        Ok(Messages { body: answer.into_body(), line: Vec::new(), searched: 0, connection: self })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(carrier) = &self.carrier {
            carrier.abort();
        }
    }
}

/// An error's words, with those of what has led to it.
fn words(why: &dyn std::error::Error) -> String {
    let mut text = why.to_string();
    let mut next = why.source();
    while let Some(why) = next {
        text.push_str(": ");
        text.push_str(&why.to_string());
        next = why.source();
    }
    text
}

/// Messages of a stream: JSON, a line each.
pub(crate) struct Messages {
    body: Incoming,
    line: Vec<u8>,
    /// Bytes of `line` that have no end of a line.
    searched: usize,
    connection: Connection,
}

impl Messages {
    /// The next message. Nothing is lost if this is given up before it is there.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let host = &self.connection.host;
        loop {
            let behind = self.line.get(self.searched..).unwrap_or_default();
            if let Some(end) = behind.iter().position(|byte| *byte == b'\n') {
                let rest = self.line.split_off(self.searched + end + 1);
                let line = std::mem::replace(&mut self.line, rest);
                self.searched = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let message: Message<T> =
                    serde_json::from_slice(&line).map_err(|why| self.connection.senseless(&why))?;
                return match (message.result, message.error) {
                    (Some(result), None) => Ok(result),
                    (_, Some(complaint)) => Err(judge(host, &complaint).error),
                    (None, None) => Err(Error::Answer(format!("{host}: an empty message"))),
                };
            }
            self.searched = self.line.len();
            if self.line.len() > MESSAGE_BYTES_MAX {
                let why = format!("{host}: a message of more than {MESSAGE_BYTES_MAX} bytes");
                return Err(Error::Answer(why));
            }
            let frame = self.body.frame().await;
            let ends = |why: &dyn fmt::Display| {
                Error::Unavailable(format!("{host}: the watch ends: {why}"))
            };
            let frame = frame.ok_or_else(|| ends(&"closed by etcd"))?.map_err(|why| ends(&why))?;
            self.line.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
    }
}

/// What a complaint means. The codes are gRPC's.
fn judge(host: &str, complaint: &Complaint) -> Failed {
    let message = plain(&complaint.message);
    let why = format!("{host}: {message}");
    match complaint.code {
        3 if message.contains("too large") => unsent(Error::TooLarge(why)),
        5 if message.contains("lease not found") => unsent(Error::Expired),
        8 if message.contains("space exceeded") => unsent(Error::Full(why)),
        8 if message.contains("larger than max") => unsent(Error::TooLarge(why)),
        // Cancelled, unknown, past its time, exhausted, aborted, internal, unavailable: of the moment, and the end of
        // the request is not known.
        1 | 2 | 4 | 8 | 10 | 13 | 14 => sent(Error::Unavailable(why)),
        _ => unsent(Error::Refused(why)),
    }
}
