//! What a process has from the `keyway up` that started it: files that are open already, and a channel
//! over which it says that it is ready and hears what it is to do. It ends with its supervisor.

use crate::failure::{Failure, plain};
use crate::limits::ALIVE_EVERY;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;

/// The exit status of a process whose store takes no more changes until it is opened again: `EX_TEMPFAIL` of
/// `sysexits.h`.
pub const STORE_STOPPED: u8 = 75;
/// What a process says when it is ready.
pub const READY: u8 = b'+';
/// What it says again and again from then on: it is not stopped, and its threads get to run.
pub const ALIVE: u8 = b'.';
/// What it hears when it is to read its files again. The end of the channel asks for an end.
pub const RELOAD: u8 = b'r';

/// The numbers of the files that it was started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inherited {
    /// The supervisor's process.
    pub up: u32,
    pub channel: i32,
    /// The data folder's lock.
    pub lock: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ldap: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ldaps: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<i32>,
    /// The file of cryptod's master key or passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<i32>,
    /// Key files of the folder's own certificates, for a cryptod of another user, which is to hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_key: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_key: Option<i32>,
    /// Whether an earlier process of the same supervisor was ready.
    pub again: bool,
}

/// The files.
pub struct Supervised {
    pub up: u32,
    /// It does not block.
    pub channel: UnixStream,
    pub lock: File,
    pub ldap: Option<TcpListener>,
    pub ldaps: Option<TcpListener>,
    pub import: Option<File>,
    pub master: Option<File>,
    pub ca_key: Option<File>,
    pub server_key: Option<File>,
    pub again: bool,
}

impl Inherited {
    /// Reads them from an argument.
    ///
    /// # Errors
    /// If it is none of ours.
    pub fn parse(text: &str) -> Result<Inherited, String> {
        serde_json::from_str(text).map_err(|why| format!("keyway up says that by itself: {why}"))
    }

    /// Takes them, and ends with the supervisor from now on. To be called on a new process, before it
    /// opens anything.
    ///
    /// # Errors
    /// If one is not there, or the supervisor has gone.
    pub fn take(&self) -> Result<Supervised, Failure> {
        let cannot = |why: std::io::Error| {
            Failure::new(format!("cannot use what keyway up has left open: {}", plain(&why)))
        };
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|why| cannot(why.into()))?;
        if parent_id() != self.up {
            return Err(Failure::new("the keyway up that has started this process is gone"));
        }
        let take = |number: i32| keyway_ring::inherited(number).map_err(cannot);
        let socket = |number: Option<i32>| number.map(take).transpose();
        let channel = UnixStream::from(take(self.channel)?);
        channel.set_nonblocking(true).map_err(cannot)?;
        Ok(Supervised {
            up: self.up,
            channel,
            lock: take(self.lock)?.into(),
            ldap: socket(self.ldap)?.map(TcpListener::from),
            ldaps: socket(self.ldaps)?.map(TcpListener::from),
            import: socket(self.import)?.map(|file: OwnedFd| file.into()),
            master: socket(self.master)?.map(|file: OwnedFd| file.into()),
            ca_key: socket(self.ca_key)?.map(|file: OwnedFd| file.into()),
            server_key: socket(self.server_key)?.map(|file: OwnedFd| file.into()),
            again: self.again,
        })
    }
}

/// Says that this process is ready, and from then on that it is alive. To be called in its runtime, which is
/// what says so.
pub fn ready(channel: &UnixStream) {
    // If nobody hears it, it will hear of that.
    let _ = (&*channel).write_all(&[READY]);
    let Ok(channel) = channel.try_clone() else { return };
    tokio::spawn(async move {
        let mut beat = tokio::time::interval(ALIVE_EVERY);
        loop {
            beat.tick().await;
            // Where it does not fit, there is enough of it.
            let _ = (&channel).write(&[ALIVE]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let text = r#"{"up":7,"channel":3,"lock":4,"again":false}"#;
        let read = Inherited::parse(text).unwrap();
        assert_eq!((read.up, read.ldap), (7, None));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(Inherited::parse("up").is_err());
    }
}
