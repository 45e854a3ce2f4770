//! Messages through memory, where no socket reaches: between processes of a virtual machine and the daemon of its host.
//!
//! ```text
//! 0      header: magic, version, whether the daemon serves, slots, the mailbox's bell, what tells it from others
//! 4096   slot 0: asked, answered, their lengths ── 4096 ──▶ the message, its answer
//!        slot 1: ...
//!        what is shared out: queue pairs and regions
//! ```
//!
//! A process has a slot as long as it has a lock on a byte of the device's file ([`Device`](crate::Device)), which ends
//! with it. It writes a message, then the word *asked*: its epoch (the slot's owners counted) and the message's number.
//! The daemon copies the message, answers in its own place, and repeats that word in *answered*. A number of 0 says that
//! the slot has no owner.
//!
//! All of it is the virtual machine's to write. The daemon believes none of it, and an owner is hurt only by processes
//! of its own machine.

use crate::SharedMemory;
use crate::limits::{MAILBOX_SLOTS, MESSAGE_BYTES_MAX};
use rustix::rand::{GetRandomFlags, getrandom};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zeroize::Zeroizing;

/// What memory of ours begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"keyway\0\x01");
/// The version of this layout.
const VERSION: u32 = 1;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_STATE: usize = 12;
const AT_SLOTS: usize = 16;
const AT_BELL: usize = 20;
/// A random word, which tells this memory from all others.
const AT_IDENTITY: usize = 24;

/// The daemon serves.
const OPEN: u32 = 1;
/// It serves no more.
const CLOSED: u32 = 2;

const SLOTS: usize = 4096;
const ASKED: usize = 0;
const ASKED_BYTES: usize = 8;
const ANSWERED: usize = 64;
const ANSWERED_BYTES: usize = 72;
const MESSAGE: usize = 4096;
const ANSWER: usize = MESSAGE + MESSAGE_BYTES_MAX;
const SLOT_BYTES: usize = ANSWER + MESSAGE_BYTES_MAX;

/// Where the mailbox ends, in bytes, and what is shared out begins.
pub const MAILBOX_BYTES: usize = SLOTS + MAILBOX_SLOTS * SLOT_BYTES;

/// The word of a message: which of a slot's owners asks, and the message's number among its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

impl Word {
    fn new(epoch: u32, number: u32) -> Word {
        Word(u64::from(epoch) << 32 | u64::from(number))
    }

    fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn number(self) -> u32 {
        self.0 as u32
    }
}

/// The daemon's end. One thread's at a time.
#[derive(Debug)]
pub struct MailboxEnd {
    memory: Arc<SharedMemory>,
    /// The word of each slot that was taken last.
    taken: [Word; MAILBOX_SLOTS],
}

/// Something that the daemon finds in a slot.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether all that was set up through this slot is over: its owner has gone, or is another.
    pub is_over: bool,
    /// A message that waits for its answer.
    pub message: Option<Zeroizing<Vec<u8>>>,
}

impl MailboxEnd {
    /// Makes the mailbox of fresh memory, which is all zero, and says by which bell it is rung. `None` if the memory is
    /// too short, or the system has no random bytes.
    pub fn open(memory: &Arc<SharedMemory>, bell: u32) -> Option<MailboxEnd> {
        let mut identity = [0; 8];
        let drawn = getrandom(&mut identity, GetRandomFlags::empty());
        if memory.bytes() < MAILBOX_BYTES || drawn != Ok(identity.len()) {
            return None;
        }
        memory.word(AT_IDENTITY)?.store(u64::from_ne_bytes(identity) | 1, Ordering::Relaxed);
        for (at, value) in
            [(AT_VERSION, VERSION), (AT_SLOTS, MAILBOX_SLOTS as u32), (AT_BELL, bell)]
        {
            memory.flag(at)?.store(value, Ordering::Relaxed);
        }
        memory.word(AT_MAGIC)?.store(MAGIC, Ordering::Relaxed);
        memory.flag(AT_STATE)?.store(OPEN, Ordering::Release);
        Some(MailboxEnd { memory: memory.clone(), taken: [Word(0); MAILBOX_SLOTS] })
    }

