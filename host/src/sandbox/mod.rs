//! The rights that a process gives up before it serves clients: the file system but for its own folders, ports
//! and signals (Landlock), and system calls that it never makes (seccomp).
//!
//! The rights that cryptod, ldapd and the ESP gateway keep are listed here, and nowhere else.

mod calls;

use crate::failure::Failure;
use crate::output;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

/// To look at files and folders, not to run them.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
/// To do with plain files, folders and sockets below a folder what one likes, from one folder into another, too.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | MakeSock | RemoveFile | RemoveDir | Refer
});
/// To put a socket into a folder, and to take it away.
const SOCKET: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeSock | RemoveFile});
const REMOVE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{RemoveFile});

/// The folders that say how many processors there are, what a process has, and whose a client is.
const OF_THE_SYSTEM: [&str; 3] = ["/proc", "/sys/devices/system", "/sys/fs/cgroup"];
/// Who is who on this machine and where, for the C library, and the libraries that it loads for that.
const NAMES: [&str; 12] = [
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/lib",
    "/usr/lib",
];

/// More libraries, which PKCS#11 modules are linked with.
const LIBRARIES: [&str; 3] = ["/lib64", "/usr/lib64", "/usr/local/lib"];

/// The rights that a process keeps. It gives up the rest from the thread that says so, and those that this will start.
pub struct Keeps {
    /// Its rights below files and folders; `None` for everything everywhere that its user may.
    files: Option<Vec<(PathBuf, BitFlags<AccessFs>)>>,
    /// Whether it may connect to others over a network. It listens to no more ports in any case.
    network: bool,
    calls: &'static [&'static [i64]],
}

/// For cryptod: its own folder, and the right to remove its sockets. It cannot see then which programs its
/// clients run; that is for its witness. With tokens also what their modules need: these places, libraries, and the
/// names of users, which a module may look for.
pub fn of_cryptod<'a>(
    folder: &Path,
    sockets: impl Iterator<Item = &'a Path>,
    tokens: Option<Places>,
) -> Keeps {
    let system = OF_THE_SYSTEM.map(|path| (path.into(), READ));
    let beside =
        sockets.filter_map(Path::parent).map(|folder| match folder.as_os_str().is_empty() {
            true => (".".into(), REMOVE),
            false => (folder.into(), REMOVE),
        });
    let places = system.into_iter().chain([(folder.into(), WRITE)]).chain(beside);
    let Some(Places { write, read, .. }) = tokens else {
        let calls = &[calls::COMMON, calls::OLD];
        return Keeps { files: Some(places.collect()), network: false, calls };
    };
    let names = NAMES.iter().chain(&LIBRARIES).map(|it| (it.into(), READ));
    let own = with(write, WRITE).chain(with(read, READ));
    let files = Some(places.chain(names).chain(own).collect());
    let calls = &[calls::COMMON, calls::OLD, calls::OF_TOKENS, calls::OLD_OF_TOKENS];
    Keeps { files, network: false, calls }
}

/// For the vhost-user device of a virtual machine: no files at all.
pub fn of_device() -> Keeps {
    let calls = &[calls::COMMON, calls::OLD, calls::OF_DEVICE];
    Keeps { files: Some(Vec::new()), network: false, calls }
}

/// For cryptod's witness: to look at files and processes. Closing files off would keep the system from
/// showing it processes; it makes no call that changes anything.
pub fn of_witness() -> Keeps {
    Keeps { files: None, network: false, calls: &[calls::OF_WITNESS, calls::OLD_OF_WITNESS] }
}

fn with(
    paths: Vec<PathBuf>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = (PathBuf, BitFlags<AccessFs>)> {
    paths.into_iter().map(move |path| (path, access))
}

/// Files and folders that a process keeps.
#[derive(Debug, Default)]
pub struct Places {
    /// To do with what is there or below what one likes.
    pub write: Vec<PathBuf>,
    /// To read what is there or below.
    pub read: Vec<PathBuf>,
    /// Folders to put a socket into, and to take it away.
    pub sockets: Vec<PathBuf>,
}

/// For ldapd: these places, names of this machine and network, and connections.
pub fn of_ldapd(places: Places) -> Keeps {
    let system = OF_THE_SYSTEM.iter().chain(&NAMES).map(|it| (it.into(), READ));
    let own = with(places.write, WRITE).chain(with(places.read, READ));
    let files = system.chain(own).chain(with(places.sockets, SOCKET)).collect();
    let calls = &[calls::COMMON, calls::OLD, calls::OF_LDAPD, calls::OLD_OF_LDAPD];
    Keeps { files: Some(files), network: true, calls }
}

/// For the ESP gateway: these places, and sockets.
pub fn of_esp(places: Places) -> Keeps {
    let system = OF_THE_SYSTEM.iter().map(|it| (it.into(), READ));
    let own = with(places.write, WRITE).chain(with(places.read, READ));
    let files = system.chain(own).chain(with(places.sockets, SOCKET)).collect();
    let calls = &[calls::COMMON, calls::OLD, calls::OF_ESP];
    Keeps { files: Some(files), network: true, calls }
}

impl Keeps {
    /// Gives up all else.
    ///
    /// # Errors
    /// If the system has these means and refuses them. A system that lacks them is warned of.
    pub fn enter(&self) -> Result<(), Failure> {
        if let Some(places) = &self.files {
            close_files(places, self.network).map_err(|why| refused(&why))?;
        }
        close_calls(self).map_err(|why| refused(&why))
    }
}

fn refused(why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("the system refuses the sandbox ({why}); --no-sandbox starts without one"))
}

