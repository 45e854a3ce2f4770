//! The socket that clients connect to.

use keyway_ring::{refuse_files, with_address};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::{fs, io};

/// Listens at a path, for its own user and group (0660). A socket that no process listens at any
/// more is replaced.
///
/// # Errors
/// `AddrInUse` if a process listens there, or something else than a socket is there; else the
/// system's.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    listen_as(SocketType::SEQPACKET, path, false)
}

/// As [`listen`], for the hypervisor of a virtual machine.
///
/// # Errors
/// As [`listen`].
pub fn listen_for_machine(path: &Path) -> io::Result<OwnedFd> {
    listen_as(SocketType::STREAM, path, false)
}

/// As [`listen_for_machine`], for a device that takes the files of the machine's memory.
///
/// # Errors
/// As [`listen`].
pub fn listen_for_device(path: &Path) -> io::Result<OwnedFd> {
    listen_as(SocketType::STREAM, path, true)
}

fn listen_as(kind: SocketType, path: &Path, takes_files: bool) -> io::Result<OwnedFd> {
    let socket = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(AddressFamily::UNIX, kind, flags, None)
    };
    if let Ok(there) = fs::symlink_metadata(path) {
        let in_use = |why| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
        if !there.file_type().is_socket() {
            return in_use("something else than a socket is there");
        }
        let probe = socket()?;
        let tried = with_address(path, |address| connect(&probe, address));
        // A queue of those that wait to be let in is one that a daemon may be at.
        if !tried.is_err_and(|why| why.kind() == io::ErrorKind::ConnectionRefused) {
            return in_use("another daemon listens there");
        }
        fs::remove_file(path)?;
    }
    let socket = socket()?;
    if !takes_files {
        // Where the system cannot, the daemon takes none all the same.
        let _ = refuse_files(&socket);
    }
    with_address(path, |address| bind(&socket, address))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}