    /// Goes on where another process has been: with the words that it has taken last, one for each slot.
    pub fn resume(memory: &Arc<SharedMemory>, taken: &[u64]) -> Option<MailboxEnd> {
        let mut words = [Word(0); MAILBOX_SLOTS];
        if memory.bytes() < MAILBOX_BYTES || taken.len() != words.len() {
            return None;
        }
        words.iter_mut().zip(taken).for_each(|(word, taken)| *word = Word(*taken));
        Some(MailboxEnd { memory: memory.clone(), taken: words })
    }

    /// The words that were taken last, for [`MailboxEnd::resume`].
    pub fn taken(&self) -> Vec<u64> {
        self.taken.iter().map(|word| word.0).collect()
    }

    /// What is new in a slot, if anything is.
    pub fn take(&mut self, slot: usize) -> Option<Asked> {
        let taken = self.taken.get_mut(slot)?;
        let start = slot_start(slot);
        let word = Word(self.memory.word(start + ASKED)?.load(Ordering::Acquire));
        if word == *taken {
            return None;
        }
        let is_over = word.epoch() != taken.epoch() || word.number() == 0;
        *taken = word;
        let message = (word.number() != 0).then(|| self.message(start)).flatten();
        Some(Asked { is_over, message })
    }

    fn message(&self, start: usize) -> Option<Zeroizing<Vec<u8>>> {
        let bytes = self.memory.flag(start + ASKED_BYTES)?.load(Ordering::Relaxed) as usize;
        let mut message = Zeroizing::new(vec![0; bytes.min(MESSAGE_BYTES_MAX)]);
        self.memory.read(start + MESSAGE, &mut message).ok()?;
        // It may have a key in it.
        let _ = self.memory.write(start + MESSAGE, &Zeroizing::new(vec![0; message.len()]));
        Some(message)
    }

    /// Answers the message that was taken last from a slot; with nothing, says that it was taken.
    pub fn answer(&self, slot: usize, answer: &[u8]) {
        let Some(taken) = self.taken.get(slot) else { return };
        let start = slot_start(slot);
        let answer = answer.get(..MESSAGE_BYTES_MAX).unwrap_or(answer);
        let _ = self.memory.write(start + ANSWER, answer);
        if let (Some(bytes), Some(word)) =
            (self.memory.flag(start + ANSWERED_BYTES), self.memory.word(start + ANSWERED))
        {
            bytes.store(answer.len() as u32, Ordering::Relaxed);
            word.store(taken.0, Ordering::Release);
        }
    }

    /// Says that the daemon serves no more.
    pub fn close(&self) {
        if let Some(state) = self.memory.flag(AT_STATE) {
            state.store(CLOSED, Ordering::Release);
        }
    }
}

/// What a process of the virtual machine finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub slots: usize,
    pub bell: u32,
}

/// The header of memory that is a mailbox of ours, and long enough.
pub(crate) fn header(memory: &SharedMemory) -> Option<Header> {
    if memory.bytes() < MAILBOX_BYTES || memory.word(AT_MAGIC)?.load(Ordering::Acquire) != MAGIC {
        return None;
    }
    memory.know_by(AT_IDENTITY);
    let read = |at| Some(memory.flag(at)?.load(Ordering::Relaxed));
    let (version, slots, bell) = (read(AT_VERSION)?, read(AT_SLOTS)? as usize, read(AT_BELL)?);
    (version == VERSION && slots <= MAILBOX_SLOTS).then_some(Header { slots, bell })
}

/// Whether the daemon serves, as far as it has said.
pub(crate) fn is_open(memory: &SharedMemory) -> bool {
    !memory.is_lost() && memory.flag(AT_STATE).is_some_and(|it| it.load(Ordering::Acquire) == OPEN)
}

/// An owner's end of a slot. One thread's at a time.
#[derive(Debug)]
pub(crate) struct SlotEnd {
    memory: Arc<SharedMemory>,
    start: usize,
    epoch: u32,
    number: u32,
}

/// How a message has ended.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Not yet.
    Nothing,
    Answer(Zeroizing<Vec<u8>>),
    /// The slot is another process's, or the memory is gone.
    Over,
}

