//! A front end's connection: its messages, and the rings and sessions that it has set up.

use crate::crypto::config;
use crate::limits::{Limits, REGIONS_MAX, RINGS};
use crate::memory::GuestMemory;
use crate::message::{HEADER_BYTES, Header, Message, RingFile};
use crate::notifier::Notifier;
use crate::queue::{Broken, DESCRIPTORS_MAX, Queue};
use crate::request::Worker;
use crate::watched::Watched;
use keyway_engine::{Engine, Zeroizing};
use rustix::event::epoll::{EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags};
use std::io::IoSliceMut;
use std::mem::{self, MaybeUninit};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Features of virtio: indirect descriptors, event indexes, features of this protocol, and virtio 1.
const FEATURES: u64 = INDIRECT_DESC | EVENT_IDX | 1 << 30 | 1 << 32;
const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;

/// Features of this protocol: several queues, answers that were asked for, messages of the device, sessions, and the
/// configuration space. User-Mode Linux needs the last, and a connection for the device's messages, of which there are
/// none.
const PROTOCOL_FEATURES: u64 = 1 << 0 | REPLY_ACK | 1 << 5 | 1 << 7 | 1 << 9;
const REPLY_ACK: u64 = 1 << 3;

/// Messages that are read before the rings have their turn.
const MESSAGES_AT_ONCE: usize = 16;
/// Lines that a connection may report: the guest can have its ring broken again and again.
const REPORTS_MAX: usize = 16;

