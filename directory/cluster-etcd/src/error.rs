//! Errors of calls to etcd: which party is at fault, and the way out.

use std::fmt;

/// Why a call to etcd did nothing, or nothing that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The settings make no sense.
    Config(String),
    /// No endpoint has answered within the time, or etcd has no leader: the last failure, with its endpoint. A change may
    /// still be done.
    Unavailable(String),
    /// An endpoint is older than 3.6.
    TooOld {
        /// The endpoint's URL.
        endpoint: String,
        /// The version that it names.
        version: String,
    },
    /// The request is larger than etcd takes.
    TooLarge(String),
    /// etcd keeps nothing more: its quota is used up.
    Full(String),
    /// etcd has understood the call and refuses it.
    Refused(String),
    /// An answer that is none of etcd 3.6: cut off, too long, or without sense.
    Answer(String),
    /// A key has something else than Keyway has put there.
    Damaged(String),
    /// The feed does not end with what the writer has put there.
    Apart,
    /// The lease of a call has expired.
    Expired,
    /// The caller does not hold the writer's lease (any more).
    Fenced,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(why) => f.write_str(why),
            Error::Unavailable(why) => write!(f, "etcd does not answer: {why}"),
            Error::TooOld { endpoint, version } => write!(
                f,
                "{endpoint} is etcd {version}, which loses changes when it compacts: upgrade it to 3.6 or later"
            ),
            Error::TooLarge(why) => {
                write!(f, "etcd takes no request of this size: {why}; write less at once")
            }
            Error::Full(why) => write!(
                f,
                "etcd's space is used up: {why}; run `etcdctl defrag` and `etcdctl alarm disarm`, or raise its \
                 --quota-backend-bytes"
            ),
            Error::Refused(why) => write!(f, "etcd refuses: {why}"),
            Error::Answer(why) => write!(f, "not an answer of etcd 3.6: {why}; check the endpoint"),
            Error::Damaged(why) => write!(
                f,
                "etcd has something else than Keyway has put there: {why}; stop all servers, delete the cluster's keys \
                 (etcdctl del --prefix /keyway/CLUSTER/, as keyway cluster members names it), and start all servers"
            ),
            Error::Apart => f.write_str(
                "the changes in etcd are not the last ones that this server has put there: were they removed, or restored?",
            ),
            Error::Expired => f.write_str("the lease in etcd has expired"),
            Error::Fenced => {
                f.write_str("another server holds the writer's lease, or it has expired")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Words from outside, fit for a line of ours.
pub(crate) fn plain(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_control());
    text.take(crate::limits::WORDS_CHARS_MAX).collect()
}
