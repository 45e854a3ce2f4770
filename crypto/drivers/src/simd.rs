//! AES-GCM and whole QUIC packets in the packet backends.
//!
//! A backend takes many packets at a time, of whatever keys and lengths. The tasks of a queue go
//! through it in batches, a single request goes by itself.

use crate::batch_queue::{BatchQueue, BatchRunner};
use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, Error, Key, Kind, MASK_BYTES, NONCE_BYTES,
    Opened, Operation, Phase, Request, Step, TAG_BYTES, Task, Waker,
};
use keyway_simd::packet::{
    Aead, AeadKey, HeaderKey, KeyLength, Open, PacketBackend, PacketKey, Phases, Protect, Seal,
    Unprotect, Used,
};
use std::ffi::OsString;
use std::sync::Arc;
use std::{env, fmt};

const NAME: &str = "simd";

/// The environment variable that names the packet backend, to compare or to avoid one: one of those
/// that can run here, or `portable` for none but the library's.
pub const SIMD_VARIABLE: &str = "KEYWAY_SIMD";

/// No backend of the name that [`SIMD_VARIABLE`] has can run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchBackend(OsString);

impl fmt::Display for NoSuchBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = PacketBackend::available().map(PacketBackend::name).collect();
        let (name, names) = (self.0.display(), names.join(", "));
        write!(f, "{SIMD_VARIABLE}={name}: there is no such backend here; there are {names}")
    }
}

impl std::error::Error for NoSuchBackend {}

/// The packet backend that [`SIMD_VARIABLE`] names, or the fastest of this processor.
///
/// # Errors
/// If there is none of that name.
pub fn chosen_backend() -> Result<PacketBackend, NoSuchBackend> {
    match env::var_os(SIMD_VARIABLE) {
        Some(name) if !name.is_empty() => {
            name.to_str().and_then(PacketBackend::named).ok_or(NoSuchBackend(name))
        }
        _ => Ok(PacketBackend::detect()),
    }
}

/// A driver, `simd`, for AES-128/256-GCM, QUIC's packets and its header masks, with the
/// [chosen](chosen_backend) packet backend, or the fastest if there is none of that name. `None`
/// where that is the library, which `software` uses as well.
///
/// It computes on the submitting thread, and keeps what was submitted with `more` until there are
/// 64 tasks or the queue is polled.
pub fn simd() -> Option<Arc<dyn Driver>> {
    let backend = chosen_backend().unwrap_or_else(|_| PacketBackend::detect());
    (backend.name() != PORTABLE).then(|| simd_on(backend))
}

/// As [`simd`], with this backend, whether it is faster or not.
pub fn simd_on(backend: PacketBackend) -> Arc<dyn Driver> {
    Arc::new(Simd { backend })
}

/// The backend that is the library.
const PORTABLE: &str = "portable";

struct Simd {
    backend: PacketBackend,
}

impl Driver for Simd {
    fn name(&self) -> &str {
        NAME
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        match *steps {
            [Algorithm::Aes128Gcm | Algorithm::Aes256Gcm] => true,
            [algorithm] => is_packet(algorithm),
            _ => false,
        }
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let [Step { algorithm, key }] = *steps else {
            return Err(Error::invalid_request("it does no chains"));
        };
        open(self.backend, algorithm, key)
    }

    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(BatchQueue::new(Runner { backend: self.backend })))
    }
}

/// Whether it is of QUIC's, which the `software` driver does with the portable backend.
pub(crate) fn is_packet(algorithm: Algorithm) -> bool {
    use Algorithm::*;
    matches!(
        algorithm,
        QuicAes128Gcm
            | QuicAes256Gcm
            | QuicChaCha20Poly1305
            | QuicMaskAes128
            | QuicMaskAes256
            | QuicMaskChaCha20
    )
}

/// Opens such a session with the portable backend.
pub(crate) fn open_portable(
    algorithm: Algorithm,
    key: Key<'_>,
) -> Result<Box<dyn DriverSession>, Error> {
    open(PacketBackend::named(PORTABLE).ok_or(Error::Unsupported(algorithm))?, algorithm, key)
}

