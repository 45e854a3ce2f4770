//! Where the daemon listens, and the ways there.

use crate::kept::{Kept, above_standard};
use keyway_ring::{DEFAULT_SOCKET, Route, Socket};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use once_cell::race::OnceBox;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::thread::{CapabilitySet, SecureComputingMode, capabilities, secure_computing_mode};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;

/// The environment variable that names the daemon's socket.
pub const SOCKET_VARIABLE: &str = "KEYWAY_SOCKET";

/// A variable of the environment; none in a program that has got rights from its file, whose environment is that of a
/// user who has not.
pub fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty() && !keyway_fork::is_privileged())
}

/// The socket that a configuration names, else [`SOCKET_VARIABLE`], else [`DEFAULT_SOCKET`].
pub fn socket_path(configured: Option<&Path>) -> PathBuf {
    match configured {
        Some(path) => path.to_owned(),
        None => environment(SOCKET_VARIABLE).map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from),
    }
}

/// The socket's path, and its folder for a process that finds no path to it later.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    folder: OnceBox<Folder>,
}

/// The socket's folder as a mount of its own, which is nowhere: no path leads from it to the folder above. A process
/// that is locked into another root finds the socket there, and nothing else.
#[derive(Debug)]
struct Folder(Kept<OwnedFd>);

impl Place {
    pub fn new(path: PathBuf) -> Place {
        Place { path, folder: OnceBox::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the socket's folder, so that a process that has changed its root still gets there. Only a process that may
    /// mount keeps it, which one that changes its root as a rule may.
    pub fn prepare(&self) {
        if self.folder.get().is_none()
            && let Some(folder) = self.path.parent().and_then(Folder::open)
        {
            // Another thread may have been faster.
            let _ = self.folder.set(Box::new(folder));
        }
    }

    /// Connects, as the user that the process is now.
    pub fn connect(&self) -> io::Result<Route> {
        let direct = Route::connect(&self.path);
        match (&direct, self.folder.get(), self.path.file_name()) {
            (Err(why), Some(folder), Some(name)) if is_elsewhere(why) => {
                folder.connect(name).map(Route::Socket).or(direct)
            }
            _ => direct,
        }
    }
}

/// Whether there may be another way to the socket than its path.
fn is_elsewhere(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

impl Folder {
    fn open(path: &Path) -> Option<Folder> {
        // A filter of system calls may end the process for this one.
        let is_free = matches!(secure_computing_mode(), Ok(SecureComputingMode::Disabled));
        let may =
            capabilities(None).is_ok_and(|it| it.effective.contains(CapabilitySet::SYS_ADMIN));
        if !is_free || !may {
            return None;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let file = above_standard(open_tree(CWD, path, flags).ok()?).ok()?;
        Kept::new(file).ok().map(Folder)
    }

    /// From a working directory of its own: there is no `connectat`. The process is for the daemon the user that it
    /// is now.
    fn connect(&self, name: &OsStr) -> io::Result<Socket> {
        let file = self.0.get().ok_or(io::ErrorKind::NotFound)?;
        without_signals(|| match connect_on_a_thread(file, name) {
            // haproxy lets its processes make no threads (RLIMIT_NPROC).
            None => connect_here(file, name),
            Some(connected) => connected,
        })
    }
}

/// From a thread of its own, so that the process' threads keep their directory; `None` if it cannot have one.
fn connect_on_a_thread(folder: &OwnedFd, name: &OsStr) -> Option<io::Result<Socket>> {
    let from_there = || {
        unshare(CloneFlags::CLONE_FS)?;
        rustix::process::fchdir(folder)?;
        Socket::connect(Path::new(name))
    };
    thread::scope(|scope| {
        let spawned = thread::Builder::new().spawn_scoped(scope, from_there).ok()?;
        Some(spawned.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    })
}

/// From this thread, which afterwards is where it was; from then on it has a directory of its own.
fn connect_here(folder: &OwnedFd, name: &OsStr) -> io::Result<Socket> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let here = rustix::fs::open(".", flags, Mode::empty())?;
    unshare(CloneFlags::CLONE_FS)?;
    rustix::process::fchdir(folder)?;
    let connected = Socket::connect(Path::new(name));
    rustix::process::fchdir(&here)?;
    connected
}

/// Does something whose threads get no signals: a program's handlers expect its own threads.
fn without_signals<T>(action: impl FnOnce() -> T) -> T {
    let mut before = SigSet::empty();
    let all = SigSet::all();
    let blocked = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before));
    let done = action();
    if blocked.is_ok() {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_comes_before_the_environment() {
        assert_eq!(socket_path(Some(Path::new("/a/b"))), Path::new("/a/b"));
    }

    #[test]
    fn a_socket_that_is_gone_from_its_path_is_found_in_its_folder() {
        let place = tempfile::tempdir().unwrap();
        let (folder, moved) = (place.path().join("folder"), place.path().join("moved"));
        std::fs::create_dir(&folder).unwrap();
        let listener = rustix::net::socket(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            None,
        )
        .unwrap();
        let path = folder.join("socket");
        let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 8).unwrap();
        let there = Place::new(path);
        assert!(there.connect().is_ok());
        there.prepare();
        if there.folder.get().is_none() {
            eprintln!("left out: only root mounts");
            return;
        }
        std::fs::rename(&folder, &moved).unwrap();
        let here = std::env::current_dir().unwrap();
        assert!(there.connect().is_ok());
        let folder = there.folder.get().unwrap().0.get().unwrap();
        assert!(connect_here(folder, OsStr::new("socket")).is_ok());
        // No way out.
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let above = rustix::fs::openat(folder, "../../..", flags, Mode::empty()).unwrap();
        let inode = |file: &OwnedFd| rustix::fs::fstat(file).unwrap().st_ino;
        assert_eq!(inode(&above), inode(folder));
        assert_eq!(std::env::current_dir().unwrap(), here);
        std::fs::remove_dir_all(&moved).unwrap();
        assert_eq!(there.connect().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
