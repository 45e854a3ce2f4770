//! Measuring: throughput, requests, connections, and where processor time goes.
//!
//! The protocol (draft-banks-quic-performance): on a stream the client says with eight bytes how
//! much it wants back, then sends what it likes; the server takes that, and sends as much as was
//! asked for.

use crate::endpoint::{self, Host, NO_ERROR, PERF};
use crate::error::Error;
use crate::stages::{Stage, Stages, Took, processor_time};
use crate::target::Target;
use bytes::Bytes;
use quinn::{ClientConfig, Connection, Endpoint, ReadError, RecvStream, SendStream};
use rustix::time::ClockId;
use rustls::RootCertStore;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The size of one write, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// The uploaded and downloaded bytes are nothing in particular.
static PIECE: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
/// Pieces taken from a stream at once.
const PIECES: usize = 32;
/// Length of a small request after its eight bytes, and of its answer, in bytes.
const REQUEST_BYTES: usize = 64;
/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// The quantity that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Bytes to the server.
    Upload,
    /// Bytes from the server.
    Download,
    /// Small requests, each on a stream of its own.
    Requests,
    /// Connections, each with a full handshake and one request.
    Connections,
}

impl Test {
    /// All of them.
    pub const ALL: [Test; 4] = [Test::Upload, Test::Download, Test::Requests, Test::Connections];

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Test::Upload => "upload",
            Test::Download => "download",
            Test::Requests => "requests",
            Test::Connections => "connections",
        }
    }

    /// Whether its rate is one of bytes.
    pub const fn moves_bytes(self) -> bool {
        matches!(self, Test::Upload | Test::Download)
    }
}

/// How a test is made.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How long it takes.
    pub seconds: f64,
    /// Upload and download end after so many bytes instead, if there is a number.
    pub bytes: Option<u64>,
    /// Connections at the same time.
    pub connections: u16,
    /// Streams at the same time on each connection.
    pub streams: u16,
}

/// How far a test is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The part that is done, 0 to 1.
    pub part: f64,
    /// Seconds since it began.
    pub seconds: f64,
    /// Bytes that have gone or come.
    pub bytes: u64,
    /// Requests or connections that are done.
    pub operations: u64,
}

/// Answers a client for as long as the connection lasts.
pub async fn answer(connection: &Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        // A client that breaks the protocol, or goes, gets no answer.
        tokio::spawn(async move { respond(send, receive).await });
    }
}

async fn respond(mut send: SendStream, mut receive: RecvStream) -> Option<()> {
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await.ok()?;
    let mut rest = u64::from_be_bytes(wanted);
    take(&mut receive, |_| ()).await.ok()?;
    while rest > 0 {
        let bytes = rest.min(PIECE_BYTES as u64);
        send.write_chunk(piece(bytes as usize)).await.ok()?;
        rest -= bytes;
    }
    send.finish().ok()
}

fn piece(bytes: usize) -> Bytes {
    Bytes::from_static(&PIECE[..bytes])
}

/// Takes all that comes; `took` hears how much.
async fn take(receive: &mut RecvStream, mut took: impl FnMut(u64)) -> Result<(), ReadError> {
    let mut pieces: [Bytes; PIECES] = std::array::from_fn(|_| Bytes::new());
    while let Some(count) = receive.read_chunks(&mut pieces).await? {
        took(pieces[..count].iter().map(|piece| piece.len() as u64).sum());
    }
    Ok(())
}

/// This side of a measurement, or both.
pub struct Side {
    client: Endpoint,
    config: ClientConfig,
    target: Target,
    /// One of our own, and its work.
    server: Option<Endpoint>,
    stages: Arc<Stages>,
}

