//! `keyway quic perf`: throughput, requests, connections, and where processor time goes.
//!
//! The protocol (draft-banks-quic-performance): on a stream the client says with eight bytes how
//! much it wants back, then sends what it likes; the server takes that, and sends as much as was
//! asked for.

use super::arguments::{Perf, Test};
use super::endpoint::{self, Host, NO_ERROR, PERF};
use super::runtime;
use super::stages::{Stage, Stages, Took, processor_time};
use super::target::Target;
use crate::failure::Failure;
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::signals::Signals;
use bytes::Bytes;
use clap::ValueEnum;
use quinn::{ClientConfig, Connection, Endpoint, ReadError, RecvStream, SendStream};
use rustix::time::ClockId;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What is sent at once, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// What is uploaded or downloaded is nothing in particular.
static PIECE: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
/// Pieces taken from a stream at once.
const PIECES: usize = 32;
/// Length of a small request after its eight bytes, and of its answer, in bytes.
const REQUEST_BYTES: usize = 64;
/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// Measures what is asked for, and shows each result as it comes.
///
/// # Errors
/// If there is nobody to measure with, or the connection is lost.
pub fn run(arguments: &Perf) -> Result<(), Failure> {
    let tests = if arguments.tests.is_empty() { Test::value_variants() } else { &arguments.tests };
    runtime(&arguments.transport)?.block_on(async {
        let mut signals = Signals::catch()?;
        let host = Host::new(&arguments.transport, arguments.cipher, arguments.group)?;
        let side = Side::new(&host, arguments)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut results = Vec::new();
        let measuring = async {
            for test in tests {
                let result = side.measure(*test, arguments, &stop).await?;
                if !arguments.json {
                    if results.is_empty() {
                        output::text(heading(arguments))?;
                    }
                    output::text(result.line())?;
                }
                results.push(result);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok::<_, Failure>(())
        };
        let interrupted = async {
            signals.next().await;
            stop.store(true, Ordering::Relaxed);
            // What waits for the other side waits no more.
            side.client.close(NO_ERROR, b"");
            signals.end_at_next().await
        };
        let measured = tokio::select! {
            measured = measuring => measured,
            never = interrupted => never,
        };
        let closing = side.server.iter().chain([&side.client]);
        for endpoint in closing {
            endpoint::close(endpoint).await;
        }
        measured?;
        let interrupted = stop.load(Ordering::Relaxed);
        if arguments.json {
            output::json(&json!({
                "crypto": name(&arguments.transport.crypto),
                "server": arguments.address.as_ref().map(Target::authority),
                "both_ends": arguments.address.is_none(),
                "connections": arguments.connections,
                "streams": arguments.streams,
                "interrupted": interrupted,
                "tests": results.iter().map(Measured::json).collect::<Vec<_>>(),
            }))?;
        } else if interrupted {
            output::note("interrupted; the last line is of what was done until then");
        }
        Ok(())
    })
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
struct Side {
    client: Endpoint,
    config: ClientConfig,
    target: Target,
    /// One of our own, and its work.
    server: Option<Endpoint>,
    stages: Arc<Stages>,
}

impl Side {
    fn new(host: &Host, arguments: &Perf) -> Result<Side, Failure> {
        let (target, authorities, server) = match &arguments.address {
            Some(address) => (address.clone(), endpoint::authorities(&arguments.trust)?, None),
            None => {
                let (server, authorities) = own_server(host)?;
                let address = server.local_addr();
                let address = address.map_err(|why| Failure::new(format!("no address: {why}")))?;
                let (host, path) = (address.ip().to_string(), String::new());
                let target = Target { host, port: address.port(), path };
                (target, Some(Arc::new(authorities)), Some(server))
            }
        };
        let client = host.client()?;
        let config = host.client_config(authorities, PERF)?;
        Ok(Side { client, config, target, server, stages: host.stages.clone() })
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        endpoint::connect(&self.client, &self.config, &self.target).await
    }

    async fn measure(
        &self,
        test: Test,
        arguments: &Perf,
        stop: &Arc<AtomicBool>,
    ) -> Result<Measured, Failure> {
        let mut connections = Vec::new();
        for _ in 0..arguments.connections {
            match self.connect().await {
                Ok(connection) => connections.push(connection),
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(why) => return Err(why),
            }
        }
        let moves = matches!(test, Test::Upload | Test::Download);
        let bytes = arguments.bytes.filter(|_| moves);
        let lanes = u64::from(arguments.connections) * u64::from(arguments.streams);
        let begun = Mark::now(&self.stages);
        let work = Arc::new(Work {
            left: AtomicU64::new(bytes.unwrap_or(u64::MAX)),
            each: bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(lanes)),
            deadline: match bytes {
                Some(_) => None,
                None => Some(begun.at + Duration::from_secs_f64(arguments.seconds)),
            },
            bytes: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            stop: stop.clone(),
        });
        let mut tasks = JoinSet::new();
        // New connections come one after the other.
        let streams = if test == Test::Connections { 1 } else { arguments.streams };
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
            let progress = Progress::steps(name_of(test), 1_000);
            loop {
                tokio::time::sleep(TICK).await;
                let bytes = work.bytes.load(Ordering::Relaxed);
                let seconds = begun.at.elapsed().as_secs_f64();
                let part = match work.deadline {
                    Some(_) => seconds / arguments.seconds,
                    None => bytes as f64 / arguments.bytes.unwrap_or(1) as f64,
                };
                let rate = match test {
                    Test::Upload | Test::Download => {
                        format!("{:.0} Mbit/s", bytes as f64 * 8.0 / 1e6 / seconds)
                    }
                    _ => {
                        let operations = work.operations.load(Ordering::Relaxed) as f64;
                        format!("{:.0}/s", operations / seconds)
                    }
                };
                progress.step((part.min(1.0) * 1_000.0) as u64, rate);
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

/// A server with a certificate that lasts as long as itself, and who issued it.
fn own_server(host: &Host) -> Result<(Endpoint, RootCertStore), Failure> {
    let bad =
        |why: &dyn std::fmt::Display| Failure::new(format!("cannot make a certificate: {why}"));
    let made = rcgen::generate_simple_self_signed([Ipv4Addr::LOCALHOST.to_string()]);
    let made = made.map_err(|why| bad(&why))?;
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(|why| bad(&why))?;
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate.clone()).map_err(|why| bad(&why))?;
    let socket = endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), "--listen")?;
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
    Ok((server, authorities))
}

/// What a new connection needs.
struct Again {
    client: Endpoint,
    config: ClientConfig,
    target: Target,
}

/// What all tasks of a test do together. Each does something, however late it comes to it.
struct Work {
    /// Bytes that nobody has begun to send.
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

    async fn upload(&self, connection: &Connection) -> Result<(), Failure> {
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

    async fn download(&self, connection: &Connection) -> Result<(), Failure> {
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

    async fn requests(&self, connection: &Connection) -> Result<(), Failure> {
        loop {
            self.request(connection).await?;
            self.operations.fetch_add(1, Ordering::Relaxed);
            if self.is_over() {
                return Ok(());
            }
        }
    }

    async fn request(&self, connection: &Connection) -> Result<(), Failure> {
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

    async fn connections(&self, again: &Again) -> Result<(), Failure> {
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

fn lost(why: impl std::fmt::Display) -> Failure {
    Failure::new(format!("the connection was lost: {why}"))
}

/// A moment, and what was used until then.
struct Mark {
    at: Instant,
    cpu: Duration,
    stages: [Took; ALL.len()],
}

const ALL: [Stage; 5] = [Stage::Send, Stage::Receive, Stage::Seal, Stage::Open, Stage::Mask];

/// What was used between two moments.
struct Used {
    seconds: f64,
    cpu_seconds: f64,
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
    fn stage(&self, stage: Stage) -> Took {
        self.stages[stage as usize]
    }

    /// Shares of processor time: send, receive, packets, headers, all else.
    fn shares(&self) -> [f64; 5] {
        let share = |seconds: f64| seconds / self.cpu_seconds.max(1e-9);
        let of = |stage| share(self.stage(stage).seconds);
        let known = [of(Stage::Send), of(Stage::Receive), of(Stage::Seal) + of(Stage::Open)];
        let [send, receive, packets] = known;
        let headers = of(Stage::Mask);
        let other = 1.0 - send - receive - packets - headers;
        [send, receive, packets, headers, other.max(0.0)]
    }

    fn nanoseconds(&self, stage: Stage) -> Option<f64> {
        let took = self.stage(stage);
        (took.calls > 0).then(|| took.seconds * 1e9 / took.calls as f64)
    }
}

/// One test's result.
struct Measured {
    test: Test,
    bytes: u64,
    operations: u64,
    took: Used,
}

impl Measured {
    fn mbit(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6
    }

    fn line(&self) -> String {
        let used = &self.took;
        let per = |amount: f64, seconds: f64| grouped((amount / seconds.max(1e-9)).round() as u64);
        let (name, cpu) = (name_of(self.test), used.cpu_seconds);
        let (rate, per_cpu) = match self.test {
            Test::Upload | Test::Download => {
                (per(self.mbit(), used.seconds) + " Mbit/s", per(self.mbit(), cpu) + " Mbit")
            }
            Test::Requests | Test::Connections => {
                let operations = self.operations as f64;
                (per(operations, used.seconds) + "/s", per(operations, cpu))
            }
        };
        let shares = used.shares().map(|share| format!("{:>7.1}%", share * 100.0)).join("  ");
        format!("{name:<11} {rate:>15} {:>8.2} {per_cpu:>15}  {shares}", cpu)
    }

    fn json(&self) -> Value {
        let used = &self.took;
        let [send, receive, packets, headers, other] = used.shares();
        let cpu = used.cpu_seconds.max(1e-9);
        json!({
            "test": name_of(self.test),
            "seconds": used.seconds,
            "bytes": self.bytes,
            "operations": self.operations,
            "mbit_per_second": self.mbit() / used.seconds.max(1e-9),
            "operations_per_second": self.operations as f64 / used.seconds.max(1e-9),
            "cpu_seconds": used.cpu_seconds,
            "mbit_per_cpu_second": self.mbit() / cpu,
            "operations_per_cpu_second": self.operations as f64 / cpu,
            "cpu_share": {
                "udp_send": send,
                "udp_receive": receive,
                "packet_protection": packets,
                "header_protection": headers,
                "other": other,
            },
            "packets": {
                "sealed": used.stage(Stage::Seal).calls,
                "opened": used.stage(Stage::Open).calls,
            },
            "nanoseconds": {
                "udp_send": used.nanoseconds(Stage::Send),
                "udp_receive": used.nanoseconds(Stage::Receive),
                "seal": used.nanoseconds(Stage::Seal),
                "open": used.nanoseconds(Stage::Open),
                "mask": used.nanoseconds(Stage::Mask),
            },
        })
    }
}

fn heading(arguments: &Perf) -> String {
    let with = match &arguments.address {
        Some(address) => format!("with {}, this side only", address.authority()),
        None => "with itself, both ends".to_owned(),
    };
    format!(
        "QUIC with {}'s cryptography, {with}\n{:<11} {:>15} {:>8} {:>15}  {:>8}  {:>8}  {:>8}  \
         {:>8}  {:>8}",
        name(&arguments.transport.crypto),
        "TEST",
        "RATE",
        "CPU-S",
        "PER CPU-S",
        "UDP-SEND",
        "UDP-RECV",
        "PACKET",
        "HEADER",
        "OTHER"
    )
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

const fn name_of(test: Test) -> &'static str {
    match test {
        Test::Upload => "upload",
        Test::Download => "download",
        Test::Requests => "requests",
        Test::Connections => "connections",
    }
}
