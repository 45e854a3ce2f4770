//! Admission: the processes that may be clients, and those that may look after the keys.

use crate::keys::Caller;
use crate::witness::Witness;
use keyway_ring::Peer;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Caller {
    /// The process at the other end of a connection, as it was when it connected.
    ///
    /// # Errors
    /// The system's.
    pub fn of(socket: impl AsFd, witness: &Witness) -> io::Result<Self> {
        let peer = Peer::of(socket)?;
        let executable = witness.program(&peer);
        let Peer { pid, uid, gid, groups, .. } = peer;
        Ok(Caller { uid, gid, groups, pid, executable, vm: None })
    }
}

/// The callers that are let in. A process of the daemon's own user or of root always is, and looks
/// after the keys.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Users, by number.
    pub users: Vec<u32>,
    /// Groups, by number.
    pub groups: Vec<u32>,
    /// If there are any, a client other than the daemon's own user and root must also run one of
    /// these programs.
    pub programs: Vec<PathBuf>,
    /// Whether every user is let in.
    pub all_users: bool,
    /// Sees which programs clients run.
    pub witness: Arc<Witness>,
}

impl Admission {
    /// Whether it may be a client.
    pub fn admits(&self, caller: &Caller) -> bool {
        if self.administers(caller) {
            return true;
        }
        let by_user = self.all_users || self.users.contains(&caller.uid);
        let is_listed = by_user || self.groups.iter().any(|group| caller.is_in(*group));
        let runs = |program: &Path| self.programs.iter().any(|listed| listed == program);
        is_listed && (self.programs.is_empty() || caller.executable.as_deref().is_ok_and(runs))
    }

    /// Whether it may look after the daemon and its keys.
    pub fn administers(&self, caller: &Caller) -> bool {
        caller.vm.is_none() && (caller.uid == 0 || caller.uid == rustix::process::getuid().as_raw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32, groups: &[u32], executable: &str) -> Caller {
        let executable = Ok(executable.into());
        Caller { uid, gid: uid, groups: groups.to_vec(), pid: 1, executable, vm: None }
    }

    #[test]
    fn only_its_own_user_and_root_are_let_in_unless_listed() {
        let own = rustix::process::getuid().as_raw();
        let stranger = caller(own + 1_000, &[own + 2_000, 77], "/usr/bin/thing");
        let none = Admission::default();
        assert!(none.admits(&caller(own, &[], "/x")) && none.admits(&caller(0, &[], "/x")));
        assert!(!none.admits(&stranger) && !none.administers(&stranger));
        let by_group = Admission { groups: vec![77], ..Admission::default() };
        assert!(by_group.admits(&stranger) && !by_group.administers(&stranger));
        let by_user = Admission { users: vec![stranger.uid], ..Admission::default() };
        assert!(by_user.admits(&stranger));
        let program = |path: &str| Admission { programs: vec![path.into()], ..by_user.clone() };
        assert!(program("/usr/bin/thing").admits(&stranger));
        assert!(!program("/usr/bin/other").admits(&stranger));
        let all_users = Admission { all_users: true, ..Admission::default() };
        assert!(all_users.admits(&stranger) && !all_users.administers(&stranger));
        // A virtual machine is no user, whatever its number.
        let machine = Caller { vm: Some("web".into()), ..caller(0, &[], "/x") };
        assert!(!none.administers(&machine));
    }

    #[test]
    fn a_caller_is_the_process_that_connected() {
        let (one, _other) = keyway_ring::Socket::pair().unwrap();
        let caller = Caller::of(&one, &Witness::default()).unwrap();
        assert_eq!(caller.pid, std::process::id());
        assert_eq!(caller.uid, rustix::process::getuid().as_raw());
        assert_eq!(caller.executable, Ok(std::env::current_exe().unwrap()));
    }
}
