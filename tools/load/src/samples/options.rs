//! The options of samples.

use crate::scenario::parent;
use std::path::PathBuf;
use std::time::Duration;

/// The source of the users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// Numbered from the first to the last of these.
    Range(u64, u64),
    /// Named in a file, a line each; what tabs part are `{user.1}`, `{user.2}`.
    File(PathBuf),
    /// Those that a server has shown.
    Lines {
        /// The name of each at a login, a tab, and its DN.
        lines: Vec<String>,
        /// The attribute of that name.
        login: &'static str,
    },
}

/// The users' password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserPassword {
    /// A text, with values in it.
    Text(String),
    /// The file of the one that all have.
    File(PathBuf),
}

/// The values that a sample is filled with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The servers.
    pub urls: Vec<String>,
    /// The authority that is trusted.
    pub ca: Option<PathBuf>,
    /// Without one, the authority of a data folder, beside those of the system. It is in no text: see
    /// [`crate::Trust`].
    pub own_ca: Option<PathBuf>,
    /// Our own certificate, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Whether binds are SASL EXTERNAL, with the identity that the certificate or the socket shows.
    pub external: bool,
    /// Any certificate is.
    pub insecure: bool,
    /// TLS begins with StartTLS.
    pub start_tls: bool,
    /// TLS sessions are resumed.
    pub resume: bool,
    /// Below which all entries are; without one dc=example,dc=com.
    pub base: Option<String>,
    /// The administrator, and the file with the password.
    pub admin: Option<(String, PathBuf)>,
    /// The users; without them those with the numbers from 0 to 9,999.
    pub users: Option<Users>,
    /// How a user is found.
    pub filter: Option<String>,
    /// A user's name.
    pub user_dn: Option<String>,
    /// A user's password.
    pub user_password: UserPassword,
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
    /// How many sequences are run at most, instead of for a time.
    pub operations: Option<u64>,
    /// How long before that, without counting.
    pub warm_up: Duration,
    /// A search for the knee, instead of one run.
    pub find: Option<Knee>,
    /// The seed of all random choices.
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
    /// The rule that must not come true.
    pub until: String,
    /// How long a rate is held.
    pub hold: Duration,
}

/// Entries of a template.
#[derive(Debug, Clone, Default)]
pub struct Adds {
    /// MakeLDIF's, in a file or built in.
    pub template: String,
    /// The name of one of its templates.
    pub of: Option<String>,
    /// The number of the first.
    pub from: Option<u64>,
    /// Constants instead of the template's.
    pub define: Vec<(String, String)>,
}

/// Where MakeLDIF's example has its entries, and which users.
const USUAL_BASE: &str = "dc=example,dc=com";
static USUAL_USERS: Users = Users::Range(0, 9_999);

/// See [`Options::user`].
pub(super) struct User {
    pub(super) filter: String,
    pub(super) dn: String,
    pub(super) below: String,
}

/// A text in which a brace is a brace.
fn braced(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

impl Options {
    pub(super) fn has_admin(&self) -> bool {
        self.admin.is_some() || self.external
    }

    /// Below which all entries are.
    pub(super) fn base(&self) -> &str {
        self.base.as_deref().unwrap_or(USUAL_BASE)
    }

    pub(super) fn users(&self) -> &Users {
        self.users.as_ref().unwrap_or(&USUAL_USERS)
    }

    /// How a user is found, how one is named, and what those are below.
    pub(super) fn user(&self) -> User {
        let below = format!("ou=People,{}", self.base());
        let (login, name, dn, below) = match self.users() {
            Users::Range(..) => ("uid", "user.{user}", None, below),
            Users::File(_) => ("uid", "{user.1}", None, below),
            Users::Lines { lines, login } => {
                let first = lines.first().and_then(|line| line.split('\t').nth(1));
                let below = first.map(parent).filter(|it| !it.is_empty()).map_or(below, braced);
                (*login, "{user.1}", Some("{user.2}".to_owned()), below)
            }
        };
        User {
            filter: self.filter.clone().unwrap_or_else(|| format!("({login}={name})")),
            dn: self.user_dn.clone().or(dn).unwrap_or_else(|| format!("uid={name},{below}")),
            below,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            urls: vec!["ldap://localhost:389".into()],
            ca: None,
            own_ca: None,
            own: None,
            external: false,
            insecure: false,
            start_tls: false,
            resume: false,
            base: None,
            admin: None,
            users: None,
            filter: None,
            user_dn: None,
            user_password: UserPassword::Text("password".into()),
            rate: None,
            connections: None,
            in_flight: None,
            reconnect_after: None,
            length: Duration::from_secs(10),
            operations: None,
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
