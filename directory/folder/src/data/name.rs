//! The name of everything that Keyway keeps in its data folder.

use std::path::{Path, PathBuf};

/// The folder itself, where none is named.
pub const DEFAULT: &str = "keyway-data";
/// The folder's form, when it was made, and which store it has had since. A folder with it is ours.
pub const VERSION: &str = "version";
/// Locked, with the process's id in it, while a process uses the folder.
pub const LOCK: &str = "lock";
/// The configuration.
pub const CONFIGURATION: &str = "keyway.toml";
/// The text of a configuration that the administrator wants although it looks cut.
pub const ACCEPTED: &str = "keyway.toml.accepted";
/// The history of imports, exports and checks.
pub const HISTORY: &str = "history.jsonl";
/// The report of a running server.
pub const RUNNING: &str = "running.json";
/// The page of counters.
pub const METER: &str = "meter";
/// The certificate authority's certificate.
pub const CA_CERTIFICATE: &str = "ca.pem";
/// Its key.
pub const CA_KEY: &str = "ca.key";
/// The server's certificate.
pub const SERVER_CERTIFICATE: &str = "server.pem";
/// Its key.
pub const SERVER_KEY: &str = "server.key";
/// The administrator's password.
pub const ADMIN_PASSWORD: &str = "admin-password";
/// The password of all sample people.
pub const SAMPLE_PASSWORD: &str = "sample-password";
/// The folder of definitions of attributes and classes.
pub const SCHEMA: &str = "schema";
/// Asks a server to make indexes anew.
pub const REINDEX: &str = "reindex";
/// The folder of the logs.
pub const LOG: &str = "log";
/// The store's folder.
pub const STORE: &str = "store";
/// The folder of stores that checks compare with, for as long as these run.
pub const FEED_CHECK: &str = "feed-check";
/// The folder of snapshots.
pub const SNAPSHOTS: &str = "snapshots";
/// The folder of exports that clients have the server make.
pub const EXPORTS: &str = "exports";
/// The folder of what is cryptod's, which may be here.
pub const CRYPTOD: &str = "cryptod";
/// The folder of what makes the server a member of a cluster.
pub const CLUSTER: &str = "cluster";
/// All of them.
pub const ALL: [&str; 21] = [
    VERSION,
    LOCK,
    CONFIGURATION,
    ACCEPTED,
    HISTORY,
    RUNNING,
    METER,
    CA_CERTIFICATE,
    CA_KEY,
    SERVER_CERTIFICATE,
    SERVER_KEY,
    ADMIN_PASSWORD,
    SAMPLE_PASSWORD,
    SCHEMA,
    REINDEX,
    LOG,
    STORE,
    FEED_CHECK,
    SNAPSHOTS,
    CRYPTOD,
    CLUSTER,
];

/// Names in the folder of cryptod.
pub mod cryptod {
    /// Where it listens.
    pub const SOCKET: &str = "socket";
    /// Its keys.
    pub const KEYS: &str = "keys";
    /// Its page of counters.
    pub const METER: &str = "meter";
    /// Which PINs its tokens have refused.
    pub const TOKENS: &str = "tokens";
}

/// Names in the folder of a cluster.
pub mod cluster {
    /// Which member the server is, and what it follows.
    pub const MEMBER: &str = "cluster/member.json";
    /// Its certificate.
    pub const CERTIFICATE: &str = "cluster/member.pem";
    /// Its key.
    pub const KEY: &str = "cluster/member.key";
    /// The folder of tokens to join by.
    pub const TOKENS: &str = "cluster/tokens";
}

/// Where the daemon of a data folder listens, unless it was told another place.
pub fn socket_at(data: &Path) -> PathBuf {
    data.join(CRYPTOD).join(cryptod::SOCKET)
}

/// The key store of the daemon of a data folder.
pub fn keys_at(data: &Path) -> PathBuf {
    data.join(CRYPTOD).join(cryptod::KEYS)
}

/// The page of counters of the daemon of a data folder.
pub fn meter_at(data: &Path) -> PathBuf {
    data.join(CRYPTOD).join(cryptod::METER)
}