impl Side {
    /// Measures with a server elsewhere, if `verifier` takes it.
    ///
    /// # Errors
    /// If the system gives no socket, or the cryptography cannot do TLS 1.3.
    pub fn with(
        host: &Host,
        target: Target,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Side, Error> {
        let client = host.client()?;
        let config = host.client_config(verifier, PERF)?;
        Ok(Side { client, config, target, server: None, stages: host.stages.clone() })
    }

    /// Measures with a server of its own, on loopback, whose self-signed certificate this is. It
    /// has to name 127.0.0.1.
    ///
    /// # Errors
    /// If the certificate does not do, and as [`Side::with`].
    pub fn with_itself(
        host: &Host,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Side, Error> {
        let mut authorities = RootCertStore::empty();
        authorities.add(certificate.clone()).map_err(|why| Error::Serve(why.to_string()))?;
        let refused = |why| Error::Socket(Arc::new(why));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        let server = host.server(vec![certificate], key, &[PERF], socket)?;
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        answer(&connection).await;
                    }
                });
            }
        });
        let (name, path) = (address.ip().to_string(), String::new());
        let target = Target { host: name, port: address.port(), path };
        let side = Side::with(host, target, host.verifier(authorities)?)?;
        Ok(Side { server: Some(server), ..side })
    }

    /// Ends whatever waits for the other side.
    pub fn interrupt(&self) {
        self.client.close(NO_ERROR, b"");
    }

    /// Closes all connections, and gives the peers up to a second to hear it.
    pub async fn close(&self) {
        for endpoint in self.server.iter().chain([&self.client]) {
            endpoint::close(endpoint).await;
        }
    }

    async fn connect(&self) -> Result<Connection, Error> {
        endpoint::connect(&self.client, &self.config, &self.target).await
    }

    /// Makes one test. `progress` hears about ten times a second how far it is. When `stop` is set
    /// and [`Side::interrupt`] is called it ends early, with what was done until then.
    ///
    /// # Errors
    /// If there is no server to measure with, or the connection is lost.
    pub async fn measure(
        &self,
        test: Test,
        plan: &Plan,
        stop: &Arc<AtomicBool>,
        progress: impl Fn(Progress),
    ) -> Result<Measured, Error> {
        let mut connections = Vec::new();
        for _ in 0..plan.connections {
            match self.connect().await {
                Ok(connection) => connections.push(connection),
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(why) => return Err(why),
            }
        }
        let bytes = plan.bytes.filter(|_| test.moves_bytes());
        let streams_in_all = u64::from(plan.connections) * u64::from(plan.streams);
        let begun = Mark::now(&self.stages);
        let work = Arc::new(Work {
            left: AtomicU64::new(bytes.unwrap_or(u64::MAX)),
            each: bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(streams_in_all)),
            deadline: match bytes {
                Some(_) => None,
                None => Some(begun.at + Duration::from_secs_f64(plan.seconds)),
            },
            bytes: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            stop: stop.clone(),
        });
        let mut tasks = JoinSet::new();
        // New connections come one after the other.
        let streams = if test == Test::Connections { 1 } else { plan.streams };
        for connection in
            connections.iter().flat_map(|one| std::iter::repeat_n(one, streams.into()))
        {
            let (work, connection) = (work.clone(), connection.clone());
            let again = Again {
                client: self.client.clone(),
                config: self.config.clone(),
                target: self.target.clone(),
            };
            tasks.spawn(async move {
                match test {
                    Test::Upload => work.upload(&connection).await,
                    Test::Download => work.download(&connection).await,
                    Test::Requests => work.requests(&connection).await,
                    Test::Connections => work.connections(&again).await,
                }
            });
        }
        let shown = async {
            loop {
                tokio::time::sleep(TICK).await;
                let bytes = work.bytes.load(Ordering::Relaxed);
                let operations = work.operations.load(Ordering::Relaxed);
                let seconds = begun.at.elapsed().as_secs_f64();
                let part = match work.deadline {
                    Some(_) => seconds / plan.seconds,
                    None => bytes as f64 / plan.bytes.unwrap_or(1) as f64,
                };
                progress(Progress { part: part.min(1.0), seconds, bytes, operations });
            }
        };
        let ended = async {
            let mut failed = None;
            while let Some(result) = tasks.join_next().await {
                // A task that panicked has said so.
                if let Ok(Err(why)) = result {
                    failed.get_or_insert(why);
                }
            }
            failed
        };
        let failed = tokio::select! {
            failed = ended => failed,
            () = shown => None,
        };
        let took = Mark::now(&self.stages).since(&begun);
        for connection in &connections {
            connection.close(NO_ERROR, b"");
        }
        match failed {
            // An interrupted test has lost its connections.
            Some(why) if !stop.load(Ordering::Relaxed) => Err(why),
            _ => Ok(Measured {
                test,
                bytes: work.bytes.load(Ordering::Relaxed),
                operations: work.operations.load(Ordering::Relaxed),
                took,
            }),
        }
    }
}

