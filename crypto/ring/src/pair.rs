//! A queue pair: a submission ring and a completion ring in one memory, and each side's ends of
//! them.

use crate::descriptor::{COMPLETION_WORDS, Completion, DESCRIPTOR_WORDS, Descriptor};
use crate::limits::{ENTRIES_MAX, ENTRIES_MIN, STEP_MAX, STEP_MIN};
use crate::{Arena, Armed, Consumer, Producer, SharedMemory};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Where the daemon's flag is, in bytes: it sleeps, and wants to be rung.
const DAEMON_ARMED: usize = 64;
/// Where the client's is. In another line, so that neither side's writes disturb the other's reads.
const CLIENT_ARMED: usize = 128;
/// Where the daemon says that this pair is served no more.
const CLOSED: usize = 192;
/// Where the rings begin.
const RINGS: usize = 256;

/// Past so many sleeps they get no longer.
const STEPS_MAX: u32 = 10;

const WORD: usize = size_of::<u64>();
const SUBMISSIONS: usize = RINGS / WORD;

/// The memory of a queue pair of so many entries.
#[derive(Clone, Debug)]
pub struct RingMemory {
    memory: Arc<SharedMemory>,
    entries: u32,
}

impl RingMemory {
    /// Makes it, with the next power of two of entries, within the limits.
    ///
    /// # Errors
    /// The system's.
    pub fn create(entries: u32) -> io::Result<Self> {
        let entries = entries.clamp(ENTRIES_MIN, ENTRIES_MAX).next_power_of_two();
        let memory = SharedMemory::create(bytes(entries))?;
        Ok(RingMemory { memory: Arc::new(memory), entries })
    }

    /// As [`RingMemory::create`], of memory that is shared out. `None` if there is none left.
    pub fn create_in(arena: &Arc<Arena>, entries: u32) -> Option<Self> {
        let entries = entries.clamp(ENTRIES_MIN, ENTRIES_MAX).next_power_of_two();
        let memory = arena.take(bytes(entries))?;
        Some(RingMemory { memory: Arc::new(memory), entries })
    }

    /// Takes the one that a peer has made for so many entries.
    ///
    /// # Errors
    /// `InvalidInput` if it is not what it should be; else the system's.
    pub fn adopt(file: OwnedFd, entries: u32) -> io::Result<Self> {
        let most = bytes(ENTRIES_MAX).next_multiple_of(2 << 20);
        Self::of(SharedMemory::adopt(file, most)?, entries)
    }

    /// The one that lies in this memory, with so many entries.
    ///
    /// # Errors
    /// `InvalidInput` if it is too short, or not so many entries may be.
    pub fn of(memory: SharedMemory, entries: u32) -> io::Result<Self> {
        let fits = entries.is_power_of_two() && (ENTRIES_MIN..=ENTRIES_MAX).contains(&entries);
        if !fits || memory.bytes() < bytes(entries) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no queue pair"));
        }
        Ok(RingMemory { memory: Arc::new(memory), entries })
    }

    /// It with its file closed ([`SharedMemory::without_file`]). `None` if it is in use.
    pub fn without_file(self) -> Option<Self> {
        let memory = Arc::into_inner(self.memory)?.without_file();
        Some(RingMemory { memory: Arc::new(memory), entries: self.entries })
    }

    /// The memory that both map.
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// Entries of each ring.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// The client's end. To be made once.
    pub fn client_end(&self) -> Option<ClientEnd> {
        let completions = self.completions();
        let (memory, entries) = (&self.memory, self.entries);
        Some(ClientEnd {
            submissions: Producer::new(memory.clone(), SUBMISSIONS, entries, 0)?,
            completions: Consumer::new(memory.clone(), completions, entries, 0)?,
            memory: memory.clone(),
            steps: AtomicU32::new(0),
        })
    }

    /// The daemon's end, which has taken and answered so many requests before.
    pub fn daemon_end(&self, taken: u64, answered: u64) -> Option<DaemonEnd> {
        let completions = self.completions();
        let (memory, entries) = (&self.memory, self.entries);
        Some(DaemonEnd {
            submissions: Consumer::new(memory.clone(), SUBMISSIONS, entries, taken)?,
            completions: Producer::new(memory.clone(), completions, entries, answered)?,
            memory: memory.clone(),
        })
    }

    fn completions(&self) -> usize {
        SUBMISSIONS + DESCRIPTOR_WORDS * self.entries as usize
    }
}

fn bytes(entries: u32) -> usize {
    RINGS + (DESCRIPTOR_WORDS + COMPLETION_WORDS) * WORD * entries as usize
}

/// Submits requests and takes completions. One thread's at a time.
///
/// Its owner has no more requests under way than the pair has entries.
#[derive(Debug)]
pub struct ClientEnd {
    submissions: Producer<Arc<SharedMemory>, DESCRIPTOR_WORDS>,
    completions: Consumer<Arc<SharedMemory>, COMPLETION_WORDS>,
    memory: Arc<SharedMemory>,
    /// Sleeps since a completion came, where none is woken.
    steps: AtomicU32,
}

impl ClientEnd {
    /// Publishes a request.
    #[inline]
    pub fn submit(&mut self, descriptor: &Descriptor) {
        self.submissions.push(descriptor.to_words());
    }

