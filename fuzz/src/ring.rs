//! The bytes that a client writes into the memory that it shares with the daemon.

use crate::client::{Client, Pair, Region};
use crate::served::{Served, sessions};
use keyway_ring::control::Ask;
use keyway_ring::descriptor::{
    DESCRIPTOR_WORDS, Descriptor, Opcode, Segment, SessionHandle, Status, cost,
};
use std::cell::RefCell;

const ENTRIES: u32 = 8;
/// A third for each segment.
const REGION_BYTES: usize = 3 * 4096;
/// Where the flags and the rings lie in a pair's memory.
const FLAGS: [usize; 3] = [64, 128, 192];
const RINGS: usize = 256;
const DESCRIPTOR_BYTES: usize = DESCRIPTOR_WORDS * 8;

/// One daemon and one client for all inputs of a thread.
struct Bench {
    pair: Pair,
    /// The pair whose memory is spoilt.
    other: Pair,
    client: Client,
    region: Region,
    sessions: Vec<SessionHandle>,
    _served: Served,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

/// The first byte is a number of descriptors, which come next. They go into a ring as they are but
/// for what their first bytes say, and each has one answer, under its cookie. The bytes behind them
/// lie in the region meanwhile. If the first bit is set, all of it is also written over another
/// pair's rings, and the daemon still answers.
pub fn ring(data: &[u8]) {
    let Some((&count, rest)) = data.split_first() else { return };
    BENCH.with_borrow_mut(|bench| {
        let (spoils, count) = (count & 0x80 != 0, usize::from(count & 0x7f));
        let count = count.min(ENTRIES as usize).min(rest.len() / DESCRIPTOR_BYTES);
        let (descriptors, region) = rest.split_at(count * DESCRIPTOR_BYTES);
        let mut whole = region[..region.len().min(REGION_BYTES)].to_vec();
        whole.resize(REGION_BYTES, 0);
        assert_eq!(bench.region.memory.write(0, &whole), Ok(()));
        let (descriptors, _) = descriptors.as_chunks::<DESCRIPTOR_BYTES>();
        for (cookie, bytes) in descriptors.iter().enumerate() {
            let descriptor = bench.descriptor(bytes, cookie as u32);
            bench.pair.submit(&descriptor);
        }
        let mut seen = [false; ENTRIES as usize];
        for _ in 0..count {
            let cookie = bench.pair.completion().cookie as usize;
            assert!(cookie < count && !seen[cookie], "two answers, or one to no request");
            seen[cookie] = true;
        }
        if spoils {
            bench.spoil(rest);
        }
        assert_eq!(bench.pair.null().status, Status::Done);
        assert!(bench.pair.end.poll().is_none(), "more answers than requests");
        if spoils {
            bench.renew();
        }
    });
}

impl Bench {
    fn new() -> Self {
        let served = Served::start();
        let client = Client::new(&served.socket());
        let (pair, other) = (client.pair(ENTRIES), client.pair(ENTRIES));
        let (region, sessions) = (client.region(REGION_BYTES), sessions(&client));
        assert!(sessions.len() > 40, "only {} algorithms", sessions.len());
        Bench { pair, other, client, region, sessions, _served: served }
    }

    /// A descriptor of these bytes. Its session is one of the client's, its region is the client's
    /// and its segments lie in that, each unless a bit of the upper half of the opcode's byte says
    /// that they stay as they are. A password costs little, whatever they say.
    fn descriptor(&self, bytes: &[u8; DESCRIPTOR_BYTES], cookie: u32) -> Descriptor {
        let (words, _) = bytes.as_chunks::<8>();
        let words = std::array::from_fn(|at| u64::from_le_bytes(words[at]));
        let mut descriptor = Descriptor::from_words(words);
        let keeps = |bit: u8| descriptor.opcode & bit != 0;
        let (keeps_session, keeps_region, keeps_segments) = (keeps(0x80), keeps(0x40), keeps(0x20));
        descriptor.opcode &= 0x1f;
        descriptor.cookie = cookie;
        if !keeps_session {
            let index = usize::from(descriptor.session.index) % self.sessions.len();
            descriptor.session = self.sessions[index];
        }
        if !keeps_region {
            descriptor.region = self.region.handle;
        }
        if !keeps_segments {
            let third = REGION_BYTES as u32 / 3;
            for (place, segment) in descriptor.segments.iter_mut().enumerate() {
                let offset = segment.offset % third;
                let bytes = segment.bytes % (third - offset);
                *segment = Segment { offset: place as u32 * third + offset, bytes };
            }
        }
        let opcode = Opcode::new(descriptor.opcode);
        if matches!(opcode, Some(Opcode::Derive | Opcode::VerifyPassword)) {
            make_cheap(&mut descriptor.parameters);
        }
        descriptor
    }

    /// Writes over the other pair's rings, and over what each side says of its sleep.
    fn spoil(&mut self, data: &[u8]) {
        let memory = self.other.memory.memory();
        let bytes = &data[..data.len().min(memory.bytes() - RINGS)];
        assert_eq!(memory.write(RINGS, bytes), Ok(()));
        for (at, flag) in FLAGS.into_iter().zip(data.chunks_exact(4)) {
            assert_eq!(memory.write(at, flag), Ok(()));
        }
        self.other.bell.ring();
    }

    /// Another pair in the place of the spoilt one.
    fn renew(&mut self) {
        let queue = self.other.number;
        self.client.say(&Ask::CloseQueue { queue }, &[]);
        self.other = self.client.pair(ENTRIES);
    }
}

/// Keeps the three numbers of a password's cost small.
fn make_cheap(parameters: &mut [u8; 16]) {
    let most = match parameters[0] {
        cost::BCRYPT => 6,
        cost::SHA_CRYPT => 1_100,
        _ => 16,
    };
    let (words, _) = parameters.as_chunks_mut::<4>();
    for word in words.iter_mut().skip(1) {
        *word = (u32::from_ne_bytes(*word) % most).to_ne_bytes();
    }
}
