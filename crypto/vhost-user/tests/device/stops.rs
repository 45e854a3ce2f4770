//! Rings that stop and go on elsewhere, and rings that have nothing to do.

use crate::front_end::message::*;
use crate::front_end::*;
use keyway_vhost_user::Limits;
use std::os::fd::AsFd;

/// Whatever was taken when the ring stopped has been given back, the rest has not been touched, and nothing is written
/// afterwards. The next device goes on there, and each request is answered once.
#[test]
fn a_ring_stops_exactly_and_goes_on_at_another_device() {
    for count in [0, 1, 5, SIZE] {
        let devices = [Device::start(Limits::default()), Device::start(Limits::default())];
        let mut front_end = FrontEnd::ready(&devices[0]);
        let session = front_end.open(&[9; 32], false) as u64;
        let bytes = 4_096;
        let request = front_end.buffer(&cipher(false, session, bytes));
        let iv = front_end.buffer(&[1; 16]);
        let source = front_end.buffer(&vec![2; bytes as usize]);
        let results: Vec<_> =
            (0..SIZE).map(|_| front_end.buffer(&vec![0xee; bytes as usize + 1])).collect();
        for head in 0..count {
            let result = results[usize::from(head)];
            front_end.put(0, head, &[request, iv, source], &[result], true);
        }
        front_end.kick(0);
        let answer = front_end.ask(GET_VRING_BASE, &[0; 8]);
        assert_eq!(answer[..4], [0; 4]);
        let base = u32::from_le_bytes(answer[4..].try_into().unwrap());
        assert_eq!(base, u32::from(front_end.word(used_at(0) + 2)));
        assert!(base <= count.into());
        let status_of = |front_end: &FrontEnd, head: usize| {
            let result = front_end.read(results[head].0 - GUEST, bytes as usize + 1);
            (result[0], result[bytes as usize])
        };
        for head in 0..usize::from(SIZE) {
            let is_done = status_of(&front_end, head) != (0xee, 0xee);
            assert_eq!(is_done, head < base as usize, "{head} of {base}");
        }
        let before = front_end.read(0, MEMORY_BYTES as usize);
        (0..10).for_each(|_| front_end.kick(0));
        front_end.settle();
        assert!(front_end.read(0, MEMORY_BYTES as usize) == before, "it is written to");

        // The same guest, with another device.
        let FrontEnd { memory, available, used, .. } = front_end;
        let mut next = devices[1].connect();
        (next.memory, next.available, next.used) = (memory, available, used);
        next.begin();
        next.set_memory();
        assert_eq!(next.open(&[9; 32], false) as u64, session, "numbers count anew");
        next.start_at(0, base);
        let heads: Vec<_> = (0..count).map(|head| (u32::from(head), bytes + 1)).collect();
        assert_eq!(next.wait(0, count), heads);
        let statuses = (0..usize::from(count)).map(|head| status_of(&next, head).1);
        assert!(statuses.into_iter().all(|status| status == 0));
    }
}

/// A guest that has started again has its indexes at zero. It has closed no session, and may open as many again. One that
/// was paused has its sessions still.
#[test]
fn a_guest_that_starts_again() {
    let device = Device::start(Limits { sessions: 6, ..Limits::default() });
    let mut front_end = FrontEnd::ready(&device);
    for _ in 0..3 {
        (0..4).for_each(|_| front_end.works());
        let session = front_end.open(&[1; 16], false) as u64;
        let answer = front_end.ask(GET_VRING_BASE, &[0; 8]);
        assert_eq!(answer[4..], [4, 0, 0, 0]);
        front_end.start(0);
        let done = front_end.request(0, &[&cipher(false, session, 16), &[0; 16], &[0; 16]], 16);
        assert_eq!(done.1, 0);
        assert!(front_end.open(&[1; 16], false) > 0 && front_end.open(&[1; 16], false) == -1);
        let answer = front_end.ask(GET_VRING_BASE, &[0; 8]);
        assert_eq!(answer[4..], [5, 0, 0, 0]);
        front_end.write(0, &[0; 0x8000]);
        (front_end.available, front_end.used) = ([0; 2], [0; 2]);
        front_end.start(0);
    }
    front_end.works();
}

/// Notifications of nothing are looked at, at most once each. Without any there is nothing to look at.
#[test]
fn idle_costs_nothing() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    front_end.works();
    front_end.settle();
    let (slept, before) = (device.sleeps(), front_end.read(0, MEMORY_BYTES as usize));
    let rounds = 100;
    for _ in 0..rounds {
        front_end.kick(0);
        front_end.ask_number(GET_FEATURES);
    }
    let slept = device.sleeps() - slept;
    assert!(slept <= 2 * rounds + 10, "{slept} sleeps");
    assert!(front_end.read(0, MEMORY_BYTES as usize) == before);
}

/// A driver that wants no interrupt gets none, and one that asks by an event's index, which the device does not look
/// at, gets one for each batch.
#[test]
fn interrupts_that_are_not_wanted() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let put = |front_end: &mut FrontEnd| {
        let status = front_end.buffer(&[0xee]);
        front_end.put(0, 0, &[], &[status], true);
        front_end.kick(0);
        front_end.settle();
    };
    let is_rung = |front_end: &FrontEnd| {
        let call = front_end.calls[0].as_fd();
        rustix::fs::fcntl_setfl(call, rustix::fs::OFlags::NONBLOCK).unwrap();
        rustix::io::read(call, &mut [0; 8]).is_ok()
    };
    front_end.write(available_at(0), &1_u16.to_le_bytes());
    put(&mut front_end);
    assert_eq!(front_end.word(used_at(0) + 2), 1);
    assert!(!is_rung(&front_end));
    front_end.write(available_at(0), &0_u16.to_le_bytes());
    front_end.write(available_at(0) + 4 + 2 * u64::from(SIZE), &9_u16.to_le_bytes());
    put(&mut front_end);
    assert!(is_rung(&front_end));
}
