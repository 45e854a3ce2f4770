//! A benchmark for each claim, with its peer in the same run.
//!
//! Every benchmark alternates between Keyway and its peers, takes medians, prints a table with the
//! ratios and, with `--json FILE`, writes them as a list of claims (see [`report`]). The machine is
//! assumed to be shared: what is compared is processor time an operation, or the best of many short
//! runs by turns. Nothing here is linked into the product.
#![deny(unsafe_code)]
// A task is boxed so that it goes through queues without being copied.
#![allow(clippy::vec_box)]

mod backups;
mod binds;
mod cluster;
mod constant_time;
mod directory;
mod echo;
mod engine;
mod esp;
mod gauge;
mod ldap;
mod packet;
mod plot;
mod process;
mod provider;
mod quic;
mod report;
mod ring;
mod skeleton;
mod slapd;
mod tools;
mod vm;
mod writes;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "keyway-bench", about = "Benchmarks of Keyway, each beside its peer.")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// The engine: calls, queues, batches, balancing, overload, beside the libraries and DPDK
    Engine(engine::Arguments),
    /// QUIC's packet protection and AES-GCM, beside the libraries and the processor's bound
    Packet(packet::Arguments),
    /// Whether the time of packet protection depends on secrets, by statistics
    ConstantTime(constant_time::Arguments),
    /// The cost of packet protection in a real QUIC, beside quinn's default cryptography
    Quic(quic::Arguments),
    /// The directory as it stands: server time a search, bind and add, beside slapd and a TCP echo
    Skeleton(skeleton::Arguments),
    /// The directory with 250,000 people: reads, binds, adds, exports, TLS, imports, beside slapd
    /// and a TCP echo
    Directory(directory::Arguments),
    /// Binds with Argon2id, the first ones and those that the server remembers, beside {SSHA512}
    Binds(binds::Arguments),
    /// nginx with its keys in cryptod, by OpenSSL's provider, beside nginx with keys in files
    Provider(provider::Arguments),
    /// Rings and cryptod: requests that are done in another process, beside those in this one
    Ring(ring::Arguments),
    /// The tools: `keyway load` beside UnboundID's searchrate, `keyway data` beside OpenDJ's makeldif
    Tools(tools::Arguments),
    /// Rings from inside a virtual machine, beside those between processes
    ///
    /// 1 needs /dev/kvm and two processors: a guest without a system runs the client's own code in ring 3. 2 and 4
    /// boot Debian's kernel in QEMU without KVM. 3 needs neither.
    Vm(vm::Arguments),
    /// The gateway: packets through ESP from host to host, beside libipsec, boringtun and wireguard-go
    ///
    /// Needs root, for network namespaces and TUN devices of its own, and two processors.
    Esp(esp::Arguments),
    /// Adds with the feed of changes, beside a server without it
    Writes(writes::Arguments),
    /// Searches beside backups and verifies, and how much a second backup stores
    Backups(backups::Arguments),
    /// Several servers: searches of three beside one, changes through etcd beside slapd, the lag of a follower
    Cluster(cluster::Arguments),
    /// The echo that others are compared with (started by the benchmarks themselves)
    #[command(hide = true)]
    EchoServer,
    /// The tunnel without cryptography that the gateway is compared with (likewise)
    #[command(hide = true)]
    EspForward(esp::forward::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().benchmark {
        Benchmark::Engine(arguments) => engine::run(&arguments),
        Benchmark::Packet(arguments) => packet::run(&arguments),
        Benchmark::ConstantTime(arguments) => constant_time::run(&arguments),
        Benchmark::Quic(arguments) => quic::run(&arguments),
        Benchmark::Skeleton(arguments) => skeleton::run(&arguments),
        Benchmark::Directory(arguments) => directory::run(&arguments),
        Benchmark::Binds(arguments) => binds::run(&arguments),
        Benchmark::Provider(arguments) => provider::run(&arguments),
        Benchmark::Ring(arguments) => ring::run(&arguments),
        Benchmark::Tools(arguments) => tools::run(&arguments),
        Benchmark::Vm(arguments) => vm::run(&arguments),
        Benchmark::Esp(arguments) => esp::run(&arguments),
        Benchmark::Writes(arguments) => writes::run(&arguments),
        Benchmark::Backups(arguments) => backups::run(&arguments),
        Benchmark::Cluster(arguments) => cluster::run(&arguments),
        Benchmark::EchoServer => echo::serve(),
        Benchmark::EspForward(arguments) => esp::forward::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("keyway-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
