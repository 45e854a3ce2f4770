//! A device in a thread, and a front end with a driver of its own. The guest's memory is a file here: it is read and
//! written as one, beside the device that has it mapped.

use keyway_vhost_user::{Limits, serve};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Long enough that only a device that hangs takes as long.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

pub struct Device {
    folder: tempfile::TempDir,
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    pub reports: Arc<Mutex<Vec<String>>>,
    /// The thread's number.
    pub number: i32,
}

impl Device {
    pub fn start(limits: Limits) -> Device {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let end = Arc::new(eventfd());
        let reports = Arc::new(Mutex::new(Vec::new()));
        let (ended, reported) = (end.clone(), reports.clone());
        let (number, numbered) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            number.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let engine = keyway_drivers::engine();
            let report = |line: &str| reported.lock().unwrap().push(line.to_owned());
            serve(listener.into(), ended.as_fd(), &engine, limits, &report).unwrap();
        });
        let number = numbered.recv().unwrap();
        Device { folder, end, thread: Some(thread), reports, number }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn connect(&self) -> FrontEnd {
        FrontEnd::connect(&self.path())
    }

    /// How often its thread has slept.
    pub fn sleeps(&self) -> u64 {
        let status = format!("/proc/self/task/{}/status", self.number);
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    }

    /// What it has reported since it was asked last.
    pub fn reported(&self) -> Vec<String> {
        std::mem::take(&mut *self.reports.lock().unwrap())
    }
}

impl Drop for Device {
    /// It ends as it should.
    fn drop(&mut self) {
        ring(&self.end);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

pub fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap()
}

/// Waits for an event, and resets it.
pub fn wait_for(event: &OwnedFd) {
    let mut polled = [PollFd::new(event, PollFlags::IN)];
    let ready = rustix::event::poll(&mut polled, Some(&PATIENCE));
    assert_eq!(ready, Ok(1), "the device does not answer");
    rustix::io::read(event, &mut [0; 8]).unwrap();
}

pub fn ring(event: &OwnedFd) {
    rustix::io::write(event, &1_u64.to_ne_bytes()).unwrap();
}

/// The numbers of messages.
pub mod message {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const CREATE_SESSION: u32 = 26;
    pub const CLOSE_SESSION: u32 = 27;
}
use message::*;

/// Where the guest's memory is for the front end.
pub const USER: u64 = 0x7000_0000_0000;
/// Its length.
pub const MEMORY_BYTES: u64 = 1 << 20;
/// Where its memory is for the guest.
pub const GUEST: u64 = 0x4000_0000;
/// Descriptors of a ring.
pub const SIZE: u16 = 16;

/// Where a ring's parts are in the memory's file.
pub fn descriptors_at(ring: usize) -> u64 {
    0x1000 + ring as u64 * 0x4000
}
pub fn available_at(ring: usize) -> u64 {
    descriptors_at(ring) + 0x1000
}
pub fn used_at(ring: usize) -> u64 {
    descriptors_at(ring) + 0x2000
}
/// Indirect tables and buffers.
pub const TABLES_AT: u64 = 0x1_0000;
pub const BUFFERS_AT: u64 = 0x8_0000;

pub struct FrontEnd {
    pub socket: UnixStream,
    pub memory: OwnedFd,
    pub kicks: [OwnedFd; 2],
    pub calls: [OwnedFd; 2],
    /// The next entries of what is available and used.
    pub available: [u16; 2],
    pub used: [u16; 2],
    /// Where the next buffer may lie.
    free: u64,
}

/// A descriptor: address, bytes, flags, next.
pub type Descriptor = (u64, u32, u16, u16);
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

impl FrontEnd {
    pub fn connect(path: &std::path::Path) -> FrontEnd {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let memory = rustix::fs::memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&memory, MEMORY_BYTES).unwrap();
        FrontEnd {
            socket,
            memory,
            kicks: [eventfd(), eventfd()],
            calls: [eventfd(), eventfd()],
            available: [0; 2],
            used: [0; 2],
            free: BUFFERS_AT,
        }
    }