/// The connection has ended, and why, if the front end did not just close it.
pub(crate) struct Ended(pub Option<&'static str>);

impl From<Errno> for Ended {
    fn from(_: Errno) -> Ended {
        Ended(None)
    }
}

/// A message was understood and is not done.
struct Refused(&'static str);

pub(crate) struct Connection<'a> {
    epoll: BorrowedFd<'a>,
    engine: &'a Engine,
    limits: Limits,
    report: &'a dyn Fn(&str),
    reports: usize,
    socket: Watched<'a>,
    received: Received,
    features: u64,
    protocol_features: u64,
    memory: GuestMemory,
    rings: [Ring<'a>; RINGS],
    worker: Worker,
    /// For messages of the device, which has none. It is kept, so that the front end sees no end of it.
    _backend: Option<OwnedFd>,
    /// The first event of a ring.
    first_event: u64,
}

/// The message that is being received.
#[derive(Default)]
struct Received {
    bytes: Zeroizing<Vec<u8>>,
    files: Vec<OwnedFd>,
}

#[derive(Default)]
struct Ring<'a> {
    queue: Queue,
    enabled: bool,
    /// Whether it was started since the front end connected.
    has_run: bool,
    kick: Option<Watched<'a>>,
    call: Option<Notifier>,
    error: Option<Notifier>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It is not used.
    #[default]
    Stopped,
    /// It was looked at, and its driver will notify.
    Waiting,
    /// It has to be looked at.
    Ready,
    /// Its driver has put something into it that makes no sense. It is not looked at again.
    Broken,
}

impl<'a> Connection<'a> {
    /// Takes a front end's connection. Events of the socket come as `socket_event`, those of the rings as the numbers
    /// from `first_event` on.
    pub fn new(
        (epoll, socket): (BorrowedFd<'a>, OwnedFd),
        (socket_event, first_event): (u64, u64),
        engine: &'a Engine,
        limits: Limits,
        report: &'a dyn Fn(&str),
    ) -> rustix::io::Result<Connection<'a>> {
        let event = EventData::new_u64(socket_event);
        Ok(Connection {
            epoll,
            engine,
            limits,
            report,
            reports: 0,
            socket: Watched::new(epoll, socket, event, EventFlags::IN)?,
            received: Received::default(),
            features: 0,
            protocol_features: 0,
            memory: GuestMemory::default(),
            rings: Default::default(),
            worker: Worker::new(engine, limits),
            _backend: None,
            first_event,
        })
    }

    /// Answers messages, as many as are there, up to a bound.
    pub fn receive(&mut self) -> Result<(), Ended> {
        for _ in 0..MESSAGES_AT_ONCE {
            let Some(header) = self.received.message(self.socket.file())? else { return Ok(()) };
            let Received { bytes, files } = mem::take(&mut self.received);
            let payload = bytes.get(HEADER_BYTES..).unwrap_or(&[]);
            let message = Message::decode(header.request, payload);
            let message = message.map_err(|why| Ended(Some(why.0)))?;
            let need_reply = header.need_reply && self.protocol_features & REPLY_ACK != 0;
            let answer = match self.handle(message, files) {
                Ok(Some(answer)) => header.answer(&answer),
                Ok(None) if need_reply => header.answer(&0_u64.to_le_bytes()),
                Ok(None) => continue,
                Err(Refused(why)) if need_reply => {
                    self.report(&format!("a message of the front end is refused: {why}"));
                    header.answer(&1_u64.to_le_bytes())
                }
                Err(Refused(why)) => return Err(Ended(Some(why))),
            };
            self.send(&answer)?;
        }
        Ok(())
    }

    /// A front end that does not read its answers has its connection closed.
    fn send(&self, answer: &[u8]) -> Result<(), Ended> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent =
            rustix::io::retry_on_intr(|| rustix::net::send(self.socket.file(), answer, flags))?;
        (sent == answer.len()).then_some(()).ok_or(Ended(Some("it does not read its answers")))
    }

    /// Does what a message says, and returns its answer, if it has one of its own.
    fn handle(
        &mut self,
        message: Message<'_>,
        files: Vec<OwnedFd>,
    ) -> Result<Option<Vec<u8>>, Refused> {
        let number = |number: u64| Ok(Some(number.to_le_bytes().to_vec()));
        match message {
            Message::GetFeatures => return number(FEATURES),
            Message::GetProtocolFeatures => return number(PROTOCOL_FEATURES),
            Message::GetQueueNum => return number(RINGS as u64),
            Message::SetFeatures(features) => {
                if features & !FEATURES != 0 {
                    return Err(Refused("it takes features that were not offered"));
                }
                self.features = features;
            }
            Message::SetProtocolFeatures(features) => {
                if features & !PROTOCOL_FEATURES != 0 {
                    return Err(Refused("it takes features that were not offered"));
                }
                self.protocol_features = features;
            }
            Message::SetOwner => {}
            Message::ResetOwner => self.rings.iter_mut().for_each(Ring::stop),
            Message::SetMemTable(table) => {
                // Rings find themselves in the new one: their addresses are looked up each time.
                self.memory = GuestMemory::new(&table, files).map_err(Refused)?;
                self.rings.iter_mut().for_each(Ring::wake);
            }
            Message::SetVringNum { ring, descriptors } => {
                let ring = self.stopped_ring(ring)?;
                let descriptors = u16::try_from(descriptors).ok();
                let fits = |count: &u16| count.is_power_of_two() && *count <= DESCRIPTORS_MAX;
                ring.queue.descriptors = descriptors
                    .filter(fits)
                    .ok_or(Refused("a ring's length is not a power of two up to 32,768"))?;
            }
            Message::SetVringAddr { ring, addresses } => {
                self.ring(ring)?.queue.addresses = addresses;
            }
            Message::SetVringBase { ring, base } => {
                let base = u16::try_from(base).map_err(|_| Refused("a ring's base is too high"));
                let (base, ring) = (base?, self.stopped_ring(ring)?);
                // A guest that was paused goes on where its ring stopped. One that has started anew begins at 0, and its
                // sessions of before are not its own any more: QEMU does not close them.
                let is_anew = ring.has_run && ring.queue.next != base;
                ring.queue.next = base;
                if is_anew {
                    self.worker.sessions.close_all();
                }
            }
            Message::GetVringBase { ring: index } => {
                // No request is under way between two batches: all that was taken has been given back.
                let ring = self.ring(index)?;
                ring.stop();
                let base = u32::from(ring.queue.next);
                return Ok(Some([index, base].into_iter().flat_map(u32::to_le_bytes).collect()));
            }
            Message::SetVringKick(file) => self.start(file, files)?,
            Message::SetVringCall(file) => {
                self.ring(file.ring)?.call = notifier(file, files)?;
            }
            Message::SetVringErr(file) => {
                self.ring(file.ring)?.error = notifier(file, files)?;
            }
            Message::SetVringEnable { ring, enabled } => {
                let ring = self.ring(ring)?;
                ring.enabled = enabled;
                ring.wake();
            }
            Message::SetBackendReqFd => self._backend = files.into_iter().next(),
            Message::GetConfig { offset, bytes, flags } => {
                let space = config(self.engine, self.limits);
                let range = offset as usize..(offset as usize).saturating_add(bytes as usize);
                // One that does not fit is answered with no bytes.
                let contents = space.get(range).unwrap_or(&[]);
                let words = [offset, contents.len() as u32, flags];
                let mut answer: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
                answer.extend(contents);
                return Ok(Some(answer));
            }
            Message::SetConfig => return Err(Refused("the configuration space is read-only")),
            Message::CreateCryptoSession { layout, session } => {
                let created = session.and_then(|session| self.worker.sessions.create(session));
                let created = created.map_or(-1, |number| i64::try_from(number).unwrap_or(-1));
                return Ok(Some(layout.answer(created)));
            }
            Message::CloseCryptoSession { session } => {
                // One that is not open is closed.
                let _ = self.worker.sessions.destroy(session);
            }
            Message::Unknown => return Err(Refused("the device does not know this message")),
        }
        Ok(None)
    }

    fn ring(&mut self, ring: u32) -> Result<&mut Ring<'a>, Refused> {
        let ring = usize::try_from(ring).ok().and_then(|ring| self.rings.get_mut(ring));
        ring.ok_or(Refused("the device has two rings"))
    }

    fn stopped_ring(&mut self, ring: u32) -> Result<&mut Ring<'a>, Refused> {
        let ring = self.ring(ring)?;
        match ring.state {
            State::Stopped => Ok(ring),
            _ => Err(Refused("the ring has not been stopped")),
        }
    }

    /// Starts a ring, enabled: QEMU 7.2 does not say so, although it should.
    fn start(&mut self, file: RingFile, files: Vec<OwnedFd>) -> Result<(), Refused> {
        let (epoll, event) = (self.epoll, self.first_event + u64::from(file.ring));
        let kick = match (file.has_file, files.into_iter().next()) {
            (true, Some(kick)) if is_event(&kick) => kick,
            _ => return Err(Refused("a ring has to have an event that notifies of requests")),
        };
        // Each write is an edge, and so the event needs no reading, which could wait for ever.
        let flags = EventFlags::IN | EventFlags::ET;
        let kick = Watched::new(epoll, kick, EventData::new_u64(event), flags);
        let kick = kick.map_err(|_| Refused("a ring's event is none"))?;
        let ring = self.ring(file.ring)?;
        (ring.enabled, ring.state, ring.kick) = (true, State::Ready, Some(kick));
        ring.has_run = true;
        let index = file.ring as usize;
        let Connection { memory, rings, .. } = self;
        if let Err(why) = rings[index].queue.start(memory) {
            self.broke(index, why);
        }
        Ok(())
    }

    /// A ring's driver has notified.
    pub fn kicked(&mut self, event: u64) {
        let ring = event.checked_sub(self.first_event).and_then(|ring| usize::try_from(ring).ok());
        if let Some(ring) = ring.and_then(|ring| self.rings.get_mut(ring)) {
            ring.wake();
        }
    }

    /// Does a batch of each ring that has to be looked at. Whether there is more to do.
    pub fn work(&mut self) -> bool {
        for index in 0..RINGS {
            if self.rings[index].is_ready()
                && let Err(why) = self.batch(index)
            {
                self.broke(index, why);
            }
        }
        self.rings.iter().any(Ring::is_ready)
    }

    /// Takes a batch, has it done and gives it back. A ring that breaks meanwhile has all before answered.
    fn batch(&mut self, index: usize) -> Result<(), Broken> {
        let Connection { memory, rings, worker, features, .. } = self;
        let Ring { queue, call, state, .. } = &mut rings[index];
        // A driver that goes by event indexes is not told otherwise.
        if *features & EVENT_IDX == 0 {
            queue.silence(memory)?;
        }
        let mut taken = 0;
        let mut take = || {
            while !worker.is_full() {
                let Some(chain) = queue.take(memory)? else { break };
                worker.begin(memory, chain);
                taken += 1;
            }
            Ok(())
        };
        let took = take();
        let was_full = worker.is_full();
        let given_back =
            worker.finish(memory, |chain, written| queue.give_back(memory, chain, written));
        if taken > 0
            && queue.publish(memory)?
            && let Some(call) = call
        {
            call.notify();
        }
        took.and(given_back)?;
        // One that was full leaves more, and the ring is looked at again.
        if !was_full && !queue.listen(memory)? {
            *state = State::Waiting;
        }
        Ok(())
    }

    /// A ring is of no use any more. That is said once.
    fn broke(&mut self, index: usize, Broken(why): Broken) {
        let ring = &mut self.rings[index];
        ring.state = State::Broken;
        ring.kick = None;
        self.report(&format!("ring {index} is stopped until its driver resets it: {why}"));
        if let Some(error) = &self.rings[index].error {
            error.notify();
        }
    }

    /// Whether the front end has closed it, although messages may be left in it.
    pub fn is_closed(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.socket.file(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = rustix::event::poll(&mut polled, Some(&now));
        ready.is_ok() && polled[0].revents().contains(PollFlags::HUP)
    }

    fn report(&mut self, line: &str) {
        self.reports += 1;
        if self.reports <= REPORTS_MAX {
            (self.report)(line);
        }
    }
}

