//! The control socket: one request a connection, a line of JSON, and its answer, another one.
//!
//! ```text
//! {"ask":"status"}     the state, as `keyway esp status --json` shows it
//! {"ask":"reload"}     {"done":"..."}
//!                      {"failed":"why"} where it could not be done
//! ```

use crate::limits::{ANSWER_WAIT, CONTROL_WAIT, REQUEST_BYTES_MAX};
use keyway_host::failure::{Failure, plain};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// How the gateway is.
    Status,
    /// To read its configuration again.
    Reload,
}

/// A socket that is listened on. Its file goes with it.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// At this path, for this user and root. Its folder is made if it is not there.
    ///
    /// # Errors
    /// If another gateway listens there, or the system refuses.
    pub fn open(path: &Path) -> Result<Control, Failure> {
        let refused = |why: &io::Error| Failure::system("listen on", path, why);
        if UnixStream::connect(path).is_ok() {
            return Err(Failure::new(format!(
                "another gateway listens on {}; stop it, or name another --control SOCKET",
                path.display()
            )));
        }
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|why| Failure::system("make the folder", folder, &why))?;
        }
        match fs::remove_file(path) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(refused(&why)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(|why| refused(&why))?;
        let closed = fs::set_permissions(path, Permissions::from_mode(0o600));
        closed.and_then(|()| listener.set_nonblocking(true)).map_err(|why| refused(&why))?;
        Ok(Control { listener, path: path.to_owned() })
    }

    /// Answers until `stop` can be read.
    pub fn serve(&self, stop: BorrowedFd<'_>, mut answer: impl FnMut(Request) -> Value) {
        loop {
            let listener = self.listener.as_fd();
            let mut all =
                [PollFd::new(&listener, PollFlags::IN), PollFd::new(&stop, PollFlags::IN)];
            let waited = poll(&mut all, None);
            let [_, stop] = &all;
            if waited.is_ok() && !stop.revents().is_empty() {
                return;
            }
            if let Ok((stream, _)) = self.listener.accept() {
                // A client that breaks off has its own reasons.
                let _ = converse(&stream, &mut answer);
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn converse(stream: &UnixStream, answer: &mut impl FnMut(Request) -> Value) -> io::Result<()> {
    let (own, theirs) = (rustix::process::geteuid(), socket_peercred(stream)?.uid);
    if theirs != own && !theirs.is_root() {
        return Ok(());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(CONTROL_WAIT))?;
    stream.set_write_timeout(Some(CONTROL_WAIT))?;
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let said = match serde_json::from_str(&line) {
        Ok(request) => answer(request),
        Err(why) => json!({ "failed": format!("this is no request: {why}") }),
    };
    let mut stream = stream;
    stream.write_all(format!("{said}\n").as_bytes())
}

/// Has the gateway at this socket answer a request.
///
/// # Errors
/// That none is there, or its reason why it could not be done.
pub fn ask(path: &Path, request: Request) -> Result<Value, Failure> {
    let shown = path.display();
    let broken = |why: &io::Error| {
        Failure::new(match why.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => format!(
                "no gateway listens on {shown}; start one with keyway esp up, or name its \
                 --control SOCKET"
            ),
            ErrorKind::PermissionDenied => {
                format!("cannot reach the gateway at {shown}: run as its user, or as root")
            }
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("the gateway at {shown} does not answer: it is busy, or stopped")
            }
            _ => format!("cannot reach the gateway at {shown}: {}", plain(why)),
        })
    };
    let talk = || {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        stream.set_write_timeout(Some(CONTROL_WAIT))?;
        stream.write_all(format!("{}\n", serde_json::to_string(&request)?).as_bytes())?;
        let mut line = String::new();
        stream.read_to_string(&mut line)?;
        if line.is_empty() {
            return Err(io::Error::from(ErrorKind::PermissionDenied));
        }
        Ok(serde_json::from_str::<Value>(&line)?)
    };
    let answer = talk().map_err(|why| broken(&why))?;
    match answer["failed"].as_str() {
        Some(why) => Err(Failure::new(why)),
        None => Ok(answer),
    }
}
