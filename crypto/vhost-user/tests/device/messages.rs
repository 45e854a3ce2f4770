//! Messages in their order, out of it, and of any bytes.

use crate::front_end::message::*;
use crate::front_end::*;
use keyway_vhost_user::Limits;
use proptest::prelude::*;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::LazyLock;

fn pair(one: u32, other: u32) -> Vec<u8> {
    [one, other].into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn memory_tables_that_are_not_sound_are_refused() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let memory = rustix::io::dup(&front_end.memory).unwrap();
    let short = eventfd();
    let whole = MEMORY_BYTES;
    for (region, file) in [
        ([GUEST, whole + 1, USER, 0], &memory),
        ([GUEST, whole, USER, 4_096], &memory),
        ([GUEST, 0, USER, 0], &memory),
        ([u64::MAX - 4_095, 8_192, USER, 0], &memory),
        ([GUEST, 8_192, u64::MAX - 4_095, 0], &memory),
        ([GUEST, 8_192, USER, u64::MAX - 4_095], &memory),
        ([GUEST, 8_192, USER, 0], &short),
    ] {
        assert!(!front_end.is_done(SET_MEM_TABLE, &FrontEnd::table(region), &[file.as_fd()]));
    }
    let table = FrontEnd::table([GUEST, whole, USER, 0]);
    assert!(!front_end.is_done(SET_MEM_TABLE, &table, &[]), "a file too few");
    let files = [memory.as_fd(), memory.as_fd()];
    assert!(!front_end.is_done(SET_MEM_TABLE, &table, &files), "a file too many");
    assert!(!front_end.is_done(SET_MEM_TABLE, &[0; 8], &[]), "no region");
    let mut two = FrontEnd::table([GUEST, 8_192, USER, 0]);
    two[0] = 2;
    let overlapping = [GUEST + 4_096, 8_192, USER + 8_192, 8_192];
    two[40..].copy_from_slice(&overlapping.map(u64::to_le_bytes).concat());
    assert!(!front_end.is_done(SET_MEM_TABLE, &two, &files));
    assert_eq!(device.reported().len(), 11, "each is reported");
    // Its rings are where they were, with the next table.
    front_end.set_memory();
    front_end.works();
}

/// Tables, calls and kicks that are repeated leave no file open: `/proc/self/fd` has as many as before.
#[test]
fn repeated_messages_leak_no_file() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let folder = std::fs::read_link("/proc/self").unwrap();
    assert_eq!(folder.to_str(), Some(std::process::id().to_string().as_str()));
    let mapped =
        |name: &str| std::fs::read_to_string("/proc/self/maps").unwrap().matches(name).count();
    let file = rustix::fs::memfd_create("repeated", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, MEMORY_BYTES).unwrap();
    let open = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let named = files.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
        named.filter(|name| name.to_string_lossy().contains("memfd:repeated")).count()
    };
    assert_eq!(open(), 1);
    let table = FrontEnd::table([GUEST, MEMORY_BYTES, USER, 0]);
    for _ in 0..50 {
        assert!(front_end.is_done(SET_MEM_TABLE, &table, &[file.as_fd()]));
        // A file that is no event, as a front end's own end of the connection would be.
        assert!(!front_end.is_done(SET_VRING_CALL, &0_u64.to_le_bytes(), &[file.as_fd()]));
        assert!(front_end.is_done(SET_BACKEND_REQ_FD, &[], &[file.as_fd()]));
        // Files with messages that have none.
        assert!(front_end.is_done(SET_OWNER, &[], &[file.as_fd(), file.as_fd()]));
    }
    assert_eq!((mapped("memfd:repeated"), open()), (1, 2));
    drop(front_end);
    // The device has seen the end before it answers the next front end.
    let mut next = device.connect();
    next.begin();
    assert_eq!((mapped("memfd:repeated"), open()), (0, 1));
}

#[test]
fn one_front_end_at_a_time_and_then_the_next() {
    let device = Device::start(Limits::default());
    let mut first = FrontEnd::ready(&device);
    for _ in 0..3 {
        assert!(device.connect().is_closed());
        first.works();
    }
    drop(first);
    FrontEnd::ready(&device).works();
}

