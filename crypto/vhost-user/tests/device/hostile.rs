//! Rings and memory that no honest guest has. After each: nothing outside the offered buffers has changed, the broken
//! ring costs nothing more, and the next front end is served.

use crate::front_end::message::*;
use crate::front_end::*;
use keyway_vhost_user::Limits;
use proptest::prelude::*;
use rustix::fs::OFlags;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has the descriptor table made as it is said, offers a head, and expects that the ring is stopped.
fn breaks(device: &Device, head: u16, make: impl FnOnce(&mut FrontEnd)) {
    let mut front_end = FrontEnd::ready(device);
    let error = eventfd();
    let given = rustix::io::dup(&error).unwrap();
    assert!(front_end.is_done(SET_VRING_ERR, &0_u64.to_le_bytes(), &[given.as_fd()]));
    front_end.works();
    make(&mut front_end);
    front_end.offer(0, head);
    let before = front_end.others(&[]);
    front_end.kick(0);
    wait_for(&error);
    assert_eq!(device.reported().len(), 1);
    // It is not looked at again.
    front_end.settle();
    let slept = device.sleeps();
    (0..1_000).for_each(|_| front_end.kick(0));
    front_end.settle();
    let slept = device.sleeps() - slept;
    assert!(slept < 100, "{slept} sleeps for notifications that do not count");
    assert!(front_end.others(&[]) == before, "memory has changed");
    assert_eq!(front_end.word(used_at(0) + 2), 1, "nothing more was given back");
    // The other ring works, and so does this one after it was reset.
    assert_eq!(front_end.request(1, &[], 0).1, 2);
    front_end.ask(GET_VRING_BASE, &[0; 8]);
    front_end.write(available_at(0), &[0; 4]);
    front_end.write(used_at(0), &[0; 4]);
    (front_end.available[0], front_end.used[0]) = (0, 0);
    front_end.start(0);
    front_end.works();
    drop(front_end);
    FrontEnd::ready(device).works();
    assert_eq!(device.reported(), [""; 0]);
}

const BUFFER: u64 = GUEST + BUFFERS_AT;

#[test]
fn chains_that_are_none() {
    let device = Device::start(Limits::default());
    let table = |descriptors: &'static [Descriptor]| {
        move |it: &mut FrontEnd| it.describe(descriptors_at(0), descriptors)
    };
    breaks(&device, u16::MAX, |_| {});
    breaks(&device, SIZE, |_| {});
    let next_to_nothing: &[Descriptor] = &[(BUFFER, 4, NEXT, SIZE)];
    breaks(&device, 0, table(next_to_nothing));
    breaks(&device, 0, table(&[(BUFFER, 4, NEXT, 1), (BUFFER, 4, NEXT, 0)]));
    breaks(&device, 0, table(&[(BUFFER, 4, NEXT | WRITE, 0)]));
    breaks(&device, 0, table(&[(BUFFER, 4, WRITE | NEXT, 1), (BUFFER, 4, 0, 0)]));
    breaks(&device, 0, table(&[(BUFFER, 72, 0, 0)]));
    breaks(&device, 0, table(&[(BUFFER, 0, WRITE, 0)]));
    // Addresses.
    breaks(&device, 0, table(&[(0, 1, WRITE, 0)]));
    breaks(&device, 0, table(&[(GUEST + MEMORY_BYTES - 1, 2, WRITE, 0)]));
    breaks(&device, 0, table(&[(u64::MAX, 2, WRITE, 0)]));
    breaks(&device, 0, table(&[(BUFFER, u32::MAX, NEXT, 1), (BUFFER, 1, WRITE, 0)]));
    // Indirect tables.
    breaks(&device, 0, table(&[(GUEST + TABLES_AT, 0, INDIRECT, 0)]));
    breaks(&device, 0, table(&[(GUEST + TABLES_AT, 17, INDIRECT, 0)]));
    breaks(&device, 0, table(&[(GUEST + TABLES_AT, !15, INDIRECT, 0)]));
    breaks(&device, 0, table(&[(GUEST + MEMORY_BYTES - 16, 32, INDIRECT, 0)]));
    breaks(
        &device,
        0,
        table(&[(GUEST + TABLES_AT, 16, INDIRECT | NEXT, 1), (BUFFER, 1, WRITE, 0)]),
    );
    for within in [
        &[(BUFFER, 1, NEXT | WRITE, 0)][..],
        &[(BUFFER, 1, NEXT | WRITE, 2), (BUFFER, 1, WRITE, 0)],
        &[(GUEST + TABLES_AT, 16, INDIRECT, 0)],
        &[(BUFFER, 1, WRITE | NEXT, 1), (BUFFER, 1, 0, 0)],
    ] {
        breaks(&device, 0, |it| {
            it.describe(TABLES_AT, within);
            let bytes = 16 * within.len() as u32;
            it.describe(descriptors_at(0), &[(GUEST + TABLES_AT, bytes, INDIRECT, 0)]);
        });
    }
    // More than the ring has.
    breaks(&device, 0, |it| it.available[0] = it.available[0].wrapping_add(SIZE));
    breaks(&device, 0, |it| it.available[0] = u16::MAX);
}

