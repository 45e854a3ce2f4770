//! Where processor time goes: keys and sockets that time what goes through them.
//!
//! A call of the system is timed each time, by the thread's own clock, so that what others do on
//! the processor meanwhile does not count. A packet takes less than that clock itself: of those,
//! one in [`EVERY`] is timed, by the clock that costs least.

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use rustix::time::{ClockId, clock_gettime};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuiteCommon, Error, SupportedCipherSuite, Tls13CipherSuite};
use std::cell::Cell;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// One packet in so many is timed: a prime, so that it falls on every kind of packet.
const EVERY: u32 = 13;
/// A packet that took longer was interrupted, and is left out.
const SAMPLE_MAX: Duration = Duration::from_micros(100);

/// A stage that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Giving datagrams to the system.
    Send,
    /// Taking datagrams from the system.
    Receive,
    /// Encrypting payloads.
    Seal,
    /// Decrypting payloads.
    Open,
    /// Masks on headers, both ways.
    Mask,
}

const STAGES: usize = 5;

/// The times of the stages so far.
#[derive(Debug)]
pub struct Stages {
    meters: [Meter; STAGES],
    /// The time that it takes to read the clock, in nanoseconds.
    clock: u64,
}

#[derive(Debug, Default)]
struct Meter {
    timed: AtomicU64,
    nanoseconds: AtomicU64,
    /// Bytes of the packets that were timed.
    bytes: AtomicU64,
}

/// The time of a stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Times; packets for those that work on packets.
    pub calls: u64,
    /// Processor time, in seconds.
    pub seconds: f64,
    /// Bytes of the packets' payloads, tags of received ones included.
    pub bytes: u64,
}

thread_local! {
    /// Packets since one was timed, by stage.
    static SINCE: [Cell<u32>; STAGES] = const { [const { Cell::new(0) }; STAGES] };
}

impl Stages {
    /// Nothing so far.
    pub fn new() -> Arc<Stages> {
        let read = || Instant::now().elapsed().as_nanos() as u64;
        let clock = (0..1_000).map(|_| read()).min().unwrap_or(0);
        Arc::new(Stages { meters: Default::default(), clock })
    }

    fn meter(&self, stage: Stage) -> &Meter {
        &self.meters[stage as usize]
    }

    /// So far.
    pub fn took(&self, stage: Stage) -> Took {
        let meter = self.meter(stage);
        let timed = meter.timed.load(Ordering::Relaxed);
        let mut seconds = meter.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        let mut calls = timed;
        let bytes = meter.bytes.load(Ordering::Relaxed) * u64::from(EVERY);
        if !matches!(stage, Stage::Send | Stage::Receive) {
            calls *= u64::from(EVERY);
            seconds *= f64::from(EVERY);
        }
        Took { calls, seconds, bytes }
    }

    fn packet<R>(&self, stage: Stage, bytes: usize, work: impl FnOnce() -> R) -> R {
        let due = SINCE.with(|since| {
            let since = &since[stage as usize];
            since.set((since.get() + 1) % EVERY);
            since.get() == 0
        });
        if !due {
            return work();
        }
        let begun = Instant::now();
        let result = work();
        let took = begun.elapsed();
        if took <= SAMPLE_MAX {
            let meter = self.meter(stage);
            let nanoseconds = (took.as_nanos() as u64).saturating_sub(self.clock);
            meter.timed.fetch_add(1, Ordering::Relaxed);
            meter.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
            meter.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        result
    }

    fn call<R>(&self, stage: Stage, work: impl FnOnce() -> R) -> R {
        let begun = processor_time(ClockId::ThreadCPUTime);
        let result = work();
        let took = processor_time(ClockId::ThreadCPUTime).saturating_sub(begun);
        let meter = self.meter(stage);
        meter.timed.fetch_add(1, Ordering::Relaxed);
        meter.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        result
    }
}

impl Took {
    /// Since then.
    pub fn since(self, then: Took) -> Took {
        let (calls, bytes) = (self.calls - then.calls, self.bytes - then.bytes);
        Took { calls, seconds: self.seconds - then.seconds, bytes }
    }
}

/// The reading of a clock of processor time.
pub fn processor_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// The suites of TLS 1.3 that QUIC can use, with keys that are timed. Each call leaks some hundred
/// bytes: rustls wants its tables to live as long as the process.
pub fn timed_suites(
    suites: &[SupportedCipherSuite],
    stages: &Arc<Stages>,
) -> Vec<SupportedCipherSuite> {
    let timed = |suite: &SupportedCipherSuite| {
        let suite = suite.tls13()?;
        let keys = TimedKeys { inner: suite.quic?, stages: stages.clone() };
        Some(SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: suite.common.suite,
                hash_provider: suite.common.hash_provider,
                confidentiality_limit: suite.common.confidentiality_limit,
            },
            hkdf_provider: suite.hkdf_provider,
            aead_alg: suite.aead_alg,
            quic: Some(Box::leak(Box::new(keys))),
        }))))
    };
    suites.iter().filter_map(timed).collect()
}

struct TimedKeys {
    inner: &'static dyn Algorithm,
    stages: Arc<Stages>,
}

impl Algorithm for TimedKeys {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let inner = self.inner.packet_key(key, iv);
        Box::new(Timed { inner, stages: self.stages.clone() })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        let inner = self.inner.header_protection_key(key);
        Box::new(Timed { inner, stages: self.stages.clone() })
    }

    fn aead_key_len(&self) -> usize {
        self.inner.aead_key_len()
    }
}

struct Timed<K: ?Sized> {
    inner: Box<K>,
    stages: Arc<Stages>,
}

impl PacketKey for Timed<dyn PacketKey> {
    fn encrypt_in_place(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        let bytes = payload.len();
        let work = || self.inner.encrypt_in_place(packet_number, header, payload);
        self.stages.packet(Stage::Seal, bytes, work)
    }

    fn decrypt_in_place<'a>(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.stages.packet(Stage::Open, payload.len(), move || {
            self.inner.decrypt_in_place(packet_number, header, payload)
        })
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

impl HeaderProtectionKey for Timed<dyn HeaderProtectionKey> {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let work = || self.inner.encrypt_in_place(sample, first, packet_number);
        self.stages.packet(Stage::Mask, 0, work)
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let work = || self.inner.decrypt_in_place(sample, first, packet_number);
        self.stages.packet(Stage::Mask, 0, work)
    }

    fn sample_len(&self) -> usize {
        self.inner.sample_len()
    }
}

/// A socket whose calls are timed.
pub struct TimedSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    stages: Arc<Stages>,
}

impl TimedSocket {
    /// Around another.
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, stages: Arc<Stages>) -> Arc<TimedSocket> {
        Arc::new(TimedSocket { inner, stages })
    }
}

impl fmt::Debug for TimedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl AsyncUdpSocket for TimedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.stages.call(Stage::Send, || self.inner.try_send(transmit))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.stages.call(Stage::Receive, || self.inner.poll_recv(cx, bufs, meta))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
