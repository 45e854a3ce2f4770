//! A collector that takes OTLP over HTTP: where it is, and one request to it.

use super::otlp;
use crate::limits::{OTLP_ANSWER_BYTES_MAX, OTLP_REASON_CHARS_MAX, OTLP_RETRY_AFTER_MAX};
use axum::body::{Body, to_bytes};
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use axum::http::uri::Authority;
use axum::http::{Request, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use keyway_host::failure::{Failure, plain};
use keyway_load::Trust;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::ServerName;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where metrics are pushed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    has_tls: bool,
    authority: Authority,
    path: String,
}

/// Why a request was of no use.
pub struct Refusal {
    pub why: String,
    /// For how long the collector wants to be left alone.
    pub pause: Option<Duration>,
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal { why, pause: None }
    }
}

impl Collector {
    /// The collector at a host and port, and there at a path that begins with `/`.
    pub fn new(has_tls: bool, authority: Authority, path: String) -> Collector {
        Collector { has_tls, authority, path }
    }

    /// Sends it metrics. To be given up after a while by the caller: a collector may take its time.
    ///
    /// # Errors
    /// If they have not all arrived.
    pub async fn send(
        &self,
        metrics: Vec<u8>,
        provider: &Arc<CryptoProvider>,
        trust: &Trust,
    ) -> Result<(), Refusal> {
        let usual = if self.has_tls { 443 } else { 80 };
        let port = self.authority.port_u16().unwrap_or(usual);
        // An address of version 6 is in brackets.
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port))
            .await
            .map_err(|why| format!("cannot connect: {}", plain(&why)))?;
        if !self.has_tls {
            return self.ask(stream, metrics).await;
        }
        let no_tls = |why: &dyn fmt::Display| format!("no TLS: {why}");
        let config = trust.config(provider).map_err(|why| no_tls(&Failure::from(why)))?;
        let connector = TlsConnector::from(config);
        let name = ServerName::try_from(host.to_owned()).map_err(|why| no_tls(&why))?;
        let stream = connector.connect(name, stream).await.map_err(|why| no_tls(&plain(&why)))?;
        self.ask(stream, metrics).await
    }

    async fn ask<S>(&self, stream: S, metrics: Vec<u8>) -> Result<(), Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |why: &dyn fmt::Display| format!("the connection broke: {why}");
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|why| broken(&why))?;
        let request = Request::post(&self.path)
            .header(HOST, self.authority.as_str())
            .header(USER_AGENT, concat!("keyway/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(CONNECTION, "close")
            .body(Body::from(metrics))
            .map_err(|why| broken(&why))?;
        let talk = async {
            let answer = sender.send_request(request).await.map_err(|why| broken(&why))?;
            judge(answer.map(Body::new)).await
        };
        // A collector may close before its answer is read here.
        let carry = async {
            let _ = connection.await;
            std::future::pending().await
        };
        tokio::select! { judged = talk => judged, never = carry => never }
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Whether what was sent has arrived, by the answer.
async fn judge(answer: Response<Body>) -> Result<(), Refusal> {
    let (head, body) = answer.into_parts();
    // A longer answer says nothing that is worth it.
    let body = to_bytes(body, OTLP_ANSWER_BYTES_MAX).await.unwrap_or_default();
    if head.status.is_success() {
        return match otlp::rejected(&body) {
            None => Ok(()),
            Some((points, why)) => {
                Err(format!("it has not taken {points} of the points{}", said(&why)).into())
            }
        };
    }
    let seconds = head.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
    Err(Refusal {
        why: format!(
            "it answers {}{}",
            head.status,
            said(&otlp::reason(&body).unwrap_or_default())
        ),
        pause: seconds.map(|seconds| Duration::from_secs(seconds).min(OTLP_RETRY_AFTER_MAX)),
    })
}

/// The collector's words, fit for a line of ours.
fn said(text: &str) -> String {
    let text: String =
        text.chars().filter(|c| !c.is_control()).take(OTLP_REASON_CHARS_MAX).collect();
    if text.is_empty() { text } else { format!(" ({text})") }
}
