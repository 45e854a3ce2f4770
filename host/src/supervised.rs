//! The inheritance of a process from the `keyway up` that started it: files that are open already, and a channel
//! over which it says that it is ready and hears what it is to do. It ends with its supervisor.

use crate::failure::{Failure, plain};
use crate::limits::ALIVE_EVERY;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use tokio::io::Interest;

/// The exit status of a process whose store takes no more changes until it is opened again: `EX_TEMPFAIL` of
/// `sysexits.h`.
pub const STORE_STOPPED: u8 = 75;
/// The message of a process that is ready.
pub const READY: u8 = b'+';
/// The process says this again and again from then on: it is not stopped, and its threads get to run.
pub const ALIVE: u8 = b'.';
/// The message that makes it read its files again. The end of the channel asks for an end.
pub const RELOAD: u8 = b'r';

/// It hears this before [`RELOAD`] if a listener is elsewhere now: with its socket, or that it is off.
pub const LISTEN: u8 = b'l';
/// See [`LISTEN`].
pub const LISTEN_OFF: u8 = b'x';
/// That, of the listener that begins with TLS.
pub const LISTEN_TLS: u8 = b'L';
/// See [`LISTEN_TLS`].
pub const LISTEN_TLS_OFF: u8 = b'X';
/// A process says this when it listens there and nowhere else.
pub const MOVED: u8 = b'm';

/// Listeners that are elsewhere now; the inner `None` is off.
#[derive(Default)]
pub struct Moved {
    /// LDAP without TLS.
    pub plain: Option<Option<TcpListener>>,
    /// LDAP over TLS.
    pub tls: Option<Option<TcpListener>>,
}

impl Moved {
    /// Takes what is said of a listener; whether it was about one.
    pub fn hear(&mut self, said: u8, socket: Option<OwnedFd>) -> bool {
        let socket = socket.map(TcpListener::from);
        match (said, socket) {
            (LISTEN, Some(socket)) => self.plain = Some(Some(socket)),
            (LISTEN_OFF, _) => self.plain = Some(None),
            (LISTEN_TLS, Some(socket)) => self.tls = Some(Some(socket)),
            (LISTEN_TLS_OFF, _) => self.tls = Some(None),
            _ => return false,
        }
        true
    }

    /// The messages about them: a byte each, with a file or without.
    pub fn messages(&self) -> Vec<(u8, Option<BorrowedFd<'_>>)> {
        let mut all = Vec::new();
        for (moved, on, off) in
            [(&self.plain, LISTEN, LISTEN_OFF), (&self.tls, LISTEN_TLS, LISTEN_TLS_OFF)]
        {
            match moved {
                Some(Some(socket)) => all.push((on, Some(socket.as_fd()))),
                Some(None) => all.push((off, None)),
                None => {}
            }
        }
        all
    }
}

/// Waits for what is said on a channel: a byte, and a file with it. `None` at its end.
///
/// # Errors
/// The system's.
pub async fn hear(channel: &tokio::net::UnixStream) -> io::Result<Option<(u8, Option<OwnedFd>)>> {
    loop {
        channel.readable().await?;
        match channel.try_io(Interest::READABLE, || receive(channel)) {
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            heard => return heard,
        }
    }
}

fn receive(channel: &tokio::net::UnixStream) -> io::Result<Option<(u8, Option<OwnedFd>)>> {
    let (mut byte, mut space) = ([0], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(channel, &mut bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let file = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok((received.bytes > 0).then_some((byte[0], file)))
}

/// Says a byte on a channel, with a file.
///
/// # Errors
/// The system's; it does not wait.
pub fn say(channel: &UnixStream, byte: u8, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = file.as_slice();
    if !files.is_empty() {
        // There is room for one.
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(channel, &[IoSlice::new(&[byte])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The numbers of the files that it was started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inherited {
    /// The supervisor's process.
    pub up: u32,
    /// Over which the two processes speak.
    pub channel: i32,
    /// The data folder's lock.
    pub lock: i32,
    /// The listener of LDAP without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ldap: Option<i32>,
    /// The listener of LDAP over TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ldaps: Option<i32>,
    /// An LDIF file that a directory with no store begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<i32>,
    /// The file of cryptod's master key or passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<i32>,
    /// Key files of the folder's own certificates, for a cryptod of another user, which is to hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_key: Option<i32>,
    /// See [`Inherited::ca_key`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_key: Option<i32>,
    /// Whether an earlier process of the same supervisor was ready.
    pub again: bool,
    /// Whether the supervisor binds other addresses while it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moves: bool,
}

/// The files.
pub struct Supervised {
    /// The supervisor's process.
    pub up: u32,
    /// It does not block.
    pub channel: UnixStream,
    /// The data folder's lock.
    pub lock: File,
    /// The listener of LDAP without TLS.
    pub ldap: Option<TcpListener>,
    /// The listener of LDAP over TLS.
    pub ldaps: Option<TcpListener>,
    /// An LDIF file that a directory with no store begins with.
    pub import: Option<File>,
    /// The file of cryptod's master key or passphrase.
    pub master: Option<File>,
    /// The key file of the folder's certificate authority, for a cryptod of another user, which is to hold it.
    pub ca_key: Option<File>,
    /// The key file of the folder's server certificate, likewise.
    pub server_key: Option<File>,
    /// Whether an earlier process of this supervisor was ready.
    pub again: bool,
    /// Whether the supervisor binds other addresses while it runs.
    pub moves: bool,
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
            moves: self.moves,
        })
    }
}

/// Says that this process is ready, and from then on that it is alive. To be called in its runtime, which is
/// what says so.
pub fn ready(channel: &UnixStream) {
    // If no supervisor hears it, this process will hear of that.
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
