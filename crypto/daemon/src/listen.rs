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
    if let Ok(there) = fs::symlink_metadata(path) {
        let in_use = |why| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
        if !there.file_type().is_socket() {
            return in_use("something else than a socket is there");
        }
        match look(path, kind) {
            There::Nothing => fs::remove_file(path)?,
            There::Socket => return in_use("another daemon listens there"),
            There::Unknown => {
                return in_use("a socket that this user may not connect to is there; remove it");
            }
        }
    }
    let socket = unconnected(kind)?;
    if !takes_files {
        // Where the system cannot, the daemon takes none all the same.
        let _ = refuse_files(&socket);
    }
    with_address(path, |address| bind(&socket, address))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

/// What a socket's file stands for.
enum There {
    /// No process has it bound any more.
    Nothing,
    /// A process has.
    Socket,
    Unknown,
}

/// Looks, without a connection: a socket of another kind is refused by what is bound there, and told of nothing else.
fn look(path: &Path, kind: SocketType) -> There {
    let other = match kind {
        SocketType::STREAM => SocketType::SEQPACKET,
        _ => SocketType::STREAM,
    };
    let tried =
        unconnected(other).and_then(|probe| with_address(path, |address| connect(&probe, address)));
    match tried {
        Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => There::Nothing,
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => There::Unknown,
        _ => There::Socket,
    }
}

/// Whether a process has a hypervisor's socket bound at a path.
pub fn is_listened_for_machine(path: &Path) -> bool {
    path.exists() && !matches!(look(path, SocketType::STREAM), There::Nothing)
}

fn unconnected(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, kind, flags, None)?)
}