#[test]
fn the_answers_to_what_is_refused() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    for (request, payload) in [
        (SET_FEATURES, 1_u64.to_le_bytes().to_vec()),
        (SET_PROTOCOL_FEATURES, (1_u64 << 15).to_le_bytes().to_vec()),
        (SET_VRING_NUM, pair(0, 8)),
        (SET_VRING_NUM, pair(2, 8)),
        (SET_VRING_BASE, pair(1, 0)),
        (SET_VRING_KICK, 0x100_u64.to_le_bytes().to_vec()),
        (SET_VRING_KICK, 0_u64.to_le_bytes().to_vec()),
        (SET_VRING_KICK, 2_u64.to_le_bytes().to_vec()),
        (SET_VRING_ENABLE, pair(7, 1)),
        (25, vec![0; 24]),
        (99, Vec::new()),
    ] {
        assert!(!front_end.is_done(request, &payload, &[]), "{request}");
    }
    front_end.ask(GET_VRING_BASE, &pair(0, 0));
    for size in [0, 3, 65_536, 1 << 31] {
        assert!(!front_end.is_done(SET_VRING_NUM, &pair(0, size), &[]), "{size}");
    }
    assert!(!front_end.is_done(SET_VRING_BASE, &pair(0, 65_536), &[]));
    front_end.start(0);
    front_end.works();
    // Where no reply is wanted, there is no way to say it but to end.
    front_end.send(SET_VRING_ENABLE, false, &pair(7, 1), &[]);
    assert!(front_end.is_closed());
    FrontEnd::ready(&device).works();
}

/// User-Mode Linux says so; QEMU 7.2 does not.
#[test]
fn a_ring_that_is_disabled_waits() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    assert!(front_end.is_done(SET_VRING_ENABLE, &pair(0, 0), &[]));
    let status = front_end.buffer(&[0xee]);
    front_end.put(0, 0, &[], &[status], true);
    let before = front_end.read(0, MEMORY_BYTES as usize);
    front_end.kick(0);
    front_end.settle();
    assert!(front_end.read(0, MEMORY_BYTES as usize) == before);
    assert!(front_end.is_done(SET_VRING_ENABLE, &pair(0, 1), &[]));
    assert_eq!(front_end.wait(0, 1), [(0, 1)]);
    front_end.works();
}

#[test]
fn closing_at_every_point() {
    let device = Device::start(Limits::default());
    let numbers = [GET_FEATURES, GET_PROTOCOL_FEATURES, GET_QUEUE_NUM, SET_OWNER];
    for count in 0..numbers.len() {
        let front_end = device.connect();
        numbers[..count].iter().for_each(|number| front_end.send(*number, false, &[], &[]));
    }
    // Within a message, with and without its files.
    let message = [&[5, 0, 0, 0, 1, 0, 0, 0, 72, 0, 0, 0][..], &[1; 72]].concat();
    for bytes in 0..message.len() {
        let front_end = device.connect();
        let files = [front_end.memory.as_fd()];
        front_end.send_bytes(&message[..bytes], &files[..bytes % 2]);
    }
    let steps: [fn(&mut FrontEnd); 5] = [
        FrontEnd::begin,
        FrontEnd::set_memory,
        |it| it.start(0),
        |it| assert_eq!(it.open(&[1; 16], true), 1),
        |it| {
            let status = it.buffer(&[0]);
            (0..SIZE).for_each(|head| it.put(0, head, &[], &[status], true));
            it.kick(0);
        },
    ];
    for count in 1..=steps.len() {
        let mut front_end = device.connect();
        steps[..count].iter().for_each(|step| step(&mut front_end));
    }
    FrontEnd::ready(&device).works();
    assert!(device.reported().iter().all(|line| line.contains("closed")));
}

static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::start(Limits::default()));

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn messages_of_any_bytes(
        messages in proptest::collection::vec(
            (0_u32..48, any::<bool>(), proptest::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..80), 0_usize..4),
            1..12,
        ),
        rest: Vec<u8>,
    ) {
        {
            let mut front_end = DEVICE.connect();
            front_end.begin();
            front_end.set_memory();
            let event = eventfd();
            let files: [BorrowedFd<'_>; 3] = [event.as_fd(), front_end.memory.as_fd(), front_end.socket.as_fd()];
            for (request, need_reply, payload, count) in &messages {
                front_end.send(*request, *need_reply, payload, &files[..*count]);
            }
            front_end.send_bytes(&rest, &[]);
            front_end.socket.shutdown(std::net::Shutdown::Write).unwrap();
            while front_end.answer().is_some() {}
        }
        FrontEnd::ready(&DEVICE).works();
    }
}