    pub fn send(&self, request: u32, need_reply: bool, payload: &[u8], files: &[BorrowedFd<'_>]) {
        let flags = if need_reply { 9 } else { 1 };
        let words = [request, flags, payload.len() as u32];
        let header: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.send_bytes(&[&header[..], payload].concat(), files);
    }

    /// Sends any bytes. A device that has closed the connection does not take them.
    pub fn send_bytes(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(40))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
        }
        let parts = [IoSlice::new(bytes)];
        let _ = rustix::net::sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL);
    }

    /// An answer's payload; none if the device has closed the connection.
    pub fn answer(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 12];
        self.socket.read_exact(&mut header).ok()?;
        assert_eq!(header[4..8], [5, 0, 0, 0], "an answer of version 1");
        let bytes = u32::from_le_bytes(header[8..].try_into().unwrap());
        let mut payload = vec![0; bytes as usize];
        self.socket.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    pub fn ask(&mut self, request: u32, payload: &[u8]) -> Vec<u8> {
        self.send(request, false, payload, &[]);
        self.answer().expect("the connection is open")
    }

    /// Waits until the device has looked at its rings and reported what it found. It reads some messages before that, so
    /// this asks often.
    pub fn settle(&mut self) {
        let often = 40;
        (0..often).for_each(|_| self.send(GET_FEATURES, false, &[], &[]));
        (0..often).for_each(|_| drop(self.answer().expect("the connection is open")));
    }

    pub fn ask_number(&mut self, request: u32) -> u64 {
        u64::from_le_bytes(self.ask(request, &[]).try_into().unwrap())
    }

    /// Sends a message that wants a reply: whether it was done.
    pub fn is_done(&mut self, request: u32, payload: &[u8], files: &[BorrowedFd<'_>]) -> bool {
        self.send(request, true, payload, files);
        self.answer().expect("the connection is open") == [0; 8]
    }

    /// Whether the device has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        self.send(GET_FEATURES, false, &[], &[]);
        self.answer().is_none()
    }

    /// As QEMU 7.2 begins.
    pub fn begin(&mut self) {
        assert_eq!(self.ask_number(GET_FEATURES), 0x1_7000_0000);
        assert_eq!(self.ask_number(GET_PROTOCOL_FEATURES), 0x2a9);
        self.send(SET_PROTOCOL_FEATURES, false, &0x2a9_u64.to_le_bytes(), &[]);
        assert_eq!(self.ask_number(GET_QUEUE_NUM), 2);
        let channel = eventfd();
        assert!(self.is_done(SET_BACKEND_REQ_FD, &[], &[channel.as_fd()]));
        self.send(SET_OWNER, false, &[], &[]);
        self.send(SET_FEATURES, false, &0x4000_0000_u64.to_le_bytes(), &[]);
    }

    /// A memory table of one region, and what User-Mode Linux sends behind it.
    pub fn table(region: [u64; 4]) -> Vec<u8> {
        let mut table = vec![0; 72];
        table[0] = 1;
        for (at, number) in region.into_iter().enumerate() {
            table[8 + 8 * at..16 + 8 * at].copy_from_slice(&number.to_le_bytes());
        }
        table
    }

    pub fn set_memory(&mut self) {
        let table = Self::table([GUEST, MEMORY_BYTES, USER, 0]);
        let memory = rustix::io::dup(&self.memory).unwrap();
        assert!(self.is_done(SET_MEM_TABLE, &table, &[memory.as_fd()]));
    }

    pub fn start(&mut self, ring: usize) {
        let base = u32::from(self.available[ring]);
        self.start_at(ring, base);
    }

    pub fn start_at(&mut self, ring: usize, base: u32) {
        let pair = |number: u32| {
            [ring as u32, number].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
        };
        self.send(SET_VRING_NUM, false, &pair(SIZE.into()), &[]);
        self.send(SET_VRING_BASE, false, &pair(base), &[]);
        let parts = [
            ring as u64,
            USER + descriptors_at(ring),
            USER + used_at(ring),
            USER + available_at(ring),
            0,
        ];
        let parts: Vec<u8> = parts.into_iter().flat_map(u64::to_le_bytes).collect();
        self.send(SET_VRING_ADDR, false, &parts, &[]);
        let number = (ring as u64).to_le_bytes();
        let call = rustix::io::dup(&self.calls[ring]).unwrap();
        self.send(SET_VRING_CALL, false, &number, &[call.as_fd()]);
        let kick = rustix::io::dup(&self.kicks[ring]).unwrap();
        assert!(self.is_done(SET_VRING_KICK, &number, &[kick.as_fd()]));
    }

    /// Ready to be used.
    pub fn ready(device: &Device) -> FrontEnd {
        let mut front_end = device.connect();
        front_end.begin();
        front_end.set_memory();
        front_end.start(0);
        front_end.start(1);
        front_end
    }

    pub fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        assert_eq!(rustix::io::pread(&self.memory, &mut read, at), Ok(bytes));
        read
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.memory, bytes, at), Ok(bytes.len()));
    }

    pub fn word(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.read(at, 2).try_into().unwrap())
    }

    /// A new buffer with these bytes, and its address for the guest.
    pub fn buffer(&mut self, bytes: &[u8]) -> (u64, u32) {
        let at = self.free;
        self.free += (bytes.len() as u64).next_multiple_of(64);
        self.write(at, bytes);
        (GUEST + at, bytes.len() as u32)
    }

    pub fn describe(&self, at: u64, descriptors: &[Descriptor]) {
        for (index, (address, bytes, flags, next)) in descriptors.iter().enumerate() {
            let mut descriptor = address.to_le_bytes().to_vec();
            descriptor.extend(bytes.to_le_bytes());
            descriptor.extend(flags.to_le_bytes());
            descriptor.extend(next.to_le_bytes());
            self.write(at + 16 * index as u64, &descriptor);
        }
    }

    /// Offers a chain that begins there.
    pub fn offer(&mut self, ring: usize, head: u16) {
        let slot = u64::from(self.available[ring] % SIZE);
        self.write(available_at(ring) + 4 + 2 * slot, &head.to_le_bytes());
        self.available[ring] = self.available[ring].wrapping_add(1);
        self.write(available_at(ring) + 2, &self.available[ring].to_le_bytes());
    }

    pub fn kick(&self, ring: usize) {
        self::ring(&self.kicks[ring]);
    }

    /// Waits until the device has given so many chains back, and returns each one's head and length.
    pub fn wait(&mut self, ring: usize, count: u16) -> Vec<(u32, u32)> {
        let until = self.used[ring].wrapping_add(count);
        while self.word(used_at(ring) + 2) != until {
            wait_for(&self.calls[ring]);
        }
        let entry = |at: u16| {
            let slot = u64::from(self.used[ring].wrapping_add(at) % SIZE);
            let entry = self.read(used_at(ring) + 4 + 8 * slot, 8);
            let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
            (word(0), word(4))
        };
        let entries = (0..count).map(entry).collect();
        self.used[ring] = until;
        entries
    }

    /// Puts a request into a ring, as descriptors from `head` on or in a table of its own, and offers it.
    pub fn put(
        &mut self,
        ring: usize,
        head: u16,
        readable: &[(u64, u32)],
        writable: &[(u64, u32)],
        is_indirect: bool,
    ) {
        let count = (readable.len() + writable.len()) as u16;
        let first = if is_indirect { 0 } else { head };
        let flagged =
            readable.iter().map(|part| (part, 0)).chain(writable.iter().map(|part| (part, WRITE)));
        let chain: Vec<Descriptor> = (1..)
            .zip(flagged)
            .map(|(place, ((address, bytes), flags))| match place < count {
                true => (*address, *bytes, flags | NEXT, first + place),
                false => (*address, *bytes, flags, 0),
            })
            .collect();
        let descriptors = descriptors_at(ring) + 16 * u64::from(head);
        if is_indirect {
            let table = TABLES_AT + 0x1000 * u64::from(head);
            self.describe(table, &chain);
            self.describe(descriptors, &[(GUEST + table, 16 * u32::from(count), INDIRECT, 0)]);
        } else {
            self.describe(descriptors, &chain);
        }
        self.offer(ring, head);
    }

    /// Has a request done: what was written to the room for its result, its status, and the length told.
    pub fn request(&mut self, ring: usize, readable: &[&[u8]], room: usize) -> (Vec<u8>, u8, u32) {
        let readable: Vec<_> = readable.iter().map(|bytes| self.buffer(bytes)).collect();
        let result = self.buffer(&vec![0xee; room]);
        let status = self.buffer(&[0xee]);
        self.put(ring, 0, &readable, &[result, status], true);
        self.kick(ring);
        let [(0, length)] = self.wait(ring, 1)[..] else { panic!("the head is another") };
        let result = self.read(result.0 - GUEST, room);
        let status = self.read(status.0 - GUEST, 1)[0];
        self.free = BUFFERS_AT;
        (result, status, length)
    }

    /// Has a control request done, and returns the session and the status.
    pub fn control(&mut self, header: &[u8], key: &[u8]) -> (u64, u8) {
        let readable: Vec<_> = [header, key].map(|bytes| self.buffer(bytes)).to_vec();
        let input = self.buffer(&[0xee; 16]);
        self.put(1, 0, &readable, &[input], true);
        self.kick(1);
        assert_eq!(self.wait(1, 1), [(0, 16)]);
        self.free = BUFFERS_AT;
        let input = self.read(input.0 - GUEST, 16);
        (u64::from_le_bytes(input[..8].try_into().unwrap()), input[8])
    }

    /// All of the guest's memory, but zeros where a ring was used and where these buffers are.
    pub fn others(&self, buffers: &[(u64, u32)]) -> Vec<u8> {
        let mut all = self.read(0, MEMORY_BYTES as usize);
        for ring in 0..2 {
            let used = used_at(ring) as usize;
            all[used..used + 6 + 8 * usize::from(SIZE)].fill(0);
        }
        for (address, bytes) in buffers {
            let at = (address - GUEST) as usize;
            all[at..at + *bytes as usize].fill(0);
        }
        all
    }
}