impl SlotEnd {
    /// Takes a slot for which its owner has the lock.
    pub fn claim(memory: &Arc<SharedMemory>, slot: usize) -> Option<SlotEnd> {
        let start = slot_start(slot);
        let word = memory.word(start + ASKED)?;
        let epoch = Word(word.load(Ordering::Acquire)).epoch().wrapping_add(1);
        word.store(Word::new(epoch, 0).0, Ordering::Release);
        Some(SlotEnd { memory: memory.clone(), start, epoch, number: 0 })
    }

    /// Whether a slot whose lock is free has had an owner that did not say that it ended.
    pub fn is_abandoned(memory: &SharedMemory, slot: usize) -> bool {
        let word = memory.word(slot_start(slot) + ASKED);
        word.is_some_and(|word| Word(word.load(Ordering::Acquire)).number() != 0)
    }

    /// Whether the message before was taken, so that there is room for another.
    pub fn is_free(&self) -> bool {
        self.number == 0 || !matches!(self.hear(), Heard::Nothing)
    }

    /// Writes a message, no longer than [`MESSAGE_BYTES_MAX`]. The mailbox's bell is to be rung then.
    pub fn say(&mut self, message: &[u8]) -> Option<()> {
        let asked = self.memory.word(self.start + ASKED)?;
        if self.memory.is_lost() || Word(asked.load(Ordering::Relaxed)).epoch() != self.epoch {
            return None;
        }
        self.memory.write(self.start + MESSAGE, message).ok()?;
        self.memory.flag(self.start + ASKED_BYTES)?.store(message.len() as u32, Ordering::Relaxed);
        // After 4,000 million messages the numbers begin again.
        self.number = self.number.wrapping_add(1).max(1);
        asked.store(Word::new(self.epoch, self.number).0, Ordering::Release);
        Some(())
    }

    /// The answer to the message before.
    pub fn hear(&self) -> Heard {
        let words = (
            self.memory.word(self.start + ASKED),
            self.memory.word(self.start + ANSWERED),
            self.memory.flag(self.start + ANSWERED_BYTES),
        );
        let (Some(asked), Some(answered), Some(bytes)) = words else { return Heard::Over };
        let own = Word::new(self.epoch, self.number);
        if self.memory.is_lost() || asked.load(Ordering::Relaxed) != own.0 {
            return Heard::Over;
        }
        if answered.load(Ordering::Acquire) != own.0 {
            return Heard::Nothing;
        }
        let bytes = bytes.load(Ordering::Relaxed) as usize;
        let mut answer = Zeroizing::new(vec![0; bytes.min(MESSAGE_BYTES_MAX)]);
        match self.memory.read(self.start + ANSWER, &mut answer) {
            // Bytes that were read while the device went are none.
            Ok(()) if !self.memory.is_lost() => Heard::Answer(answer),
            _ => Heard::Over,
        }
    }

    /// Says that the owner has ended.
    pub fn end(&self) {
        if let Some(asked) = self.memory.word(self.start + ASKED)
            && !self.memory.is_lost()
            && Word(asked.load(Ordering::Relaxed)).epoch() == self.epoch
        {
            asked.store(Word::new(self.epoch.wrapping_add(1), 0).0, Ordering::Release);
        }
    }
}

