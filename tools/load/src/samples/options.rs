//! What is filled into samples.

use std::path::PathBuf;
use std::time::Duration;

/// Who the users are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// Numbered from the first to the last of these.
    Range(u64, u64),
    /// Named in a file, a line each; what tabs part are `{user.1}`, `{user.2}`.
    File(PathBuf),
}

/// What is filled in.
#[derive(Debug, Clone)]
pub struct Options {
    /// The servers.
    pub urls: Vec<String>,
    /// The authority that is trusted.
    pub ca: Option<PathBuf>,
    /// Our own certificate, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Who binds is whom that shows.
    pub external: bool,
    /// Any certificate is.
    pub insecure: bool,
    /// TLS begins with StartTLS.
    pub start_tls: bool,
    /// TLS sessions are resumed.
    pub resume: bool,
    /// Below which all entries are.
    pub base: String,
    /// The administrator, and the file with the password.
    pub admin: Option<(String, PathBuf)>,
    /// The users.
    pub users: Users,
    /// How a user is found.
    pub filter: Option<String>,
    /// A user's name.
    pub user_dn: Option<String>,
    /// A user's password.
    pub user_password: String,
    /// Sequences a second; without one as many as are answered.
    pub rate: Option<f64>,
    /// Connections.
    pub connections: Option<u64>,
    /// Operations in flight on each.
    pub in_flight: Option<u64>,
    /// Sequences after which each is opened anew.
    pub reconnect_after: Option<u64>,
    /// How long it is run, warm-up apart.
    pub length: Duration,
    /// How long before that, without counting.
    pub warm_up: Duration,
    /// A search for the knee, instead of one run.
    pub find: Option<Knee>,
    /// What all that is random follows from.
    pub seed: u64,
    /// The number that the first entry is named by which is added.
    pub fresh: u64,
    /// The template that entries which are added are made of.
    pub template: Option<Adds>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Threads.
    pub threads: Option<u64>,
}

/// A search for the highest rate at which a rule does not come true.
#[derive(Debug, Clone)]
pub struct Knee {
    /// The first rate, in sequences a second.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// What must not come true.
    pub until: String,
    /// How long a rate is held.
    pub hold: Duration,
}

/// Entries of a template.
#[derive(Debug, Clone, Default)]
pub struct Adds {
    /// MakeLDIF's, in a file or built in.
    pub template: String,
    /// Which of its templates.
    pub of: Option<String>,
    /// The number of the first.
    pub from: Option<u64>,
    /// Constants instead of the template's.
    pub define: Vec<(String, String)>,
}

impl Options {
    pub(super) fn has_admin(&self) -> bool {
        self.admin.is_some() || self.external
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            urls: vec!["ldap://localhost:389".into()],
            ca: None,
            own: None,
            external: false,
            insecure: false,
            start_tls: false,
            resume: false,
            base: "dc=example,dc=com".into(),
            admin: None,
            users: Users::Range(0, 9_999),
            filter: None,
            user_dn: None,
            user_password: "password".into(),
            rate: None,
            connections: None,
            in_flight: None,
            reconnect_after: None,
            length: Duration::from_secs(10),
            warm_up: Duration::ZERO,
            find: None,
            seed: 1,
            fresh: 1_000_000,
            template: None,
            timeout: Duration::from_secs(10),
            threads: None,
        }
    }
}