/// A header of a request, with these words.
pub fn header(words: &[(usize, u32)]) -> Vec<u8> {
    let mut header = vec![0; 72];
    for (at, word) in words {
        header[*at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// A cipher's data request.
pub fn cipher(decrypts: bool, session: u64, bytes: u32) -> Vec<u8> {
    let session = session as u32;
    header(&[(0, decrypts.into()), (8, session), (24, 16), (28, bytes), (32, bytes), (64, 1)])
}

/// A session of QEMU 7.2's: 632 bytes.
pub fn session(key: &[u8], decrypts: bool) -> Vec<u8> {
    let mut session = vec![0; 632];
    (session[8], session[12]) = (3, key.len() as u8);
    (session[32], session[33]) = (1, 1 + u8::from(decrypts));
    session[56..56 + key.len()].copy_from_slice(key);
    session
}

impl FrontEnd {
    /// Opens a session by a message, and returns its number.
    pub fn open(&mut self, key: &[u8], decrypts: bool) -> i64 {
        let answer = self.ask(CREATE_SESSION, &session(key, decrypts));
        assert_eq!(answer.len(), 632);
        assert!(answer[8..].iter().all(|byte| *byte == 0), "it has nothing of the key");
        i64::from_le_bytes(answer[..8].try_into().unwrap())
    }

    /// Encrypts something, and has it right.
    pub fn works(&mut self) {
        let session = self.open(&[1; 16], false);
        assert!(session > 0);
        let (result, status, _) =
            self.request(0, &[&cipher(false, session as u64, 16), &[2; 16], &[3; 16]], 16);
        let mut expected = [3; 16];
        let engine = keyway_drivers::engine();
        let key = keyway_engine::Key::Secret(&[1; 16]);
        let parameters = keyway_engine::Parameters::new(keyway_engine::Algorithm::Aes128Cbc, key);
        let request = &mut keyway_engine::Request::Encrypt { iv: &[2; 16], data: &mut expected };
        engine.session(parameters).unwrap().run(request).unwrap();
        assert_eq!((status, &result[..]), (0, &expected[..]));
    }
}