#[test]
fn rings_that_are_not_in_memory() {
    let device = Device::start(Limits::default());
    let whole = USER + MEMORY_BYTES;
    for parts in [
        [0, 0, 0],
        [whole - 16, USER + 0x3000, USER + 0x2000],
        [USER + 0x1008, USER + 0x3000, USER + 0x2000],
        [USER + 0x1000, whole - 6, USER + 0x2000],
        [USER + 0x1000, USER + 0x3002, USER + 0x2000],
        [USER + 0x1000, USER + 0x3000, whole - 2],
        [USER + 0x1000, USER + 0x3000, u64::MAX],
        [GUEST + 0x1000, GUEST + 0x3000, GUEST + 0x2000],
    ] {
        let mut front_end = FrontEnd::ready(&device);
        let before = front_end.read(0, MEMORY_BYTES as usize);
        let parts = [&[0], &parts[..], &[0]].concat();
        let parts: Vec<u8> = parts.into_iter().flat_map(u64::to_le_bytes).collect();
        assert!(front_end.is_done(SET_VRING_ADDR, &parts, &[]));
        front_end.kick(0);
        front_end.settle();
        assert!(front_end.read(0, MEMORY_BYTES as usize) == before);
        drop(front_end);
        FrontEnd::ready(&device).works();
        let reported = device.reported();
        assert!(reported.len() == 1 && reported[0].contains("ring 0 is stopped"), "{reported:?}");
    }
}

/// A driver that has its ring broken for ever does not fill a log.
#[test]
fn reports_are_bounded() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    for _ in 0..50 {
        front_end.offer(0, u16::MAX);
        front_end.kick(0);
        front_end.ask(GET_VRING_BASE, &[0; 8]);
        // The ring is looked at when it starts.
        front_end.start_at(0, u32::from(front_end.available[0].wrapping_sub(1)));
        front_end.settle();
        front_end.ask(GET_VRING_BASE, &[0; 8]);
        front_end.start(0);
    }
    assert_eq!(device.reported().len(), 16);
}

/// A blocking event that is full, as an interrupt. The device goes on, and does not wait for its reader.
#[test]
fn an_interrupt_that_blocks() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let full = u64::MAX - 1;
    rustix::io::write(&front_end.calls[0], &full.to_ne_bytes()).unwrap();
    rustix::fs::fcntl_setfl(&front_end.calls[0], OFlags::empty()).unwrap();
    for _ in 0..3 {
        let status = front_end.buffer(&[0xee]);
        front_end.put(0, 0, &[], &[status], true);
        front_end.kick(0);
        front_end.settle();
    }
    let mut count = [0; 8];
    rustix::io::read(&front_end.calls[0], &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), full);
    // One more, of which the event tells again.
    let status = front_end.buffer(&[0xee]);
    front_end.put(0, 0, &[], &[status], true);
    front_end.kick(0);
    assert_eq!(front_end.wait(0, 4).len(), 4);
    front_end.works();
}

