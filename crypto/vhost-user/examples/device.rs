//! The device at a socket, with an engine of this process: `cargo run --example device -- SOCKET`. It serves one virtual
//! machine after another until it is killed. The guide has QEMU's flags.

use keyway_vhost_user::{Limits, serve};
use rustix::event::EventfdFlags;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

fn main() -> std::io::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: device SOCKET");
        std::process::exit(2);
    };
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let end = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
    let report = |line: &str| eprintln!("{line}");
    serve(listener.into(), end.as_fd(), &keyway_drivers::engine(), Limits::default(), &report)
}
