//! The gateway's way of a packet without what it does to it: from the device into plain datagrams of UDP, and back. It
//! reads and writes with the gateway's own crate, in batches and threads as the gateway has them, so that it says how much
//! of the processor the system takes.

use crate::ring::common::text;
use keyway_packet_io::{Socket, SocketOptions, TunOptions, TunQueue, open};
use rustix::event::{PollFd, PollFlags, poll};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;

use super::network::MTU;

/// What it is told.
#[derive(clap::Args)]
pub struct Arguments {
    /// The TUN device, which it makes
    device: String,
    /// Its own address, with a port
    own: SocketAddr,
    /// The other's address, with a port
    other: SocketAddr,
}

/// Packets that are taken from the device before they are sent: the gateway's.
const BATCH: usize = 64;

/// Forwards until it is killed.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { device, own, other } = arguments;
    let mtu = u32::try_from(MTU).map_err(text)?;
    let options = TunOptions { name: device.clone(), queues: 1, mtu, addresses: Vec::new() };
    let (_tun, mut queues) = open(&options).map_err(text)?;
    let queue = queues.pop().ok_or("a device has a queue")?;
    let socket = Socket::udp(&SocketOptions::new(*own)).map_err(text)?;
    let (device, network) = (queue.try_clone().map_err(text)?, socket.try_clone().map_err(text)?);
    let other = *other;
    let outward = thread::spawn(move || outward(queue, socket, other));
    thread::spawn(move || inward(network, device));
    println!("ready");
    outward.join().map_err(|_| "a thread panicked")?
}

fn outward(mut device: TunQueue, mut network: Socket, other: SocketAddr) -> Result<(), String> {
    loop {
        let mut packets = 0;
        while packets < BATCH {
            match device.receive(|packet| network.push(other, 0, &[packet])).map_err(text)? {
                0 => break,
                count => packets += count,
            }
        }
        network.flush();
        if packets == 0 {
            wait(&device)?;
        }
    }
}

fn inward(mut network: Socket, mut device: TunQueue) -> Result<(), String> {
    loop {
        let packets = network.receive(|datagram, _| device.push(datagram)).map_err(text)?;
        device.flush();
        if packets == 0 {
            wait(&network)?;
        }
    }
}

/// Until there is something to read.
fn wait(file: &impl AsFd) -> Result<(), String> {
    poll(&mut [PollFd::new(file, PollFlags::IN)], None).map(drop).map_err(text)
}