fn open(
    backend: PacketBackend,
    algorithm: Algorithm,
    key: Key<'_>,
) -> Result<Box<dyn DriverSession>, Error> {
    use Algorithm::*;
    let aead = match algorithm {
        Aes128Gcm | QuicAes128Gcm | QuicMaskAes128 => Aead::Aes128Gcm,
        Aes256Gcm | QuicAes256Gcm | QuicMaskAes256 => Aead::Aes256Gcm,
        QuicChaCha20Poly1305 | QuicMaskChaCha20 => Aead::ChaCha20Poly1305,
        _ => return Err(Error::Unsupported(algorithm)),
    };
    match (algorithm.kind(), key) {
        (Kind::Aead, Key::Secret(key)) => open_aead(backend, aead, key),
        (Kind::Mask, Key::Secret(key)) => open_mask(backend, aead, key),
        (Kind::Packet, Key::Packet(keys)) => open_packets(backend, aead, keys),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

const fn length(_: KeyLength) -> Error {
    Error::InvalidKey("it is not as long as the algorithm's keys are")
}

// Each with a frame of its own: the traces of a key on the stack are wiped, and the less of the stack, the
// faster.

#[inline(never)]
fn open_aead(
    backend: PacketBackend,
    aead: Aead,
    key: &[u8],
) -> Result<Box<dyn DriverSession>, Error> {
    let keys = backend.aead_key(aead, key).map_err(length)?;
    Ok(Box::new(Session { backend, keys }))
}

#[inline(never)]
fn open_mask(
    backend: PacketBackend,
    aead: Aead,
    key: &[u8],
) -> Result<Box<dyn DriverSession>, Error> {
    let keys = backend.header_key(aead, key).map_err(length)?;
    Ok(Box::new(Session { backend, keys }))
}

#[inline(never)]
fn open_packets(
    backend: PacketBackend,
    aead: Aead,
    keys: keyway_engine::PacketKeys<'_>,
) -> Result<Box<dyn DriverSession>, Error> {
    let packet_key = |key: keyway_engine::PacketKey<'_>| {
        let aead_key = backend.aead_key(aead, key.key).map_err(length)?;
        Ok::<_, Error>(PacketKey::new(aead_key, *key.iv))
    };
    let keys = PacketKeys {
        header: backend.header_key(aead, keys.header).map_err(length)?,
        current: packet_key(keys.current)?,
        phase: keys.phase,
        since: keys.since,
        previous: keys.previous.map(packet_key).transpose()?,
        next: keys.next.map(packet_key).transpose()?,
    };
    Ok(Box::new(Session { backend, keys }))
}

/// The keys lie in the session itself, which saves a cache miss for each packet. Each kind of keys
/// has a session of its own size, as a connection has dozens of them.
struct Session<K> {
    backend: PacketBackend,
    keys: K,
}

struct PacketKeys {
    header: HeaderKey,
    current: PacketKey,
    phase: bool,
    since: u64,
    previous: Option<PacketKey>,
    next: Option<PacketKey>,
}

impl PacketKeys {
    fn phases(&self) -> Phases<'_> {
        Phases {
            current: &self.current,
            phase: self.phase,
            since: self.since,
            previous: self.previous.as_ref(),
            next: self.next.as_ref(),
        }
    }
}

/// The error for a request that the engine has refused before.
const MISFIT: Error = Error::invalid_request("it does not fit the algorithm");

impl DriverSession for Session<AeadKey> {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let Session { backend, keys: key } = self;
        match request {
            Request::Seal { nonce, aad, data, tag } => {
                let bytes = data.len();
                backend
                    .seal(&mut [Seal { key, nonce: **nonce, aad, data, tag }])
                    .or(Err(MISFIT))?;
                Ok(bytes)
            }
            Request::Open { nonce, aad, data } => {
                let (data, tag) = data.split_last_chunk_mut().ok_or(Error::Authentication)?;
                let bytes = data.len();
                let mut one = [opening(key, nonce, aad, data, tag)];
                backend.open(&mut one).or(Err(MISFIT))?;
                if one[0].authentic { Ok(bytes) } else { Err(Error::Authentication) }
            }
            _ => Err(MISFIT),
        }
    }
}

impl DriverSession for Session<HeaderKey> {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let Request::Mask { sample, out } = request else { return Err(MISFIT) };
        **out = self.backend.mask(&self.keys, sample);
        Ok(MASK_BYTES)
    }
}

impl DriverSession for Session<PacketKeys> {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let Session { backend, keys } = self;
        match request {
            Request::Protect { number, header_bytes, packet } => {
                let bytes = packet.len();
                let one = protecting(keys, *number, *header_bytes, packet);
                backend.protect(&mut [one]).or(Err(MISFIT))?;
                Ok(bytes)
            }
            Request::Unprotect { largest, number_at, packet, opened } => {
                let mut one = [unprotecting(keys, *largest, *number_at, packet)];
                backend.unprotect(&mut one);
                found(&one[0], opened)
            }
            _ => Err(MISFIT),
        }
    }
}

fn opening<'a>(
    key: &'a AeadKey,
    nonce: &[u8; NONCE_BYTES],
    aad: &'a [u8],
    data: &'a mut [u8],
    tag: &[u8; TAG_BYTES],
) -> Open<'a> {
    Open { key, nonce: *nonce, aad, data, tag: *tag, authentic: false }
}

fn protecting<'a>(
    keys: &'a PacketKeys,
    number: u64,
    header_bytes: usize,
    packet: &'a mut [u8],
) -> Protect<'a> {
    Protect { key: &keys.current, header_key: &keys.header, number, header_bytes, packet }
}

fn unprotecting<'a>(
    keys: &'a PacketKeys,
    largest: Option<u64>,
    number_at: usize,
    packet: &'a mut [u8],
) -> Unprotect<'a> {
    Unprotect::new(keys.phases(), &keys.header, largest, number_at, packet)
}

