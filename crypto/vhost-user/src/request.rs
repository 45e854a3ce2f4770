//! Requests of the rings: taken from their buffers, done by the engine, and answered. Either ring has both kinds, which
//! their numbers tell apart: with QEMU ring 1 is a second data queue, and QEMU answers control requests itself; with
//! User-Mode Linux it is the control queue.

use crate::crypto::{
    AkcipherOperation, Direction, REQUEST_HEADER_BYTES, RequestHeader, SessionParameters, Status,
};
use crate::limits::Limits;
use crate::memory::GuestMemory;
use crate::queue::{Broken, Chain};
use crate::session::{Opened, RsaSession, Sessions, status};
use keyway_engine::{
    Engine, IV_BYTES_MAX, OaepParameters, Operation, Queue, SignatureParameters, Task, Zeroizing,
};
use std::time::Duration;

/// Requests that the engine has at a time.
pub(crate) const BATCH_REQUESTS: usize = 64;
/// Bytes of requests, and of the lists of their buffers, after which a batch is full.
const BATCH_BYTES: u64 = 2 << 20;

/// Does requests, a batch at a time.
pub(crate) struct Worker {
    pub sessions: Sessions,
    limits: Limits,
    queue: Queue,
    batch: Vec<Job>,
    bytes: u64,
    /// The batch's tasks, on their way to the engine.
    tasks: Vec<Box<Task>>,
}

/// A request of the batch.
struct Job {
    chain: Chain,
    /// Bytes of room for what the engine puts out.
    room: usize,
    /// None while the engine works on it.
    answer: Option<Answer>,
}

enum Answer {
    /// Of a data request: its status only, at the end of what can be written.
    Failed(Status),
    /// Of a data request: what the engine put out, and its status.
    Done(Box<Task>),
    /// Of a control request, at the beginning of what can be written.
    Control(Vec<u8>),
}

impl Worker {
    pub fn new(engine: &Engine, limits: Limits) -> Worker {
        Worker {
            sessions: Sessions::new(engine, limits.sessions),
            limits,
            queue: engine.queue(BATCH_REQUESTS),
            batch: Vec::new(),
            bytes: 0,
            tasks: Vec::new(),
        }
    }

    /// Whether the batch takes no more requests.
    pub fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_REQUESTS || self.bytes >= BATCH_BYTES
    }

    /// Adds a request to the batch. Sessions are opened and closed at once.
    pub fn begin(&mut self, memory: &GuestMemory, chain: Chain) {
        self.bytes += chain.readable_bytes().min(self.limits.request_bytes as u64);
        self.bytes += chain.held_bytes();
        let mut header = [0; REQUEST_HEADER_BYTES];
        let header = match chain.read(memory, 0, &mut header) {
            Ok(()) => RequestHeader::decode(&header),
            Err(_) => RequestHeader::Unknown,
        };
        let answer = match header {
            RequestHeader::Create(parameters) => Some(self.create(memory, &chain, parameters)),
            RequestHeader::Destroy { session } => {
                let status = self.sessions.destroy(session).err().unwrap_or(Status::Ok);
                Some(Answer::Control(vec![status as u8]))
            }
            _ => match self.task(memory, &chain, header) {
                Ok(mut task) => {
                    task.user = self.batch.len() as u64;
                    self.tasks.push(task);
                    None
                }
                Err(status) => Some(Answer::Failed(status)),
            },
        };
        let room = match header {
            RequestHeader::Cipher { destination_bytes, .. }
            | RequestHeader::Akcipher { destination_bytes, .. } => destination_bytes as usize,
            _ => 0,
        };
        self.batch.push(Job { chain, room, answer });
    }

    /// Has the engine do the batch, and calls `done` with each of its requests, answered, and how many bytes that
    /// wrote. When this returns, no request is under way.
    pub fn finish(
        &mut self,
        memory: &GuestMemory,
        mut done: impl FnMut(&Chain, u32) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let Worker { queue, batch, bytes, tasks, .. } = self;
        queue.submit(tasks, false);
        while queue.in_flight() > 0 {
            queue.wait(tasks, Duration::from_secs(1));
        }
        for task in tasks.drain(..) {
            if let Some(job) = batch.get_mut(task.user as usize) {
                job.answer = Some(Answer::Done(task));
            }
        }
        *bytes = 0;
        for Job { chain, room, answer } in batch.drain(..) {
            let answer = answer.unwrap_or(Answer::Failed(Status::Err));
            done(&chain, answer.write(memory, &chain, room)?)?;
        }
        Ok(())
    }

    /// Opens a session: the answer is its number, its status, and four bytes of nothing.
    fn create(
        &mut self,
        memory: &GuestMemory,
        chain: &Chain,
        parameters: Result<SessionParameters, Status>,
    ) -> Answer {
        let mut create = || {
            let parameters = parameters?;
            let mut key = Zeroizing::new(vec![0; parameters.key_bytes]);
            let read = chain.read(memory, REQUEST_HEADER_BYTES as u64, &mut key);
            read.map_err(|_| Status::BadMessage)?;
            self.sessions.create(parameters.with_key(&key)?)
        };
        let (session, status) = match create() {
            Ok(session) => (session, Status::Ok),
            Err(status) => (0, status),
        };
        let mut input = vec![0; 16];
        input[..8].copy_from_slice(&session.to_le_bytes());
        input[8] = status as u8;
        Answer::Control(input)
    }

    /// The engine's task for a data request.
    fn task(
        &self,
        memory: &GuestMemory,
        chain: &Chain,
        header: RequestHeader,
    ) -> Result<Box<Task>, Status> {
        let (iv_bytes, source_bytes, destination_bytes) = match header {
            RequestHeader::Cipher { iv_bytes, source_bytes, destination_bytes, .. } => {
                (iv_bytes, source_bytes, destination_bytes)
            }
            RequestHeader::Akcipher { source_bytes, destination_bytes, .. } => {
                (0, source_bytes, destination_bytes)
            }
            _ => return Err(Status::BadMessage),
        };
        let [source_bytes, destination_bytes] =
            [source_bytes, destination_bytes].map(|bytes| bytes as usize);
        let most = self.limits.request_bytes;
        if source_bytes > most || destination_bytes > most {
            return Err(Status::Err);
        }
        // Before room is made for them: they have to be there.
        let source_at = REQUEST_HEADER_BYTES as u64 + u64::from(iv_bytes);
        let is_verification =
            matches!(header, RequestHeader::Akcipher { operation: AkcipherOperation::Verify, .. });
        let (reads, writes) = match is_verification {
            true => (source_bytes + destination_bytes, 0),
            false => (source_bytes, destination_bytes),
        };
        if chain.readable_bytes() < source_at + reads as u64
            || chain.writable_bytes() < writes as u64 + 1
        {
            return Err(Status::BadMessage);
        }
        let read = |at: u64, bytes: usize| {
            let mut read = vec![0; bytes];
            chain.read(memory, at, &mut read).map_err(|_| Status::BadMessage)?;
            Ok(read)
        };
        match header {
            RequestHeader::Cipher { direction, session, .. } => {
                let Opened::Cipher { session, direction: own } = self.sessions.get(session)? else {
                    return Err(Status::InvalidSession);
                };
                if direction != *own
                    || iv_bytes as usize != IV_BYTES_MAX
                    || destination_bytes < source_bytes
                {
                    return Err(Status::Err);
                }
                let mut iv = [0; IV_BYTES_MAX];
                chain
                    .read(memory, REQUEST_HEADER_BYTES as u64, &mut iv)
                    .map_err(|_| Status::BadMessage)?;
                let source = read(source_at, source_bytes)?;
                let operation = match direction {
                    Direction::Encrypt => Operation::encrypt(iv, source),
                    Direction::Decrypt => Operation::decrypt(iv, source),
                };
                Ok(Task::new(session, operation))
            }
            RequestHeader::Akcipher { operation, session, .. } => {
                let Opened::Rsa(session) = self.sessions.get(session)? else {
                    return Err(Status::InvalidSession);
                };
                let source = read(source_at, source_bytes)?;
                let digest = match is_verification {
                    true => read(source_at + source_bytes as u64, destination_bytes)?,
                    false => Vec::new(),
                };
                rsa(session, operation, source, digest, destination_bytes)
            }
            _ => Err(Status::BadMessage),
        }
    }
}

