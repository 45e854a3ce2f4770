//! Calls to etcd: endpoints tried in turn, within a time, none older than 3.6.

use crate::connection::{Connection, Failed, Messages};
use crate::endpoint::Endpoint;
use crate::error::{Error, plain};
use crate::limits::{ENDPOINTS_MAX, IDLE_CONNECTIONS_MAX, PAUSE};
use crate::wire::{Any, Status};
use bytes::Bytes;
use keyway_lock::Unpoisoned;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The oldest version whose watches lose nothing at a compaction.
const OLDEST: (u64, u64) = (3, 6);

/// An endpoint, and connections to it that no call uses now.
struct Place {
    endpoint: Endpoint,
    idle: Mutex<Vec<Connection>>,
}

impl Place {
    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unpoisoned();
        if idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push(connection);
        }
    }

    fn kept(&self) -> Option<Connection> {
        self.idle.lock().unpoisoned().pop()
    }
}

/// The endpoints of one etcd.
pub(crate) struct Client {
    places: Vec<Place>,
    /// The place that has answered last.
    current: AtomicUsize,
    tls: Option<Arc<ClientConfig>>,
    /// How long one endpoint may take, where there is another one.
    try_limit: Duration,
}

impl Client {
    pub fn new(
        endpoints: Vec<Endpoint>,
        tls: Option<Arc<ClientConfig>>,
        try_limit: Duration,
    ) -> Result<Client, Error> {
        if endpoints.is_empty() || endpoints.len() > ENDPOINTS_MAX {
            let count = endpoints.len();
            return Err(Error::Config(format!(
                "{count} URLs of etcd, and 1 to {ENDPOINTS_MAX} may be"
            )));
        }
        if let (Some(endpoint), None) = (endpoints.iter().find(|it| it.has_tls()), &tls) {
            return Err(Error::Config(format!("{endpoint} needs TLS: name certificates for etcd")));
        }
        // etcd would choose HTTP/2 if it were offered.
        let tls = tls.map(|config| {
            let mut config = (*config).clone();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(config)
        });
        let place = |endpoint| Place { endpoint, idle: Mutex::new(Vec::new()) };
        let places = endpoints.into_iter().map(place).collect();
        Ok(Client { places, current: AtomicUsize::new(0), tls, try_limit })
    }

    /// Makes a call that may be made twice: a try that is given up may still be done.
    pub async fn call<A: DeserializeOwned>(
        &self,
        path: &str,
        request: &Value,
        limit: Duration,
    ) -> Result<A, Failed> {
        let body = Bytes::from(request.to_string());
        let mut turns = Turns::new(self, limit);
        loop {
            let place = turns.place()?;
            let attempt = async {
                let mut connection = self.connected(place).await?;
                turns.is_trying.store(true, Ordering::Relaxed);
                let answer = connection.ask(path, body.clone()).await?;
                place.keep(connection);
                Ok(answer)
            };
            let tried = timeout_at(turns.try_end(), attempt).await;
            match turns.judge(tried) {
                Ok(answer) => return Ok(answer),
                Err(failed) => turns.failed(failed).await?,
            }
        }
    }

    /// Makes a call at every endpoint, each within the time.
    pub async fn each(&self, path: &str, request: &Value, limit: Duration) -> Result<(), Error> {
        for place in &self.places {
            let call = async {
                let body = Bytes::from(request.to_string());
                self.connected(place).await?.ask::<Any>(path, body).await
            };
            let late = |_| Error::Unavailable(format!("{}: no answer in time", place.endpoint));
            let Any {} = timeout(limit, call).await.map_err(late)??;
        }
        Ok(())
    }

    /// Begins a stream.
    pub async fn stream(
        &self,
        path: &str,
        request: &Value,
        limit: Duration,
    ) -> Result<Messages, Error> {
        let body = Bytes::from(request.to_string());
        let mut turns = Turns::new(self, limit);
        loop {
            let place = turns.place()?;
            let attempt = async { self.connected(place).await?.stream(path, body.clone()).await };
            let tried = timeout_at(turns.try_end(), attempt).await;
            match turns.judge(tried) {
                Ok(messages) => return Ok(messages),
                Err(failed) => turns.failed(failed).await?,
            }
        }
    }

