//! A client by hand, which has nothing of the engine's. The fuzz targets use it too.
#![allow(dead_code, reason = "each program uses a part of it")]

use keyway_ring::control::{self, Answer, Ask, Key, Secret, Step, VERSION};
use keyway_ring::descriptor::{
    Completion, Descriptor, Opcode, RegionHandle, Segment, SessionHandle,
};
use keyway_ring::{ClientEnd, Doorbell, Received, RingMemory, SharedMemory, Socket};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    pub socket: Socket,
    /// The algorithms that the daemon has.
    pub algorithms: Vec<String>,
}

pub struct Pair {
    pub end: ClientEnd,
    pub bell: Doorbell,
    pub memory: RingMemory,
    pub number: u32,
}

pub struct Region {
    pub memory: SharedMemory,
    pub handle: RegionHandle,
}

impl Client {
    /// One that has said who it is.
    pub fn new(socket: &Path) -> Self {
        let mut client = Client::stranger(socket);
        let hello = Ask::Hello { version: VERSION, name: "test".to_owned() };
        match client.ask(&hello) {
            Answer::Hello { version: VERSION, algorithms, .. } => client.algorithms = algorithms,
            answer => panic!("{answer:?}"),
        }
        client
    }

    /// One that has not.
    pub fn stranger(socket: &Path) -> Self {
        Client { socket: Socket::connect(socket).unwrap(), algorithms: Vec::new() }
    }

    pub fn say(&self, ask: &Ask, fds: &[BorrowedFd<'_>]) {
        self.socket.send(&control::encode(ask).unwrap(), fds).unwrap();
    }

    pub fn hear(&self) -> (Answer, Received) {
        let mut received = self.socket.receive().unwrap().expect("the daemon hung up");
        let answer = control::decode_answer(&received.bytes).unwrap();
        received.bytes.clear();
        (answer, received)
    }

    pub fn ask(&self, ask: &Ask) -> Answer {
        self.say(ask, &[]);
        self.hear().0
    }

    /// Whether the daemon has sent it away.
    pub fn is_sent_away(&self) -> bool {
        loop {
            match self.socket.receive() {
                Ok(Some(_)) => continue,
                Ok(None) => return true,
                Err(why) => return why.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }

    pub fn pair(&self, entries: u32) -> Pair {
        self.say(&Ask::Queue { entries }, &[]);
        let (answer, mut received) = self.hear();
        let Answer::Queue { queue, entries } = answer else { panic!("{answer:?}") };
        let bell = Doorbell::from_fd(received.fds.pop().unwrap());
        let memory = RingMemory::adopt(received.fds.pop().unwrap(), entries).unwrap();
        Pair { end: memory.client_end().unwrap(), bell, memory, number: queue }
    }

    pub fn region(&self, bytes: usize) -> Region {
        self.say(&Ask::Region { bytes: bytes as u64 }, &[]);
        let (answer, mut received) = self.hear();
        let Answer::Region { region } = answer else { panic!("{answer:?}") };
        let memory = SharedMemory::adopt(received.fds.pop().unwrap(), usize::MAX).unwrap();
        Region { memory, handle: region }
    }

    pub fn open(&self, algorithm: &str, key: Key) -> SessionHandle {
        self.try_open(vec![Step { algorithm: algorithm.to_owned(), key }]).unwrap()
    }

    pub fn try_open(&self, steps: Vec<Step>) -> Result<SessionHandle, Answer> {
        match self.ask(&Ask::Open { steps }) {
            Answer::Session { session, .. } => Ok(session),
            answer => Err(answer),
        }
    }

    pub fn aes(&self) -> SessionHandle {
        self.open("aes-128-gcm", Key::Secret(Secret(vec![7; 16])))
    }
}

impl Pair {
    /// Has one request done, and rings where the daemon wants it.
    pub fn run(&mut self, descriptor: &Descriptor) -> Completion {
        self.submit(descriptor);
        self.completion()
    }

    pub fn submit(&mut self, descriptor: &Descriptor) {
        self.end.submit(descriptor);
        if self.end.must_ring() {
            self.bell.ring();
        }
    }

    pub fn completion(&mut self) -> Completion {
        let begun = Instant::now();
        loop {
            if let Some(completion) = self.end.poll() {
                return completion;
            }
            assert!(!self.end.is_closed(), "the daemon serves the pair no more");
            assert!(begun.elapsed() < PATIENCE, "a request has no answer");
            let armed = self.end.armed().unwrap();
            armed.set();
            if !self.end.is_ready() {
                armed.sleep(Duration::from_millis(100));
            }
        }
    }

    pub fn null(&mut self) -> Completion {
        self.run(&Descriptor { opcode: Opcode::Null as u8, cookie: 77, ..Descriptor::default() })
    }
}

impl Region {
    /// A request to seal that text under a nonce of zeros: it lies at the start of the region.
    pub fn seal(&self, session: SessionHandle, text: &[u8]) -> Descriptor {
        self.memory.write(0, text).unwrap();
        Descriptor {
            opcode: Opcode::Seal as u8,
            session,
            region: self.handle,
            cookie: 5,
            segments: [
                Segment::default(),
                Segment { offset: 0, bytes: text.len() as u32 },
                Segment::default(),
            ],
            ..Descriptor::default()
        }
    }

    pub fn bytes(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        self.memory.read(offset, &mut out).unwrap();
        out
    }
}