/// The verdict on a packet, as the engine has it.
fn found(packet: &Unprotect<'_>, opened: &mut Opened) -> Result<usize, Error> {
    let Ok(verdict) = packet.verdict else { return Err(Error::Authentication) };
    let phase = match verdict.used {
        Used::Current => Phase::Current,
        Used::Previous => Phase::Previous,
        Used::Next => Phase::Next,
    };
    let header_bytes = verdict.header_bytes;
    *opened = Opened { number: verdict.number, header_bytes, phase };
    Ok(packet.packet.len().saturating_sub(header_bytes + TAG_BYTES))
}

struct Runner {
    backend: PacketBackend,
}

impl BatchRunner for Runner {
    /// As many as a buffer has segments that the system sends at once, and few enough to stay in
    /// the cache.
    const BATCH_MAX: usize = 64;

    /// Runs them in the order in which they came: neighbours of one kind go together.
    fn run(&mut self, tasks: &mut Vec<Box<Task>>) {
        let backend = self.backend;
        for neighbours in tasks.chunk_by_mut(|one, other| batched(one) == batched(other)) {
            neighbours.iter_mut().for_each(|task| task.begin());
            let results = match neighbours.first().map(|first| batched(first)) {
                Some(Some(Batched::Seal)) => seal(backend, neighbours),
                Some(Some(Batched::Open)) => open_all(backend, neighbours),
                Some(Some(Batched::Protect)) => protect(backend, neighbours),
                Some(Some(Batched::Unprotect)) => unprotect(backend, neighbours),
                _ => None,
            };
            match results {
                Some(results) => {
                    let results = neighbours.iter_mut().zip(results);
                    results.for_each(|(task, result)| task.complete(result));
                }
                // The backend did not touch them.
                None => neighbours.iter_mut().for_each(|task| task.run()),
            }
        }
    }
}

/// The work that the backend does for many at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batched {
    Seal,
    Open,
    Protect,
    Unprotect,
}

fn batched(task: &Task) -> Option<Batched> {
    match task.operation {
        Operation::Seal { .. } => Some(Batched::Seal),
        Operation::Open { .. } => Some(Batched::Open),
        Operation::Protect { .. } => Some(Batched::Protect),
        Operation::Unprotect { .. } => Some(Batched::Unprotect),
        _ => None,
    }
}

/// The result of each task. `None` if one of them cannot go through the backend with the others;
/// then the backend has touched none.
type Results = Option<Vec<Result<usize, Error>>>;

fn seal(backend: PacketBackend, tasks: &mut [Box<Task>]) -> Results {
    let mut results = Vec::with_capacity(tasks.len());
    let messages = tasks.iter_mut().map(|task| match task.parts_as()? {
        (Session { keys: key, .. }, Operation::Seal { nonce, aad, data, tag }) => {
            let data = &mut **data;
            results.push(Ok(data.len()));
            Some(Seal { key, nonce: *nonce, aad, data, tag })
        }
        _ => None,
    });
    let mut messages: Vec<_> = messages.collect::<Option<_>>()?;
    backend.seal(&mut messages).ok()?;
    Some(results)
}

fn open_all(backend: PacketBackend, tasks: &mut [Box<Task>]) -> Results {
    let messages = tasks.iter_mut().map(|task| match task.parts_as()? {
        (Session { keys: key, .. }, Operation::Open { nonce, aad, data }) => {
            let (data, tag) = data.split_last_chunk_mut()?;
            Some(opening(key, nonce, aad, data, tag))
        }
        _ => None,
    });
    let mut messages: Vec<_> = messages.collect::<Option<_>>()?;
    backend.open(&mut messages).ok()?;
    let verdict = |message: &Open<'_>| match message.authentic {
        true => Ok(message.data.len()),
        false => Err(Error::Authentication),
    };
    Some(messages.iter().map(verdict).collect())
}

fn protect(backend: PacketBackend, tasks: &mut [Box<Task>]) -> Results {
    let mut results = Vec::with_capacity(tasks.len());
    let packets = tasks.iter_mut().map(|task| match task.parts_as()? {
        (Session { keys, .. }, Operation::Protect { number, header_bytes, packet }) => {
            let packet = &mut **packet;
            results.push(Ok(packet.len()));
            Some(protecting(keys, *number, *header_bytes, packet))
        }
        _ => None,
    });
    let mut packets: Vec<_> = packets.collect::<Option<_>>()?;
    backend.protect(&mut packets).ok()?;
    Some(results)
}

fn unprotect(backend: PacketBackend, tasks: &mut [Box<Task>]) -> Results {
    let mut places = Vec::with_capacity(tasks.len());
    let packets = tasks.iter_mut().map(|task| match task.parts_as()? {
        (Session { keys, .. }, Operation::Unprotect { largest, number_at, packet, opened }) => {
            places.push(opened);
            Some(unprotecting(keys, *largest, *number_at, packet))
        }
        _ => None,
    });
    let mut packets: Vec<_> = packets.collect::<Option<_>>()?;
    backend.unprotect(&mut packets);
    Some(packets.iter().zip(places).map(|(packet, opened)| found(packet, opened)).collect())
}
