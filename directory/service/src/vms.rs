//! `--vm`: virtual machines whose processes use the daemon.

use keyway_daemon::keys::is_vm_name;
use keyway_daemon::{MachineOptions, Machines, is_listened_for_machine, listen_for_machine};
use keyway_host::failure::Failure;
use keyway_host::output;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// A virtual machine, and where its hypervisor connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
}

/// Reads NAME=SOCKET.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn vm(text: &str) -> Result<Vm, String> {
    match text.split_once('=') {
        Some((name, socket)) if is_vm_name(name) && !socket.is_empty() => {
            Ok(Vm { name: name.to_owned(), socket: socket.into() })
        }
        _ => Err(
            "it is not NAME=SOCKET, with a name like that of a key, of 64 letters at most, like web=/run/vm/web.socket"
                .to_owned(),
        ),
    }
}

/// Listens for all of them. Where another daemon listens that hands over, that is left to it.
///
/// # Errors
/// If two have a name or a socket in common, and the system's.
pub fn listen(vms: &[Vm], is_taken_over: bool) -> Result<Machines, Failure> {
    let mut all: Vec<MachineOptions> = Vec::new();
    for (at, Vm { name, socket }) in vms.iter().enumerate() {
        if vms[..at].iter().any(|before| before.name == *name || before.socket == *socket) {
            return Err(Failure::usage(format!(
                "--vm {name}: its name or its socket is another virtual machine's too"
            )));
        }
        if is_taken_over && is_listened_for_machine(socket) {
            all.push(MachineOptions { name: name.clone(), listener: None });
            continue;
        }
        let listener = match listen_for_machine(socket) {
            Ok(listener) => Some(Arc::new(listener)),
            Err(why) if why.kind() == ErrorKind::AddrInUse => {
                return Err(Failure::new(format!(
                    "cannot listen at {}: {why}; stop that, or name another place with --vm {name}=SOCKET",
                    socket.display()
                )));
            }
            Err(why) => return Err(Failure::system("listen at", socket, &why)),
        };
        all.push(MachineOptions { name: name.clone(), listener });
    }
    let report = Arc::new(|text: &str| output::note(format_args!("{text}")));
    let sockets = vms.iter().map(|vm| vm.socket.clone()).collect();
    Ok(Machines { all, devices: Vec::new(), sockets, report })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_name_and_a_socket() {
        let read = |text| vm(text).map(|it| (it.name, it.socket));
        assert_eq!(read("web=/a/b=c"), Ok(("web".into(), "/a/b=c".into())));
        for wrong in ["", "web", "web=", "=/a", "a b=/a", "a/b=/a", "-a=/b"] {
            assert!(vm(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_machines_have_nothing_in_common() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let one = |name: &str, socket: &str| Vm { name: name.into(), socket: place(socket) };
        assert!(listen(&[one("a", "1"), one("a", "2")], false).is_err());
        assert!(listen(&[one("a", "1"), one("b", "1")], false).is_err());
        let both = [one("a", "3"), one("b", "4")];
        let listening = listen(&both, false).unwrap();
        assert!(listening.all.iter().all(|it| it.listener.is_some()));
        // As it is told of another process that is there.
        assert!(listen(&both, false).is_err());
        assert!(listen(&both, true).unwrap().all.iter().all(|it| it.listener.is_none()));
        drop(listening);
        assert!(listen(&both, false).is_ok());
    }
}