/// Descriptors, tables and indexes that another thread changes all the time. Its buffers are the only ones that change.
#[test]
fn descriptors_that_change_meanwhile() {
    let device = Device::start(Limits::default());
    for round in 0..8_u32 {
        let mut front_end = FrontEnd::ready(&device);
        let session = front_end.open(&[1; 16], false) as u64;
        let request = front_end.buffer(&cipher(false, session, 32));
        let (iv, source) = (front_end.buffer(&[1; 16]), front_end.buffer(&[2; 32]));
        let buffers = [front_end.buffer(&[0; 33]), front_end.buffer(&[0; 33])];
        for head in 0..SIZE {
            let is_indirect = round % 2 == 0;
            if is_indirect || head == 0 {
                front_end.put(0, head, &[request, iv, source], &buffers[..1], is_indirect);
            }
        }
        let before = front_end.others(&buffers);
        let (memory, over) = (rustix::io::dup(&front_end.memory).unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let places = match round % 2 {
                    0 => [TABLES_AT + 3 * 16, TABLES_AT + 0x1000 + 3 * 16],
                    _ => [descriptors_at(0) + 3 * 16; 2],
                };
                let changed: [(u64, u32, u16); 4] = [
                    (buffers[1].0, 33, WRITE),
                    (buffers[0].0, if round < 4 { 32 } else { u32::MAX }, WRITE),
                    (if round < 6 { buffers[0].0 } else { u64::MAX - 3 }, 33, WRITE),
                    (buffers[0].0, 33, WRITE),
                ];
                while !over.load(Ordering::Relaxed) {
                    for (address, bytes, flags) in changed {
                        let mut descriptor = address.to_le_bytes().to_vec();
                        descriptor.extend(bytes.to_le_bytes());
                        descriptor.extend(flags.to_le_bytes());
                        for place in places {
                            rustix::io::pwrite(&memory, &descriptor, place).unwrap();
                        }
                    }
                }
            });
            for _ in 0..40 {
                front_end.kick(0);
                // The first head again, until the ring is stopped.
                front_end.offer(0, 0);
                front_end.settle();
            }
            over.store(true, Ordering::Relaxed);
        });
        let mut after = front_end.others(&buffers);
        // The driver's own changes.
        for range in [0x1000..0x3000, 0x1_0000..0x2_0000] {
            after[range.clone()].copy_from_slice(&before[range]);
        }
        assert!(after == before, "memory has changed");
        drop(front_end);
        FrontEnd::ready(&device).works();
    }
}

const CHILD: &str = "KEYWAY_TEST_DEVICE_SOCKET";

/// The device in a process of its own, for the next test. By itself it does nothing.
#[test]
fn a_device_for_a_memory_that_is_cut() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    println!("listening");
    let engine = keyway_drivers::engine();
    let end = eventfd();
    let served =
        keyway_vhost_user::serve(listener.into(), end.as_fd(), &engine, Limits::default(), &|_| {});
    panic!("{served:?}");
}

/// A front end that cuts its guest's memory ends the process of its own device, and another device does not notice.
#[test]
fn a_memory_that_is_cut_costs_its_own_process() {
    let other = Device::start(Limits::default());
    let mut beside = FrontEnd::ready(&other);
    beside.works();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::a_device_for_a_memory_that_is_cut", "--nocapture"])
        .env(CHILD, &path)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("listening")));
    let mut front_end = FrontEnd::connect(&path);
    front_end.begin();
    front_end.set_memory();
    front_end.start(0);
    front_end.works();
    rustix::fs::ftruncate(&front_end.memory, 0).unwrap();
    front_end.kick(0);
    let bus_error = 7;
    assert_eq!(child.wait().unwrap().signal(), Some(bus_error));
    beside.works();
}

static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::start(Limits::default()));

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Tables of any descriptors, many of which are nearly right.
    #[test]
    fn rings_of_any_bytes(
        descriptors in proptest::collection::vec(
            (
                prop_oneof![
                    4 => Just(BUFFER),
                    2 => Just(GUEST + TABLES_AT),
                    1 => Just(GUEST + MEMORY_BYTES - 8),
                    1 => any::<u64>(),
                ],
                prop_oneof![4 => 0_u32..200, 1 => Just(64_u32), 1 => any::<u32>()],
                prop_oneof![4 => 0_u16..4, 1 => Just(INDIRECT), 1 => any::<u16>()],
                prop_oneof![8 => 0..SIZE, 1 => any::<u16>()],
            ),
            usize::from(SIZE),
        ),
        heads in proptest::collection::vec(prop_oneof![8 => 0..SIZE, 1 => any::<u16>()], 1..16),
        request in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(4), any::<u8>()], 200),
    ) {
        let mut front_end = FrontEnd::ready(&DEVICE);
        front_end.open(&[1; 16], false);
        front_end.write(BUFFERS_AT, &request);
        for place in [descriptors_at(0), TABLES_AT] {
            front_end.describe(place, &descriptors);
        }
        heads.iter().for_each(|head| front_end.offer(0, *head));
        front_end.kick(0);
        front_end.settle();
        let given_back = front_end.word(used_at(0) + 2);
        prop_assert!(usize::from(given_back) <= heads.len());
        drop(front_end);
        FrontEnd::ready(&DEVICE).works();
    }
}
