//! The program that a client runs, for grants and admission that name programs.
//!
//! A process in a sandbox of Landlock cannot see that of processes outside. So a daemon in one has a helper,
//! a process that was started before: it is handed the client's process (a pidfd), looks at it
//! (`look`), and says the path of its program, or why that is not to be relied on. Without a sandbox the
//! daemon looks by itself.

pub(crate) mod look;

use crate::keys::Unseen;
use crate::limits::WITNESS;
use keyway_lock::Unpoisoned;
use keyway_ring::control;
use keyway_ring::{Peer, Received, Socket};
use look::look;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Mutex;

/// The processes whose programs can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight {
    /// Those of all users.
    All,
    /// Those of this process's own user.
    Own,
    /// Those of no user: the system does not say surely which process a client is.
    None,
}

impl Sight {
    /// That of this process, if it is in no sandbox.
    pub fn here() -> Sight {
        let can_name = Socket::pair().and_then(|(one, _other)| Peer::of(&one));
        if !can_name.is_ok_and(|peer| peer.process.is_some()) {
            return Sight::None;
        }
        let traces =
            |it: rustix::thread::CapabilitySets| it.effective.contains(CapabilitySet::SYS_PTRACE);
        if capabilities(None).is_ok_and(traces) { Sight::All } else { Sight::Own }
    }

    /// Whether a grant to a program can ever be for a client of this user; of any user, if none is given.
    ///
    /// # Errors
    /// Why not, and what to do, in a sentence.
    pub fn reaches(self, uid: Option<u32>) -> Result<(), String> {
        let own = rustix::process::getuid().as_raw();
        match self {
            Sight::All => Ok(()),
            Sight::Own if uid == Some(own) => Ok(()),
            Sight::Own => Err(format!(
                "this daemon runs as user {own} and sees only which programs that user runs: write \
                 user:{own}+program:PATH, name users or groups instead of a program, or have root start the \
                 daemon (systemd: AmbientCapabilities=CAP_SYS_PTRACE)"
            )),
            Sight::None => {
                Err("this system does not say surely which program a client runs (Linux 6.5 and \
                                later do): name users or groups instead of a program"
                    .to_owned())
            }
        }
    }
}

/// Sees which programs clients run.
pub struct Witness {
    sight: Sight,
    /// To the helper, if there is one.
    helper: Option<Mutex<Helper>>,
}

struct Helper {
    socket: Socket,
    /// Number of the last question.
    asked: u64,
    /// Number of the last answer.
    answered: u64,
}

#[derive(Serialize, Deserialize)]
struct Question {
    number: u64,
    uid: u32,
    gid: u32,
}

#[derive(Serialize, Deserialize)]
struct Answer<'a> {
    number: u64,
    /// The path's bytes.
    #[serde(borrow)]
    program: Result<&'a [u8], Unseen>,
}

impl Default for Witness {
    /// This process itself.
    fn default() -> Self {
        Witness { sight: Sight::here(), helper: None }
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("sight", &self.sight).finish_non_exhaustive()
    }
}

impl Witness {
    /// A helper that [serves](serve) the other end of this socket and sees so much.
    ///
    /// # Errors
    /// The system's.
    pub fn helper(socket: Socket, sight: Sight) -> io::Result<Witness> {
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(WITNESS))?;
        }
        let helper = Helper { socket, asked: 0, answered: 0 };
        Ok(Witness { sight, helper: Some(Mutex::new(helper)) })
    }

    /// The processes whose programs it sees.
    pub fn sight(&self) -> Sight {
        self.sight
    }

    /// The program that a process runs. Waits for a helper for at most [`WITNESS`], and not at all while an
    /// earlier question is unanswered.
    ///
    /// # Errors
    /// Why it is not to be relied on.
    pub fn program(&self, peer: &Peer) -> Result<PathBuf, Unseen> {
        let process = peer.process.as_ref().ok_or(Unseen::Unnamed)?;
        let Some(helper) = &self.helper else { return look(process.as_fd(), peer.uid, peer.gid) };
        let mut helper = helper.lock().unpoisoned();
        helper.ask(process.as_fd(), peer).unwrap_or(Err(Unseen::Silent))
    }
}

impl Helper {
    /// `None` if there is no answer.
    fn ask(
        &mut self,
        process: std::os::fd::BorrowedFd<'_>,
        peer: &Peer,
    ) -> Option<Result<PathBuf, Unseen>> {
        // An answer that comes too late is for a client that was answered without it.
        while self.answered < self.asked {
            self.answered = number(&self.socket.try_receive().ok()??)?;
        }
        let question = Question { number: self.asked + 1, uid: peer.uid, gid: peer.gid };
        let bytes = control::encode(&question).ok()?;
        self.socket.send(&bytes, &[process]).ok()?;
        self.asked += 1;
        let answer = self.socket.receive().ok()??;
        self.answered = number(&answer)?;
        let answer: Answer<'_> = control::decode(&answer.bytes).ok()?;
        (answer.number == self.asked).then(|| answer.program.map(look::path))
    }
}

fn number(answer: &Received) -> Option<u64> {
    control::decode::<Answer<'_>>(&answer.bytes).ok().map(|answer| answer.number)
}

/// Answers a [`Witness`] until it has gone.
///
/// # Errors
/// The system's.
pub fn serve(socket: &Socket) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    while let Some(Received { bytes, fds }) = socket.receive()? {
        let question: Question = control::decode(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
        let Question { number, uid, gid } = question;
        let program = match &fds[..] {
            [process] => look(process.as_fd(), uid, gid),
            _ => Err(Unseen::Unnamed),
        };
        let program = program.as_ref().map(|path| path.as_os_str().as_bytes());
        let answer = Answer { number, program: program.map_err(|why| *why) };
        let bytes = control::encode(&answer).map_err(|_| io::ErrorKind::InvalidData)?;
        socket.send(&bytes, &[])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_answers_like_the_process_itself() {
        let (one, other) = Socket::pair().unwrap();
        let (client, _end) = Socket::pair().unwrap();
        let peer = Peer::of(&client).unwrap();
        let served = std::thread::spawn(move || serve(&other));
        let helper = Witness::helper(one, Sight::here()).unwrap();
        for _ in 0..3 {
            let program = helper.program(&peer);
            assert_eq!(program, Ok(std::env::current_exe().unwrap()));
            assert_eq!(Witness::default().program(&peer), program);
        }
        let other_user = Peer { uid: peer.uid + 1, process: None, ..Peer::of(&client).unwrap() };
        assert_eq!(helper.program(&other_user), Err(Unseen::Unnamed));
        let process = Peer::of(&client).unwrap().process;
        let other_user = Peer { process, ..other_user };
        assert_eq!(helper.program(&other_user), Err(Unseen::Raised));
        drop(helper);
        served.join().unwrap().unwrap();
    }

    #[test]
    fn a_helper_that_is_late_holds_up_only_one() {
        let (one, other) = Socket::pair().unwrap();
        let (client, _end) = Socket::pair().unwrap();
        let peer = Peer::of(&client).unwrap();
        let helper = Witness::helper(one, Sight::Own).unwrap();
        assert_eq!(helper.program(&peer), Err(Unseen::Silent));
        // Not asked again before it has answered.
        assert_eq!(helper.program(&peer), Err(Unseen::Silent));
        let served = std::thread::spawn(move || serve(&other));
        while helper.program(&peer) == Err(Unseen::Silent) {
            std::thread::yield_now();
        }
        assert!(helper.program(&peer).is_ok());
        drop(helper);
        served.join().unwrap().unwrap();
    }
}