fn close_files(
    places: &[(PathBuf, BitFlags<AccessFs>)],
    network: bool,
) -> Result<(), landlock::RulesetError> {
    let ports = match network {
        true => AccessNet::BindTcp.into(),
        false => AccessNet::from_all(ABI::V4),
    };
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V4))?;
    let ruleset = ruleset.handle_access(ports)?.scope(Scope::Signal)?;
    let mut ruleset = ruleset.create()?;
    for (path, access) in places {
        // A path that does not exist cannot be reached.
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(place, *access))?;
        }
    }
    if ruleset.restrict_self()?.ruleset == RulesetStatus::NotEnforced {
        output::note("warning: this system has no Landlock, so the process may open files");
    }
    Ok(())
}

fn close_calls(keeps: &Keeps) -> Result<(), Box<dyn std::error::Error>> {
    let all = keeps.calls.iter().copied().flatten();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = all.map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets(keeps.network)?);
    if keeps.network {
        let ioctl = |request: &u64| SeccompRule::new(vec![is(1, *request)?]);
        rules.insert(libc::SYS_ioctl, calls::IOCTLS.iter().map(ioctl).collect::<Result<_, _>>()?);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)?;
    Ok(())
}

/// Sockets of this machine; of a network streams, datagrams (to ask for a name), and what tells this
/// machine's addresses.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut rules = vec![SeccompRule::new(vec![is(0, libc::AF_UNIX as u64)?])?];
    if network {
        rules.push(SeccompRule::new(vec![is(0, libc::AF_NETLINK as u64)?])?);
        for family in [libc::AF_INET, libc::AF_INET6] {
            for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
                let mask = SeccompCmpOp::MaskedEq(KIND_OF_SOCKET);
                let kind = SeccompCondition::new(1, SeccompCmpArgLen::Dword, mask, kind as u64)?;
                rules.push(SeccompRule::new(vec![is(0, family as u64)?, kind])?);
            }
        }
    }
    Ok(rules)
}

/// The bits of a socket's type that are no flags.
const KIND_OF_SOCKET: u64 = 0xf;

/// That an argument is this.
fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind;
    use std::net::TcpListener;
    use std::os::unix::net::UnixDatagram;

    /// On a thread of its own, which alone gives it all up.
    #[test]
    fn what_was_given_up_is_refused_and_the_rest_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (folder, beside) = (place.path().join("own"), place.path().join("beside"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&beside).unwrap();
        let socket = beside.join("socket");
        fs::write(&socket, "").unwrap();
        fs::write(beside.join("other"), "secret").unwrap();
        let given_up = move || {
            of_cryptod(&folder, Some(&*socket).into_iter(), None).enter().unwrap();
            assert_eq!(TcpListener::bind("127.0.0.1:0").unwrap_err().kind(), PERMISSION);
            assert!(UnixDatagram::unbound().is_ok());
            fs::write(folder.join("file"), "text").unwrap();
            fs::rename(folder.join("file"), folder.join("renamed")).unwrap();
            assert_eq!(fs::read_to_string(folder.join("renamed")).unwrap(), "text");
            assert!(fs::read_to_string("/proc/self/status").is_ok());
            fs::remove_file(&socket).unwrap();
            fs::read_to_string(beside.join("other")).map_err(|why| why.kind())
        };
        let read = std::thread::spawn(given_up).join().unwrap();
        if read.is_ok() {
            let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
            assert!(!ci, "nothing may be skipped in CI, but this system has no Landlock");
            eprintln!("skipped in part: this system has no Landlock");
            return;
        }
        assert_eq!(read, Err(PERMISSION));
    }

    const PERMISSION: ErrorKind = ErrorKind::PermissionDenied;
}
