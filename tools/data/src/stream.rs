//! Many entries as bytes, made by as many threads as one likes: always the same bytes.
//!
//! Entries are cut into chunks by their numbers. Each thread makes every so-many-th chunk, and what
//! comes out is put together in order.

use crate::compress::Compress;
use crate::error::MakeError;
use crate::format::Format;
use crate::limits::{CHUNK_ENTRIES, PART_BYTES, THREADS_MAX};
use crate::maker::Maker;
use crate::plan::Plan;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Parts that a thread may be ahead.
const AHEAD_MAX: usize = 4;

/// A job: the entries to write, and how.
#[derive(Clone, Debug)]
pub struct Job {
    /// The plan of the entries.
    pub plan: Arc<Plan>,
    /// The first entry.
    pub from: u64,
    /// How many, if there are so many.
    pub count: u64,
    /// 0, or another state of the same directory.
    pub generation: u64,
    /// The outputs; the first one may be compressed.
    pub formats: Vec<Format>,
    /// How.
    pub compress: Option<Compress>,
    /// How many threads make entries; with 1 it is the thread that asks for them.
    pub threads: usize,
}

/// Some of the output.
#[derive(Debug, Default)]
pub struct Part {
    /// The text of each output.
    pub outputs: Vec<Vec<u8>>,
    /// How many entries are in it.
    pub entries: u64,
    ends_chunk: bool,
}

/// The output, part by part.
pub struct Stream {
    source: Source,
    /// Text that was written but not yet read ([`Read`]).
    rest: Vec<u8>,
    read: usize,
    failed: bool,
}

enum Source {
    Here(Box<Worker>),
    Threads { receivers: Vec<Receiver<Result<Part, MakeError>>>, chunk: u64, chunks: u64 },
}

/// Makes chunks, one part at a time.
struct Worker {
    job: Job,
    maker: Maker,
    chunk: u64,
    step: u64,
    /// How many entries of the chunk are made.
    done: u64,
}

impl Job {
    /// The number after the last entry's.
    fn end(&self) -> u64 {
        self.from.saturating_add(self.count).min(self.plan.entries())
    }

    fn chunks(&self) -> u64 {
        self.end().saturating_sub(self.from).div_ceil(CHUNK_ENTRIES)
    }

    /// How many entries it makes.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.end().saturating_sub(self.from)
    }

    /// Begins.
    ///
    /// # Errors
    /// If the first entry's place cannot be gone to.
    pub fn start(self) -> Result<Stream, MakeError> {
        let chunks = self.chunks();
        let threads = (self.threads.clamp(1, THREADS_MAX) as u64).min(chunks.max(1));
        let source = if threads == 1 {
            Source::Here(Box::new(Worker::new(self, 0, 1)?))
        } else {
            let mut receivers = Vec::new();
            for first in 0..threads {
                let worker = Worker::new(self.clone(), first, threads)?;
                let (sender, receiver) = sync_channel(AHEAD_MAX);
                receivers.push(receiver);
                thread::spawn(move || worker.run(&sender));
            }
            Source::Threads { receivers, chunk: 0, chunks }
        };
        Ok(Stream { source, rest: Vec::new(), read: 0, failed: false })
    }
}

impl Stream {
    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// If an entry could not be made. Then that was the end.
    pub fn part(&mut self, used: Part) -> Result<Option<Part>, MakeError> {
        let part = match &mut self.source {
            _ if self.failed => return Ok(None),
            Source::Here(worker) => worker.part(used),
            Source::Threads { chunk, chunks, .. } if chunk == chunks => return Ok(None),
            Source::Threads { receivers, chunk, .. } => {
                let at = (*chunk % receivers.len().max(1) as u64) as usize;
                let received = receivers.get(at).and_then(|it| it.recv().ok());
                let part = received.unwrap_or(Err(MakeError::Thread));
                *chunk += u64::from(part.as_ref().is_ok_and(|part| part.ends_chunk));
                part.map(Some)
            }
        };
        self.failed = part.is_err();
        part
    }
}

/// The first output.
impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.read == self.rest.len() {
            let used = Part { outputs: vec![std::mem::take(&mut self.rest)], ..Part::default() };
            self.read = 0;
            match self.part(used).map_err(io::Error::other)? {
                Some(part) => self.rest = part.outputs.into_iter().next().unwrap_or_default(),
                None => return Ok(0),
            }
        }
        let mut rest = self.rest.get(self.read..).unwrap_or_default();
        let read = rest.read(out)?;
        self.read += read;
        Ok(read)
    }
}

impl Worker {
    fn new(job: Job, chunk: u64, step: u64) -> Result<Worker, MakeError> {
        let maker = Maker::new(job.plan.clone(), job.from)?.with_generation(job.generation);
        Ok(Worker { job, maker, chunk, step, done: 0 })
    }

    /// Makes all of its chunks, until the receiver is gone.
    fn run(mut self, sender: &SyncSender<Result<Part, MakeError>>) {
        loop {
            match self.part(Part::default()) {
                Ok(None) => return,
                Ok(Some(part)) => {
                    if sender.send(Ok(part)).is_err() {
                        return;
                    }
                }
                Err(why) => {
                    let _ = sender.send(Err(why));
                    return;
                }
            }
        }
    }

    /// Makes a part, in the buffers of one that is used up.
    fn part(&mut self, used: Part) -> Result<Option<Part>, MakeError> {
        if self.chunk >= self.job.chunks() {
            return Ok(None);
        }
        let mut part = Part { outputs: used.outputs, ..Part::default() };
        part.outputs.resize_with(self.job.formats.len(), Vec::new);
        part.outputs.iter_mut().for_each(Vec::clear);
        let first = self.chunk * CHUNK_ENTRIES;
        let count = self.job.entries().saturating_sub(first).min(CHUNK_ENTRIES);
        let backwards = self.job.formats.first().is_some_and(Format::is_backwards);
        if self.done == 0 && !backwards {
            self.maker.seek(self.job.from + first)?;
        }
        while self.done < count {
            if backwards {
                self.maker.seek(self.job.end() - 1 - first - self.done)?;
            }
            let Some(view) = self.maker.next_entry()? else { break };
            for (format, out) in self.job.formats.iter().zip(&mut part.outputs) {
                format.write(&view, out);
            }
            self.done += 1;
            part.entries += 1;
            if part.outputs.iter().any(|out| out.len() >= PART_BYTES) {
                break;
            }
        }
        part.ends_chunk = self.done == count;
        if part.ends_chunk {
            self.done = 0;
            self.chunk += self.step;
        }
        if let (Some(compress), Some(out)) = (self.job.compress, part.outputs.first_mut()) {
            *out = compress.part(out)?;
        }
        Ok(Some(part))
    }
}
