//! Packets of a TUN device as plain datagrams of UDP, and back: a tunnel without cryptography, which says what a tunnel
//! with it can reach at most. Two threads a queue, one a direction. Ends on SIGTERM.
//!
//! `forward --device NAME --address A/B --listen ADDR --peer ADDR [--queues N] [--mtu N]`

use keyway_packet_io::{Socket, SocketOptions, TunOptions, TunQueue, open};
use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::process::exit;
use std::thread;

const USAGE: &str =
    "usage: forward --device NAME --address A/B --listen ADDR --peer ADDR [--queues N] [--mtu N]";
/// Packets that are taken from the device before they are sent.
const BATCH: usize = 64;

fn main() {
    if let Err(why) = run() {
        eprintln!("forward: {why}");
        exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut options =
        TunOptions { name: String::new(), queues: 1, mtu: 1_400, addresses: Vec::new() };
    let (mut listen, mut peer) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match flag.as_str() {
            "--device" => options.name = value,
            "--address" => options.addresses.push(prefix(&value)?),
            "--listen" => listen = Some(value.parse::<SocketAddr>()?),
            "--peer" => peer = Some(value.parse::<SocketAddr>()?),
            "--queues" => options.queues = value.parse()?,
            "--mtu" => options.mtu = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    let (listen, peer) = (listen.ok_or(USAGE)?, peer.ok_or(USAGE)?);
    // The threads have it blocked too: it waits for this one.
    let mut end = SigSet::empty();
    end.add(Signal::SIGTERM);
    end.thread_block()?;
    let (_tun, queues) = open(&options)?;
    let socket = Socket::udp(&SocketOptions::new(listen))?;
    for queue in queues {
        let (to_device, from_network) = (queue.try_clone()?, socket.try_clone()?);
        let to_network = socket.try_clone()?;
        thread::spawn(move || stop(outward(queue, to_network, peer)));
        thread::spawn(move || stop(inward(from_network, to_device)));
    }
    println!("ready");
    end.wait()?;
    Ok(())
}

fn prefix(text: &str) -> Result<(IpAddr, u8), Box<dyn Error>> {
    let (address, length) =
        text.split_once('/').ok_or("an address has the length of a prefix: 10.0.0.1/24")?;
    Ok((address.parse()?, length.parse()?))
}

fn stop(result: Result<(), Box<dyn Error>>) {
    if let Err(why) = result {
        eprintln!("forward: {why}");
        exit(1);
    }
}

fn outward(
    mut device: TunQueue,
    mut network: Socket,
    peer: SocketAddr,
) -> Result<(), Box<dyn Error>> {
    loop {
        let mut packets = 0;
        while packets < BATCH {
            match device.receive(|packet| network.push(peer, 0, &[packet]))? {
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

fn inward(mut network: Socket, mut device: TunQueue) -> Result<(), Box<dyn Error>> {
    loop {
        let packets = network.receive(|datagram, _| device.push(datagram))?;
        device.flush();
        if packets == 0 {
            wait(&network)?;
        }
    }
}

/// Until there is something to read.
fn wait(file: &impl AsFd) -> Result<(), Box<dyn Error>> {
    let mut polled = [PollFd::new(file, PollFlags::IN)];
    match rustix::event::poll(&mut polled, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}
