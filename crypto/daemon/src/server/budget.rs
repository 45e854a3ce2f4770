//! The things that all clients share, and how much of them one user may have: connections, open
//! files, shared memory, sessions.

use super::guest::Guest;
use super::state::Server;
use crate::limits::{
    ADMINISTRATORS_CONNECTIONS, ADMINISTRATORS_FILES, FILES_OF_MACHINE, FILES_OF_QUEUE,
    MACHINE_UID, SharedLimits,
};
use crate::pump::ClientId;
use keyway_ring::control::Answer;
use keyway_ring::descriptor::Status;
use std::fmt;

/// A part of the things that clients share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub connections: usize,
    pub files: usize,
    pub region_bytes: usize,
    pub sessions: usize,
}

impl Share {
    /// A connection that has nothing yet.
    pub const CONNECTION: Share = Share { connections: 1, files: 1, region_bytes: 0, sessions: 0 };
    /// That of a virtual machine.
    pub const MACHINE: Share =
        Share { connections: 1, files: FILES_OF_MACHINE, region_bytes: 0, sessions: 0 };
    /// A queue pair.
    pub const QUEUE: Share =
        Share { connections: 0, files: FILES_OF_QUEUE, region_bytes: 0, sessions: 0 };
    /// A session.
    pub const SESSION: Share = Share { connections: 0, files: 0, region_bytes: 0, sessions: 1 };

    /// A region.
    pub const fn region(region_bytes: usize) -> Share {
        Share { connections: 0, files: 1, region_bytes, sessions: 0 }
    }

    fn and(self, other: Share) -> Share {
        Share {
            connections: self.connections + other.connections,
            files: self.files + other.files,
            region_bytes: self.region_bytes.saturating_add(other.region_bytes),
            sessions: self.sessions + other.sessions,
        }
    }

    /// The first of them of which there is more than there may be.
    fn beyond(self, most: Share) -> Option<(Thing, usize)> {
        let all = [
            (Thing::Connections, self.connections, most.connections),
            (Thing::Files, self.files, most.files),
            (Thing::Memory, self.region_bytes, most.region_bytes),
            (Thing::Sessions, self.sessions, most.sessions),
        ];
        let mut beyond = all.into_iter().filter(|(_, used, most)| used > most);
        beyond.next().map(|(thing, _, most)| (thing, most))
    }
}

/// The thing that there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    Connections,
    Files,
    Memory,
    Sessions,
}

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    pub thing: Thing,
    /// The user whose share it exceeds; `None` if it exceeds that of all clients together.
    pub user: Option<u32>,
    most: usize,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooMuch { thing, user, most } = *self;
        match user {
            Some(MACHINE_UID..) => f.write_str("the virtual machine has ")?,
            Some(uid) => write!(f, "your user (uid {uid}) has ")?,
            None => write!(f, "the daemon's clients have ")?,
        }
        let (what, limit) = match thing {
            Thing::Connections => ("connections", "clients"),
            Thing::Files => ("open files of the daemon's", "files"),
            Thing::Memory => ("bytes of shared memory", "memory"),
            Thing::Sessions => ("sessions", "sessions"),
        };
        let of_user = if user.is_some() { "-of-user" } else { "" };
        write!(
            f,
            "as many {what} as there may be, {most}; close some, or raise the limit (keyway cryptod --limit \
             {limit}{of_user}=N)"
        )
    }
}

impl From<TooMuch> for Answer {
    fn from(why: TooMuch) -> Answer {
        Answer::refused(Status::Busy, why.to_string())
    }
}

impl Guest {
    /// The share that it has now.
    pub fn share(&self) -> Share {
        Share {
            connections: 1,
            files: self.files(),
            region_bytes: self.region_bytes,
            sessions: self.sessions.used(),
        }
    }
}

impl SharedLimits {
    fn of_all(&self) -> Share {
        let SharedLimits { clients, files, region_bytes, sessions, .. } = *self;
        Share { connections: clients, files, region_bytes, sessions }
    }

    fn of_user(&self) -> Share {
        Share {
            connections: self.clients_of_user,
            files: self.files_of_user,
            region_bytes: self.region_bytes_of_user,
            sessions: self.sessions_of_user,
        }
    }
}

impl Server {
    /// Whether a user may have more. Root has no share, but all that there is; a part of that is left to root
    /// and to those who look after the keys.
    ///
    /// # Errors
    /// The limit it would exceed.
    pub fn may_have(&self, user: u32, administers: bool, more: Share) -> Result<(), TooMuch> {
        let (mut all, mut users) = (more, more);
        for guest in self.guests.values() {
            let has = guest.share();
            all = all.and(has);
            if guest.caller.uid == user {
                users = users.and(has);
            }
        }
        let limits = &self.options.shared;
        if user != 0
            && let Some((thing, most)) = users.beyond(limits.of_user())
        {
            return Err(TooMuch { thing, user: Some(user), most });
        }
        let mut most = limits.of_all();
        if !administers {
            most.connections = most.connections.saturating_sub(ADMINISTRATORS_CONNECTIONS);
            most.files = most.files.saturating_sub(ADMINISTRATORS_FILES);
        }
        match all.beyond(most) {
            Some((thing, most)) => Err(TooMuch { thing, user: None, most }),
            None => Ok(()),
        }
    }

    /// Whether a client that is there may have so much more.
    ///
    /// # Errors
    /// The refusal that it hears.
    pub fn may_add(&self, id: ClientId, more: Share) -> Result<(), TooMuch> {
        let Some(guest) = self.guests.get(&id) else { return Ok(()) };
        let administers = self.options.admission.administers(&guest.caller);
        self.may_have(guest.caller.uid, administers, more)
    }

    /// The client that gives way to a newcomer: of those that have not said a name (of one user, or of the
    /// user with the most of them) the one that came first.
    pub fn oldest_stranger(&self, of: Option<u32>) -> Option<ClientId> {
        let strangers = || self.guests.iter().filter(|(_, guest)| guest.name.is_none());
        let count = |uid| strangers().filter(|(_, guest)| guest.caller.uid == uid).count();
        let user = of.or_else(|| {
            strangers().map(|(_, guest)| guest.caller.uid).max_by_key(|uid| count(*uid))
        })?;
        // Numbers are given in order.
        strangers().filter(|(_, guest)| guest.caller.uid == user).map(|(id, _)| *id).min()
    }
}