/// The parts that a new connection needs.
struct Again {
    client: Endpoint,
    config: ClientConfig,
    target: Target,
}

/// The work that all tasks of a test do together. Each does something, however late it comes to it.
struct Work {
    /// Bytes that no task has begun to send.
    left: AtomicU64,
    /// Bytes that each stream asks for.
    each: u64,
    deadline: Option<Instant>,
    bytes: AtomicU64,
    operations: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The next piece to send, until there is none.
    fn next_piece(&self) -> Option<Bytes> {
        let piece_bytes = PIECE_BYTES as u64;
        let take = |left: u64| (left > 0).then(|| left.saturating_sub(piece_bytes));
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(piece(left.min(piece_bytes) as usize))
    }

    async fn upload(&self, connection: &Connection) -> Result<(), Error> {
        let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
        send.write_all(&0u64.to_be_bytes()).await.map_err(lost)?;
        while let Some(piece) = self.next_piece() {
            let bytes = piece.len() as u64;
            send.write_chunk(piece).await.map_err(lost)?;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            if self.is_over() {
                break;
            }
        }
        send.finish().map_err(lost)?;
        // The server ends its side when it has it all.
        take(&mut receive, |_| ()).await.map_err(lost)?;
        self.operations.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn download(&self, connection: &Connection) -> Result<(), Error> {
        let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
        send.write_all(&self.each.to_be_bytes()).await.map_err(lost)?;
        send.finish().map_err(lost)?;
        let mut pieces: [Bytes; PIECES] = std::array::from_fn(|_| Bytes::new());
        while let Some(count) = receive.read_chunks(&mut pieces).await.map_err(lost)? {
            let bytes: usize = pieces[..count].iter().map(Bytes::len).sum();
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            if self.is_over() {
                let _ = receive.stop(NO_ERROR);
                break;
            }
        }
        self.operations.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn requests(&self, connection: &Connection) -> Result<(), Error> {
        loop {
            self.request(connection).await?;
            self.operations.fetch_add(1, Ordering::Relaxed);
            if self.is_over() {
                return Ok(());
            }
        }
    }

    async fn request(&self, connection: &Connection) -> Result<(), Error> {
        let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
        let mut request = [0; 8 + REQUEST_BYTES];
        request[..8].copy_from_slice(&(REQUEST_BYTES as u64).to_be_bytes());
        send.write_all(&request).await.map_err(lost)?;
        send.finish().map_err(lost)?;
        let mut bytes = REQUEST_BYTES as u64;
        take(&mut receive, |took| bytes += took).await.map_err(lost)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    async fn connections(&self, again: &Again) -> Result<(), Error> {
        loop {
            let connection = endpoint::connect(&again.client, &again.config, &again.target).await?;
            self.request(&connection).await?;
            connection.close(NO_ERROR, b"");
            self.operations.fetch_add(1, Ordering::Relaxed);
            if self.is_over() {
                return Ok(());
            }
        }
    }
}

fn lost(why: impl std::fmt::Display) -> Error {
    Error::Lost(why.to_string())
}

/// A point in time, and what was used until then.
struct Mark {
    at: Instant,
    cpu: Duration,
    stages: [Took; ALL.len()],
}

const ALL: [Stage; 5] = [Stage::Send, Stage::Receive, Stage::Seal, Stage::Open, Stage::Mask];

/// The use of resources between two points in time.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Time that went by.
    pub seconds: f64,
    /// Processor time of the whole process, in seconds.
    pub cpu_seconds: f64,
    stages: [Took; ALL.len()],
}

impl Mark {
    fn now(stages: &Stages) -> Mark {
        Mark {
            at: Instant::now(),
            cpu: processor_time(ClockId::ProcessCPUTime),
            stages: ALL.map(|stage| stages.took(stage)),
        }
    }

    fn since(&self, begun: &Mark) -> Used {
        Used {
            seconds: (self.at - begun.at).as_secs_f64(),
            cpu_seconds: self.cpu.saturating_sub(begun.cpu).as_secs_f64(),
            stages: std::array::from_fn(|n| self.stages[n].since(begun.stages[n])),
        }
    }
}

impl Used {
    /// The time of one stage.
    pub fn stage(&self, stage: Stage) -> Took {
        self.stages[stage as usize]
    }

    /// Shares of processor time: send, receive, packets, headers, all else.
    pub fn shares(&self) -> [f64; 5] {
        let share = |seconds: f64| seconds / self.cpu_seconds.max(1e-9);
        let of = |stage| share(self.stage(stage).seconds);
        let known = [of(Stage::Send), of(Stage::Receive), of(Stage::Seal) + of(Stage::Open)];
        let [send, receive, packets] = known;
        let headers = of(Stage::Mask);
        let other = 1.0 - send - receive - packets - headers;
        [send, receive, packets, headers, other.max(0.0)]
    }

    /// Packets that were sealed and opened: at both ends, if both are in this process.
    pub fn packets(&self) -> u64 {
        self.stage(Stage::Seal).calls + self.stage(Stage::Open).calls
    }

    /// Bytes in a packet on average; `None` if there was no packet.
    pub fn packet_bytes(&self) -> Option<f64> {
        let bytes = self.stage(Stage::Seal).bytes + self.stage(Stage::Open).bytes;
        (self.packets() > 0).then(|| bytes as f64 / self.packets() as f64)
    }

    /// Processor time that cryptography takes for a packet on average, payload and header, in
    /// nanoseconds; `None` if there was no packet.
    pub fn packet_nanoseconds(&self) -> Option<f64> {
        let packets = self.packets();
        (packets > 0).then(|| self.cryptography_seconds() * 1e9 / packets as f64)
    }

    /// By how much cryptography makes the rest cost more, as a part of it: processor time of packets and
    /// headers in that of all else.
    pub fn overhead(&self) -> f64 {
        let cryptography = self.cryptography_seconds();
        cryptography / (self.cpu_seconds - cryptography).max(1e-9)
    }

    fn cryptography_seconds(&self) -> f64 {
        let stages = [Stage::Seal, Stage::Open, Stage::Mask];
        stages.iter().map(|stage| self.stage(*stage).seconds).sum()
    }

    /// The time of one call, or one packet, of a stage, in nanoseconds; `None` if there was none.
    pub fn nanoseconds(&self, stage: Stage) -> Option<f64> {
        let took = self.stage(stage);
        (took.calls > 0).then(|| took.seconds * 1e9 / took.calls as f64)
    }
}

/// One test's result.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The test.
    pub test: Test,
    /// Bytes that went or came, requests included.
    pub bytes: u64,
    /// Streams of an upload or download, requests, or connections.
    pub operations: u64,
    /// The resources it took.
    pub took: Used,
}

impl Measured {
    /// Millions of bits that went or came.
    pub fn mbit(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6
    }
}