fn slot_start(slot: usize) -> usize {
    SLOTS + slot * SLOT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (MailboxEnd, Arc<SharedMemory>) {
        let memory = Arc::new(SharedMemory::create(MAILBOX_BYTES).unwrap());
        (MailboxEnd::open(&memory, 7).unwrap(), memory)
    }

    #[test]
    fn messages_go_there_and_answers_come_back() {
        let (mut daemon, memory) = made();
        assert_eq!(header(&memory), Some(Header { slots: MAILBOX_SLOTS, bell: 7 }));
        assert!(is_open(&memory));
        let mut client = SlotEnd::claim(&memory, 3).unwrap();
        assert_eq!(daemon.take(3), Some(Asked { is_over: true, message: None }));
        assert!(client.is_free());
        for text in [&b"first"[..], b"", &[7; MESSAGE_BYTES_MAX]] {
            let said = [text, b"!"].concat();
            client.say(text).unwrap();
            assert!(!client.is_free());
            let asked = daemon.take(3).unwrap();
            assert_eq!(
                (asked.is_over, asked.message.as_deref().map(|it| &it[..])),
                (false, Some(text))
            );
            assert!(daemon.take(3).is_none() && matches!(client.hear(), Heard::Nothing));
            daemon.answer(3, &said);
            let Heard::Answer(answer) = client.hear() else { panic!("no answer") };
            assert!(answer[..] == said[..said.len().min(MESSAGE_BYTES_MAX)]);
            assert!(client.is_free());
        }
        let resumed = MailboxEnd::resume(&memory, &daemon.taken()).unwrap();
        assert_eq!(resumed.taken, daemon.taken);
        // Another process has the lock: what was set up is over, and the one before hears so.
        let next = SlotEnd::claim(&memory, 3).unwrap();
        assert!(matches!(client.hear(), Heard::Over) && client.say(b"late").is_none());
        client.end();
        assert_eq!(daemon.take(3), Some(Asked { is_over: true, message: None }));
        assert!(!SlotEnd::is_abandoned(&memory, 3));
        next.end();
        assert!(daemon.take(3).unwrap().is_over);
        daemon.close();
        assert!(!is_open(&memory));
    }

    #[test]
    fn a_slot_without_an_owner_is_seen() {
        let (mut daemon, memory) = made();
        let mut client = SlotEnd::claim(&memory, 0).unwrap();
        client.say(b"hello").unwrap();
        drop(client);
        assert!(SlotEnd::is_abandoned(&memory, 0) && !SlotEnd::is_abandoned(&memory, 1));
        assert!(daemon.take(0).unwrap().is_over);
        SlotEnd::claim(&memory, 0).unwrap().end();
        assert_eq!(daemon.take(0), Some(Asked { is_over: true, message: None }));
    }

    #[test]
    fn lengths_that_lie_are_cut() {
        let (mut daemon, memory) = made();
        let mut client = SlotEnd::claim(&memory, 63).unwrap();
        client.say(b"short").unwrap();
        memory.flag(client.start + ASKED_BYTES).unwrap().store(u32::MAX, Ordering::Relaxed);
        assert_eq!(daemon.take(63).unwrap().message.unwrap().len(), MESSAGE_BYTES_MAX);
        daemon.answer(63, b"x");
        memory.flag(client.start + ANSWERED_BYTES).unwrap().store(u32::MAX, Ordering::Relaxed);
        assert!(
            matches!(client.hear(), Heard::Answer(answer) if answer.len() == MESSAGE_BYTES_MAX)
        );
        assert!(daemon.take(64).is_none());
    }

    /// As a process of a virtual machine has it mapped whose device is taken out, and another one put in its place.
    #[test]
    fn another_devices_memory_is_not_written_to() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MAILBOX_BYTES as u64).unwrap();
        let file = std::os::fd::OwnedFd::from(file);
        let daemons = Arc::new(SharedMemory::of_device(&file, MAILBOX_BYTES).unwrap());
        let mut first = MailboxEnd::open(&daemons, 1).unwrap();
        let memory = Arc::new(SharedMemory::of_device(&file, MAILBOX_BYTES).unwrap());
        assert!(header(&memory).is_some() && is_open(&memory));
        let part = memory.part(0..4096, None).unwrap();
        let mut client = SlotEnd::claim(&memory, 0).unwrap();
        client.say(b"first").unwrap();
        assert!(first.take(0).unwrap().message.is_some() && !part.is_lost());
        let mut second = MailboxEnd::open(&daemons, 1).unwrap();
        assert!(part.is_lost() && !is_open(&memory) && !part.has_futexes());
        assert!(client.say(b"second").is_none() && matches!(client.hear(), Heard::Over));
        client.end();
        assert!(second.take(0).unwrap().message.is_some_and(|left| left[..] == *b"\0\0\0\0\0"));
        assert!(second.take(0).is_none());
    }

    #[test]
    fn memory_of_others_is_no_mailbox() {
        let memory = SharedMemory::create(MAILBOX_BYTES).unwrap();
        assert!(header(&memory).is_none() && !is_open(&memory));
        let (_daemon, memory) = made();
        memory.flag(AT_VERSION).unwrap().store(2, Ordering::Relaxed);
        assert!(header(&memory).is_none());
    }
}