    /// A connection that was used before, or a new one to an etcd that is new enough.
    async fn connected(&self, place: &Place) -> Result<Connection, Failed> {
        while let Some(connection) = place.kept() {
            if connection.is_open() {
                return Ok(connection);
            }
        }
        let unsent = |error| Failed { error, is_sent: false };
        let opened = Connection::open(&place.endpoint, self.tls.as_ref()).await;
        let mut connection = opened.map_err(unsent)?;
        let empty = Bytes::from(json!({}).to_string());
        let status: Status = connection
            .ask("/v3/maintenance/status", empty)
            .await
            .map_err(|failed| unsent(failed.error))?;
        match is_new_enough(&status.version) {
            true => Ok(connection),
            false => {
                let endpoint = place.endpoint.to_string();
                Err(unsent(Error::TooOld { endpoint, version: plain(&status.version) }))
            }
        }
    }
}

/// The tries of one call: one endpoint after the other, all of them again until the time is over.
struct Turns<'c> {
    client: &'c Client,
    end: Instant,
    number: usize,
    /// Endpoints of this round that are not tried yet.
    left: usize,
    /// What is to be said if this round is the last.
    worst: Option<Error>,
    is_sent: bool,
    /// Whether the try that was begun last may have been done.
    is_trying: AtomicBool,
}

impl<'c> Turns<'c> {
    fn new(client: &'c Client, limit: Duration) -> Turns<'c> {
        let (end, left) = (Instant::now() + limit, client.places.len());
        let number = client.current.load(Ordering::Relaxed);
        let is_trying = AtomicBool::new(false);
        Turns { client, end, number, left, worst: None, is_sent: false, is_trying }
    }

    fn place(&self) -> Result<&'c Place, Failed> {
        let none = || Error::Config("no URL of etcd".into());
        let place = self.client.places.get(self.number);
        place.ok_or_else(|| Failed { error: none(), is_sent: self.is_sent })
    }

    /// When the try that begins now is given up.
    fn try_end(&self) -> Instant {
        self.end.min(Instant::now() + self.client.try_limit)
    }

    fn judge<A>(&self, tried: Result<Result<A, Failed>, Elapsed>) -> Result<A, Failed> {
        let answer = tried.unwrap_or_else(|_| {
            let endpoint = self.place().map(|place| place.endpoint.to_string())?;
            let error = Error::Unavailable(format!("{endpoint}: no answer in time"));
            Err(Failed { error, is_sent: self.is_trying.load(Ordering::Relaxed) })
        })?;
        self.client.current.store(self.number, Ordering::Relaxed);
        Ok(answer)
    }

    /// Goes on with the next endpoint, after a pause where all have failed; an error if there is nothing more to try.
    async fn failed(&mut self, failed: Failed) -> Result<(), Failed> {
        self.is_sent |= failed.is_sent;
        self.is_trying.store(false, Ordering::Relaxed);
        match failed.error {
            error @ Error::Unavailable(_) => self.worst = self.worst.take().or(Some(error)),
            error @ (Error::Answer(_) | Error::TooOld { .. }) => self.worst = Some(error),
            error => return Err(Failed { error, is_sent: self.is_sent }),
        }
        let count = self.client.places.len();
        self.number = (self.number + 1) % count.max(1);
        self.left = self.left.saturating_sub(1);
        let now = Instant::now();
        if self.left > 0 && now < self.end {
            return Ok(());
        }
        self.left = count;
        match self.worst.take() {
            Some(Error::Unavailable(_)) if now + PAUSE < self.end => sleep(PAUSE).await,
            // Others are not getting better by themselves.
            Some(error) => return Err(Failed { error, is_sent: self.is_sent }),
            None => {}
        }
        Ok(())
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u64>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_3_6_on_are_taken() {
        for good in ["3.6.0", "3.6.16", "3.7.0-rc.1", "3.10.1", "4.0.0"] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["3.5.21", "3.4.23", "2.9.0", "", "3", "3.x.1", "-3.6.0", "v3.6.0"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }

    #[test]
    fn endpoints_without_what_they_need_are_refused() {
        let new = |urls: &[&str]| {
            let endpoints = urls.iter().map(|url| url.parse().unwrap()).collect();
            Client::new(endpoints, None, PAUSE).err()
        };
        assert!(new(&["http://127.0.0.1:2379"]).is_none());
        assert!(matches!(new(&[]), Some(Error::Config(_))));
        assert!(matches!(new(&["http://127.0.0.1"; 17]), Some(Error::Config(_))));
        assert!(matches!(new(&["https://a.example.com"]), Some(Error::Config(_))));
    }
}