    /// Takes the next completion, if it is there.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        let completion = self.completions.pop().map(Completion::from_words)?;
        // Half of it may have been read when the device of a virtual machine went.
        if self.is_lost() {
            return None;
        }
        *self.steps.get_mut() = 0;
        Some(completion)
    }

    /// Whether a completion is there.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.completions.is_ready()
    }

    /// After requests were published: whether the daemon is to be rung.
    #[inline]
    pub fn must_ring(&self) -> bool {
        self.memory.flag(DAEMON_ARMED).is_some_and(|flag| Armed(flag).take())
    }

    /// The flag that this side sleeps on.
    pub fn armed(&self) -> Option<Armed<'_>> {
        self.memory.flag(CLIENT_ARMED).map(Armed)
    }

    /// Sleeps until a completion may be there, or the time is over. Where the daemon cannot wake this side, because it is
    /// in a virtual machine, each sleep is longer than the one before.
    pub fn sleep(&self, most: Duration) {
        if !self.memory.has_futexes() {
            let steps = self.steps.fetch_add(1, Ordering::Relaxed).min(STEPS_MAX);
            return thread::sleep((STEP_MIN * (1 << steps)).min(STEP_MAX).min(most));
        }
        let Some(armed) = self.armed() else { return };
        armed.set();
        if !self.is_ready() && !self.is_closed() {
            armed.sleep(most);
        }
        armed.clear();
    }

    /// Whether it was in the memory of a device that has gone ([`SharedMemory::is_lost`]).
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.memory.is_lost()
    }

    /// Whether the daemon serves this pair no more.
    #[inline]
    pub fn is_closed(&self) -> bool {
        let closed = |flag: &AtomicU32| flag.load(Ordering::Acquire) != 0;
        self.memory.flag(CLOSED).is_none_or(closed) || self.is_lost()
    }
}

/// Takes requests and publishes completions. One thread's at a time.
///
/// Its owner takes no more requests than the pair has entries before it answers some. It never
/// waits for room: a client that takes no completions loses its own.
#[derive(Debug)]
pub struct DaemonEnd {
    submissions: Consumer<Arc<SharedMemory>, DESCRIPTOR_WORDS>,
    completions: Producer<Arc<SharedMemory>, COMPLETION_WORDS>,
    memory: Arc<SharedMemory>,
}

impl DaemonEnd {
    /// Takes the next request, if it is there: a copy.
    #[inline]
    pub fn take(&mut self) -> Option<Descriptor> {
        self.submissions.pop().map(Descriptor::from_words)
    }

    /// Whether a request is there.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.submissions.is_ready()
    }

    /// Publishes a completion.
    #[inline]
    pub fn answer(&mut self, completion: &Completion) {
        self.completions.push(completion.to_words());
    }

    /// After completions were published: wakes the client if it sleeps, and says whether it did.
    #[inline]
    pub fn wake(&self) -> bool {
        let Some(armed) = self.memory.flag(CLIENT_ARMED).map(Armed) else { return false };
        let sleeps = armed.take();
        if sleeps {
            armed.wake();
        }
        sleeps
    }

    /// The flag by which the client knows that it has to ring.
    pub fn armed(&self) -> Option<Armed<'_>> {
        self.memory.flag(DAEMON_ARMED).map(Armed)
    }

    /// Tells the client that this pair is served no more, and wakes it.
    pub fn close(&self) {
        if let Some(flag) = self.memory.flag(CLOSED) {
            flag.store(1, Ordering::Release);
        }
        self.wake();
    }

    /// How many requests were taken, and how many answered, since the pair was made.
    pub fn positions(&self) -> (u64, u64) {
        (self.submissions.position(), self.completions.position())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{Opcode, Status};

    #[test]
    fn requests_go_there_and_completions_come_back() {
        let made = RingMemory::create(5).unwrap();
        assert_eq!(made.entries(), 8);
        let file = rustix::io::dup(made.memory().file().unwrap()).unwrap();
        let other = RingMemory::adopt(file, made.entries()).unwrap();
        let mut client = other.client_end().unwrap();
        let mut daemon = made.daemon_end(0, 0).unwrap();
        for cookie in 0..100 {
            let descriptor =
                Descriptor { opcode: Opcode::Null as u8, cookie, ..Descriptor::default() };
            client.submit(&descriptor);
            assert!(!client.must_ring() && daemon.is_ready());
            assert_eq!(daemon.take(), Some(descriptor));
            assert!(daemon.take().is_none() && client.poll().is_none());
            let completion = Completion { cookie, status: Status::Busy, used: 9, result: [1; 16] };
            daemon.answer(&completion);
            assert!(!daemon.wake());
            assert_eq!(client.poll(), Some(completion));
        }
        assert_eq!(daemon.positions(), (100, 100));
        daemon.armed().unwrap().set();
        assert!(client.must_ring() && !client.must_ring());
        assert!(!client.is_closed());
        daemon.close();
        assert!(client.is_closed());
    }

    #[test]
    fn what_is_too_short_is_no_queue_pair() {
        let memory = SharedMemory::create(4096).unwrap();
        let adopt =
            |entries| RingMemory::adopt(rustix::io::dup(memory.file().unwrap()).unwrap(), entries);
        assert!(adopt(32).is_ok());
        for entries in [0, 1, 3, 64, 1 << 16, u32::MAX] {
            assert!(adopt(entries).is_err(), "{entries}");
        }
    }
}
