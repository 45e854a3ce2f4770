//! A connection to a running cryptod, for what is asked over its socket.

use keyway_host::failure::{Failure, plain};
use keyway_ring::control::{self, Answer, Ask, GrantedKey, KeyAsk, KeyInfo, VERSION};
use keyway_ring::{Route, Socket};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a daemon may take to begin.
const BEGINNING: Duration = Duration::from_secs(1);
/// How long the daemon may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long it may take to make a key, or to write one down: a large RSA key takes seconds.
const CHANGE: Duration = Duration::from_secs(60);

/// The connection.
pub struct Control {
    route: Route,
    path: PathBuf,
}

impl Control {
    /// Connects to the daemon that listens there, under this name.
    ///
    /// # Errors
    /// If no daemon listens there, or it refuses this process.
    pub fn connect(path: &Path, name: &str) -> Result<Self, Failure> {
        let shown = path.display();
        let route = Route::connect(path).map_err(|why| match why.kind() {
            // The device of a virtual machine says so itself.
            kind if why.get_ref().is_some() => Failure::new(match kind {
                ErrorKind::NotFound => {
                    format!("{why}; the host gives it one (keyway cryptod --vm NAME=SOCKET, there)")
                }
                ErrorKind::PermissionDenied => format!(
                    "{why}; to use a device takes the right to read and write its resource0 and resource2, as \
                     keyway vm check explains"
                ),
                _ => format!("{why}; keyway vm check says what helps"),
            }),
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::new(format!(
                "no cryptod listens at {shown}; start one (keyway cryptod --help), or name the socket of \
                 another one"
            )),
            _ => Failure::system("connect to", path, &why),
        })?;
        let control = Control { route, path: path.to_owned() };
        match control.ask(&Ask::Hello { version: VERSION, name: name.to_owned() })? {
            Answer::Hello { .. } => Ok(control),
            _ => Err(nonsense()),
        }
    }

    /// As [`Control::connect`], with a daemon that may not listen yet: it was started in the line before.
    ///
    /// # Errors
    /// As [`Control::connect`].
    pub fn connect_soon(path: &Path, name: &str) -> Result<Self, Failure> {
        let begun = Instant::now();
        // A device is there, or it is not.
        let is_socket = !Route::is_device(path);
        while is_socket && begun.elapsed() < BEGINNING && Socket::connect(path).is_err() {
            std::thread::sleep(BEGINNING / 20);
        }
        Control::connect(path, name)
    }

    /// All keys that the daemon holds.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn keys(&self) -> Result<Vec<KeyInfo>, Failure> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let answer = self.ask(&Ask::Keys(KeyAsk::List { after: after.clone() }))?;
            let Answer::Keys { keys, more } = answer else { return Err(nonsense()) };
            all.extend(keys);
            match all.last().filter(|_| more) {
                Some(last) => after.clone_from(&last.name),
                None => return Ok(all),
            }
        }
    }

    /// The keys that this process may use.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn granted(&self) -> Result<Vec<GrantedKey>, Failure> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let answer = self.ask(&Ask::Granted { after: after.clone() })?;
            let Answer::Granted { keys, more } = answer else { return Err(nonsense()) };
            all.extend(keys);
            match all.last().filter(|_| more) {
                Some(last) => after.clone_from(&last.name),
                None => return Ok(all),
            }
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The daemon's refusal, or that it does not answer.
    pub fn ask(&self, ask: &Ask) -> Result<Answer, Failure> {
        let bytes = control::encode(ask).map_err(Failure::new)?;
        let shown = self.path.display();
        let changes = matches!(ask, Ask::Keys(ask) if !matches!(ask, KeyAsk::List { .. } | KeyAsk::Public { .. }));
        let most = if changes { CHANGE } else { ANSWER };
        let lost = |why: std::io::Error| match why.kind() {
            ErrorKind::TimedOut => Failure::new(format!(
                "the cryptod at {shown} has not answered for {} s: it is stopped, or has too much to do",
                most.as_secs()
            )),
            _ => Failure::new(format!("the cryptod at {shown} does not answer: {}", plain(&why))),
        };
        let answer = self.route.ask(&bytes, most).map_err(lost)?;
        let answer = answer.ok_or_else(|| Failure::new("the daemon hung up"))?;
        match control::decode_answer(&answer.bytes) {
            Ok(Answer::Refused { why, .. }) => Err(Failure::new(why)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(nonsense()),
        }
    }
}

/// The daemon has answered something else than what it was asked.
pub fn nonsense() -> Failure {
    Failure::new("the daemon's answer makes no sense; it is of another version than this program")
}
