//! The driver that does nothing: what remains is the cost of everything around the cryptography.

use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, DriverStream, Effort, Error, Flow, Operation,
    Request, Selection, Step, TAG_BYTES, Task, Waker,
};
use std::mem;
use std::sync::Arc;

/// The length that it gives for a signature, in bytes: that of Ed25519.
const SIGNATURE_BYTES: usize = 64;

/// A driver, `null`, that takes every request and every key, leaves data as it is, fills outputs
/// with zeros, and accepts every tag and signature.
///
/// The scheduler never chooses it; only sessions that name it use it. It has queues of its own,
/// which finish whatever they take at once, so that the cost of a queue can be measured too.
pub fn null() -> Arc<dyn Driver> {
    Arc::new(Null)
}

struct Null;

impl Driver for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn selection(&self) -> Selection {
        Selection::Named
    }

    fn supports(&self, _: &[Algorithm]) -> bool {
        true
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let public_key_bytes = steps.first().and_then(|step| step.algorithm.public_key_bytes());
        Ok(Box::new(Session { public_key_bytes }))
    }

    fn stream(&self, _: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        Ok(Box::new(Stream))
    }

    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(Queue { finished: Vec::new() }))
    }
}

/// Takes everything, and has finished it when it is asked.
struct Queue {
    finished: Vec<Box<Task>>,
}

impl DriverQueue for Queue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _: bool) -> Flow {
        for task in tasks.iter_mut() {
            match &mut task.operation {
                // These are measured most: they save the conversion to a request.
                Operation::Seal { data, tag, .. } => {
                    *tag = [0; TAG_BYTES];
                    let length = data.len();
                    task.complete(Ok(length));
                }
                Operation::Encrypt { data, .. } | Operation::Decrypt { data, .. } => {
                    let length = data.len();
                    task.complete(Ok(length));
                }
                _ => task.run(),
            }
        }
        move_all(tasks, &mut self.finished);
        Flow::Open
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        move_all(&mut self.finished, done);
    }
}

/// Moves all of `from` to the end of `to`: without a copy, if that is empty.
fn move_all(from: &mut Vec<Box<Task>>, to: &mut Vec<Box<Task>>) {
    if to.is_empty() {
        mem::swap(from, to);
    } else {
        to.append(from);
    }
}

struct Session {
    public_key_bytes: Option<usize>,
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        Ok(match request {
            Request::Seal { data, tag, .. } => {
                tag.fill(0);
                data.len()
            }
            Request::Open { data, .. } => data.len().saturating_sub(TAG_BYTES),
            Request::Protect { packet, .. } => packet.len(),
            Request::Unprotect { packet, .. } => packet.len().saturating_sub(TAG_BYTES),
            Request::Mask { out, .. } => zeros(&mut **out, usize::MAX),
            Request::Encrypt { data, .. } | Request::Decrypt { data, .. } => data.len(),
            Request::Chain { length, .. } => *length,
            Request::Compress { out, .. }
            | Request::Decompress { out, .. }
            | Request::Digest { out, .. }
            | Request::Mac { out, .. }
            | Request::Expand { out, .. }
            | Request::Agree { out, .. }
            | Request::PublicEncrypt { out, .. }
            | Request::PrivateDecrypt { out, .. }
            | Request::Random { out }
            | Request::Derive { out, .. } => zeros(out, usize::MAX),
            Request::PublicKey { out } => zeros(out, self.public_key_bytes.unwrap_or(usize::MAX)),
            Request::Sign { out, .. } => zeros(out, SIGNATURE_BYTES),
            Request::Encapsulate { ciphertext, secret, .. } => {
                secret.fill(0);
                zeros(ciphertext, usize::MAX)
            }
            Request::Decapsulate { secret, .. } => zeros(secret, usize::MAX),
            Request::Verify { .. } => 0,
            Request::VerifyPassword { effort, .. } => usize::from(*effort == Effort::Full),
        })
    }

    fn signature_bytes_max(&self) -> usize {
        SIGNATURE_BYTES
    }
}

/// Fills an output with zeros, at most `most`.
fn zeros(out: &mut [u8], most: usize) -> usize {
    let used = out.len().min(most);
    out.iter_mut().take(used).for_each(|byte| *byte = 0);
    used
}

struct Stream;

impl DriverStream for Stream {
    fn update(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn DriverStream>, Error> {
        Ok(Box::new(Stream))
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error> {
        out.fill(0);
        Ok(())
    }
}