/// The engine's task for RSA. `digest` is what a signature is verified over.
fn rsa(
    session: &RsaSession,
    operation: AkcipherOperation,
    source: Vec<u8>,
    digest: Vec<u8>,
    destination_bytes: usize,
) -> Result<Box<Task>, Status> {
    let needs_private = matches!(operation, AkcipherOperation::Decrypt | AkcipherOperation::Sign);
    if needs_private && !session.has_private {
        return Err(Status::InvalidSession);
    }
    // A message that was decrypted is shorter than the modulus, and may fit less room.
    let has_room = destination_bytes >= session.modulus_bytes;
    if matches!(operation, AkcipherOperation::Encrypt | AkcipherOperation::Sign) && !has_room {
        return Err(Status::Err);
    }
    let public_key = || session.public_key.clone();
    let parameters =
        SignatureParameters { prehashed: true, hash: session.hash, ..Default::default() };
    let out = vec![0; session.modulus_bytes];
    let (session, operation) = match operation {
        AkcipherOperation::Encrypt => {
            let (parameters, label) = (OaepParameters::default(), Vec::new());
            let (public_key, message) = (public_key(), source);
            let encrypt = Operation::PublicEncrypt { public_key, message, parameters, label, out };
            (&session.encryption, encrypt)
        }
        AkcipherOperation::Decrypt => {
            (&session.encryption, Operation::private_decrypt(source, session.modulus_bytes))
        }
        AkcipherOperation::Sign => {
            (&session.signing, Operation::Sign { message: source, parameters, out })
        }
        AkcipherOperation::Verify => {
            let (public_key, message, signature) = (public_key(), digest, source);
            let verify = Operation::Verify { public_key, message, parameters, signature };
            (&session.signing, verify)
        }
    };
    Ok(Task::new(session, operation))
}

impl Answer {
    /// Writes it, and returns how many bytes that were.
    fn write(self, memory: &GuestMemory, chain: &Chain, room: usize) -> Result<u32, Broken> {
        let writable = chain.writable_bytes();
        let (output, status) = match &self {
            Answer::Control(bytes) => {
                let most = usize::try_from(writable).unwrap_or(usize::MAX);
                let bytes = &bytes[..bytes.len().min(most)];
                chain.write(memory, 0, bytes)?;
                return Ok(bytes.len() as u32);
            }
            Answer::Failed(status) => (&[][..], *status),
            Answer::Done(task) => match task.output() {
                Ok(output) if output.len() <= room => (output, Status::Ok),
                Ok(_) => (&[][..], Status::Err),
                Err(error) => (&[][..], status(error)),
            },
        };
        chain.write(memory, 0, output)?;
        // Behind the room, of which there is one byte more.
        chain.write(memory, writable.saturating_sub(1), &[status as u8])?;
        Ok(output.len() as u32 + 1)
    }
}