impl Ring<'_> {
    fn stop(&mut self) {
        (self.state, self.kick) = (State::Stopped, None);
    }

    fn wake(&mut self) {
        if self.state == State::Waiting {
            self.state = State::Ready;
        }
    }

    fn is_ready(&self) -> bool {
        self.enabled && self.state == State::Ready
    }
}

fn notifier(file: RingFile, files: Vec<OwnedFd>) -> Result<Option<Notifier>, Refused> {
    match (file.has_file, files.into_iter().next()) {
        (false, _) => Ok(None),
        (true, Some(file)) if is_event(&file) => Ok(Some(Notifier::new(file))),
        (true, Some(_)) => Err(Refused("a ring's event is neither an eventfd nor a pipe")),
        (true, None) => Err(Refused("a ring's event has no file")),
    }
}

/// Whether it can be an event: an eventfd, which has no type, or a pipe. The connection itself would never end.
fn is_event(file: &OwnedFd) -> bool {
    let kind = rustix::fs::fstat(file).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Unknown))
}

impl Received {
    /// Receives what is there of a message. Its header, when it is whole.
    fn message(&mut self, socket: BorrowedFd<'_>) -> Result<Option<Header>, Ended> {
        loop {
            let header = match self.bytes.first_chunk::<HEADER_BYTES>() {
                Some(bytes) => Some(Header::decode(bytes).map_err(|why| Ended(Some(why.0)))?),
                None => None,
            };
            let whole = HEADER_BYTES + header.map_or(0, |header| header.payload_bytes);
            match header {
                Some(header) if self.bytes.len() == whole => return Ok(Some(header)),
                _ => {}
            }
            match self.part(socket, whole) {
                Ok(true) => {}
                Ok(false) => return Err(Ended(None)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Receives some more, up to so many bytes. Whether there was anything.
    fn part(&mut self, socket: BorrowedFd<'_>, whole: usize) -> rustix::io::Result<bool> {
        let had = self.bytes.len();
        // At once for the longest message, so that no copy of a key is left where the vector was.
        self.bytes.reserve_exact(HEADER_BYTES + crate::limits::PAYLOAD_BYTES_MAX - had);
        self.bytes.resize(whole, 0);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REGIONS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = rustix::io::retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(&mut self.bytes[had..])];
            rustix::net::recvmsg(socket, &mut parts, &mut ancillary, flags)
        });
        self.bytes.truncate(had + received.as_ref().map_or(0, |received| received.bytes));
        let received = received?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) || self.files.len() > REGIONS_MAX {
            return Err(Errno::TOOBIG);
        }
        Ok(received.bytes > 0)
    }
}
