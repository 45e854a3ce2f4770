//! What `keyway load` can be asked.

use clap::{Args, Subcommand};
use keyway_load::{Identity, Options, Users, duration};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Put load on an LDAP server, any LDAP server, and measure what it does
///
/// With --rate each sequence of operations has a moment at which it is to start, whatever the server
/// does meanwhile, and response times count from then (an open loop): a server that stalls for two
/// seconds shows it. Without --rate each connection goes on when it has its answer (a closed loop).
/// Service times, from a request to its answer, are printed beside that. It says when this program,
/// and not the server, was the limit.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  keyway load search ldap://localhost:1389 --rate 5000 --users 0-9999
      searches for (uid=user.N), 5,000 a second for 10 seconds
  keyway load auth ldaps://ds.example.com --ca ca.pem --rate 500 --duration 5m --fail-if 'p99 > 20ms'
      logins; the exit status says whether the rule came true
  keyway load find search ldap://localhost:1389 --until 'p99 > 10ms or errors > 0.1%'
      the highest rate at which answers are still fast
  keyway load init mixed > mixed.toml; keyway load run mixed.toml --output a.json
      a scenario of your own (keyway load init lists what there is to begin with)
  keyway load report a.json > a.html; keyway load compare a.json b.json
      pictures, and two results beside one another

Entries that MakeLDIF's example template makes (uid=user.N,ou=People,BASE, password 'password') are what
the short forms expect; --filter, --user-dn and --user-password say otherwise.")]
pub enum Load {
    /// Logins: a search for the user, and a bind as what it found, over a second connection
    Auth(Short),
    /// Searches for one user by name, or by --filter
    Search(Short),
    /// Binds as users whose names are known
    Bind(Short),
    /// Replace a user's description
    Modify(Short),
    /// Add an entry, and delete it
    AddDelete(Short),
    /// Searches, logins, compares, changes and new entries, by weights
    Mixed(Short),
    Run(Run),
    Find(Find),
    Init(Init),
    Serve(Serve),
    Agent(Agent),
    Wait(Wait),
    Report(Report),
    Compare(Compare),
}

/// Whom to ask, and how.
#[derive(Debug, Args)]
pub struct Target {
    /// The server; of several, connections go to one after the other
    #[arg(value_name = "URL", required = true)]
    pub urls: Vec<String>,
    /// The certificate authority to trust, PEM [default: those of this system]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Our certificate, PEM, with those that lead to its authority's; shown to servers that ask for one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of --cert, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Bind each connection as whom --cert or the socket (ldapi://) shows: SASL EXTERNAL
    #[arg(long, conflicts_with = "bind_dn")]
    pub external: bool,
    /// Begin TLS on ldap:// with StartTLS
    #[arg(long)]
    pub start_tls: bool,
    /// Resume TLS sessions where the server lets us; each handshake is a full one otherwise
    #[arg(long)]
    pub resume: bool,
    /// What all entries are below
    #[arg(long, value_name = "DN", default_value = "dc=example,dc=com")]
    pub base: String,
    /// Who binds on each connection; needed for what not everybody may do
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn; a line end at its end does not count
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// The users: FIRST-LAST for {user}, or a file, a line each, whose columns (tabs) are {user.1}, {user.2}
    #[arg(long, value_name = "FIRST-LAST|FILE", default_value = "0-9999", value_parser = users)]
    pub users: Users,
    /// How a user is found [default: (uid=user.{user}), or (uid={user.1}) with a file]
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// A user's name [default: uid=user.{user},ou=People,BASE, or with {user.1} for a file]
    #[arg(long, value_name = "DN")]
    pub user_dn: Option<String>,
    /// Everybody's password, or {user.2} for the second column of the file
    #[arg(long, value_name = "TEXT", default_value = "password")]
    pub user_password: String,
    /// Connections [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub clients: Option<u64>,
    /// Operations in flight on each connection [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub in_flight: Option<u64>,
    /// Open each connection anew after so many sequences; 1 for each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reconnect_after: Option<u64>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
    /// What all that is random follows from
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

impl Target {
    /// What samples are filled in with. Entries that are added get numbers that no earlier run had.
    pub fn options(&self) -> Options {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Options {
            urls: self.urls.clone(),
            ca: self.ca.clone(),
            own: self.cert.clone().zip(self.key.clone()),
            external: self.external,
            insecure: self.insecure,
            start_tls: self.start_tls,
            resume: self.resume,
            base: self.base.clone(),
            admin: self.bind_dn.clone().zip(self.password_file.clone()),
            users: self.users.clone(),
            filter: self.filter.clone(),
            user_dn: self.user_dn.clone(),
            user_password: self.user_password.clone(),
            connections: self.clients,
            in_flight: self.in_flight,
            reconnect_after: self.reconnect_after,
            seed: self.seed,
            fresh: since.as_millis() as u64 * 1_000,
            timeout: self.timeout,
            threads: self.threads,
            ..Options::default()
        }
    }
}

/// What becomes of the result.
#[derive(Debug, Args)]
pub struct Output {
    /// Fail if this comes true (repeatable): 'p99 > 20ms', 'errors > 0.1%', 'auth max > 1s or lag > 5ms'
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<String>,
    /// Write the result to a file, as JSON with its histograms
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// No line a second
    #[arg(long)]
    pub quiet: bool,
}

/// One kind of sequence: the scenario of that name of `keyway load init`, filled in.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load search ldap://localhost:1389 --rate 5000
      5,000 a second for 10 seconds, over 8 connections
  keyway load auth ldaps://localhost:1636 --ca ca.pem --users logins.txt --user-password '{user.2}'
      as fast as answers come; a name and a password a line, with a tab between
  keyway load modify ldap://localhost:1389 --bind-dn cn=admin,cn=keyway --password-file pw --in-flight 16
      changes by the administrator, 16 on their way on each connection
  keyway load bind ldaps://localhost:1636 --ca ca.pem --reconnect-after 1 --rate 100 --fail-if 'p99 > 50ms'
      a connection and a TLS handshake for each, which count; the rule decides on the exit status

These are the scenarios of keyway load init of the same names, filled in; --show-scenario prints them.
Lines: what came due, was done and failed in each second, response times, how many wait for a
connection, what our busiest thread used of a core, and how late our own starts were.
The exit status is 0 if no rule of --fail-if came true and something went right, else 1.")]
pub struct Short {
    #[command(flatten)]
    pub target: Target,
    /// Sequences a second [default: as many as are answered]
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub duration: Duration,
    /// How long before that, without counting
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub warm_up: Duration,
    #[command(flatten)]
    pub output: Output,
    /// Print the scenario instead of running it
    #[arg(long)]
    pub show_scenario: bool,
}

/// Run a scenario's file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load run mixed.toml
      run it; its [[threshold]]s decide on the exit status
  keyway load run mixed.toml --url ldap://other:1389 --output other.json
      the same against another server, with the result in a file
  keyway load run find.toml
      a [[phase]] with find = { ... } searches for the highest rate

docs/guide/load.md has every key; keyway load init writes files to begin with.")]
pub struct Run {
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Ask this server instead (repeatable)
    #[arg(long = "url", value_name = "URL")]
    pub urls: Vec<String>,
    /// Trust this certificate authority instead, PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// Find the highest rate at which a rule does not come true
///
/// The rate is doubled until the rule comes true or the rate is not reached; then the gap is halved until
/// it is less than 5 %; then the rate that was found is tried once more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load find search ldap://localhost:1389
      from 100 to 100,000 a second, until p99 > 20ms or errors > 0.1%
  keyway load find auth ldaps://localhost:1636 --ca ca.pem --from 50 --to 5000 --until 'p99 > 100ms'
      --hold 30s
      each rate for 30 seconds, after 6 that do not count")]
pub struct Find {
    /// What to run: auth, search, bind, modify, add-delete, mixed, or another one that keyway load init lists
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,
    #[command(flatten)]
    pub target: Target,
    /// The first rate, in sequences a second
    #[arg(long, value_name = "N", default_value = "100", value_parser = rate)]
    pub from: f64,
    /// The highest
    #[arg(long, value_name = "N", default_value = "100000", value_parser = rate)]
    pub to: f64,
    /// What must not come true
    #[arg(long, value_name = "RULE", default_value = "p99 > 20ms or errors > 0.1%")]
    pub until: String,
    /// How long a rate is held
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub hold: Duration,
    /// Print the rates tried and what was found as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Write a scenario to begin with, with comments; without a name list them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load init
      what there is: one for each LDAP job type of SLAMD
  keyway load init auth-weighted > auth.toml
      write one; the server, users and accounts in it are to be changed
  keyway load init mixed ldaps://ds.example.com --ca ca.pem --users 0-249999 > mixed.toml
      the same with these filled in")]
pub struct Init {
    /// Which one
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The server
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// The certificate authority to trust
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Who binds on each connection
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// What all entries are below
    #[arg(long, value_name = "DN", default_value = "dc=example,dc=com")]
    pub base: String,
    /// The users: FIRST-LAST, or a file
    #[arg(long, value_name = "FIRST-LAST|FILE", default_value = "0-9999", value_parser = users)]
    pub users: Users,
}

/// Who we are to the other side, and whom we take for it: both have certificates of one authority.
#[derive(Debug, Args)]
pub struct Who {
    /// Our certificate, PEM, with those that lead to the authority's
    #[arg(long, value_name = "FILE")]
    pub cert: PathBuf,
    /// Its key, PEM
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The authority of both sides, PEM; whoever has a certificate of it gets in
    #[arg(long, value_name = "FILE")]
    pub ca: PathBuf,
}

impl Who {
    /// The same, for the library.
    pub fn identity(&self) -> Identity {
        let Who { cert, key, ca } = self;
        Identity { certificate: cert.clone(), key: key.clone(), ca: ca.clone() }
    }
}

/// Run a scenario on several machines, on each of which an agent calls this one
///
/// Rate and connections are shared out among the agents; they begin together, by clocks that are compared
/// first. Histograms are added up. An agent that is lost is said so, and the run has failed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load serve mixed.toml --agents 2 --cert hub.pem --key hub.key --ca load-ca.pem
      wait for two agents at 0.0.0.0:4690, then run
  keyway load agent hub.example.com:4690 --cert a.pem --key a.key --ca load-ca.pem
      on each of the other machines

An authority and a certificate for a machine, by openssl:
  openssl req -x509 -newkey ed25519 -nodes -subj /CN=load -days 30 -keyout load-ca.key -out load-ca.pem
  openssl req -x509 -newkey ed25519 -nodes -subj /CN=hub -days 30 -keyout hub.key -out hub.pem \\
    -CA load-ca.pem -CAkey load-ca.key -addext subjectAltName=DNS:hub.example.com \\
    -addext basicConstraints=critical,CA:FALSE")]
pub struct Serve {
    /// The scenario; files that it names are on each agent, below the folder that it runs in
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many agents to wait for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub agents: u16,
    /// Where they call
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:4690")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub who: Who,
    #[command(flatten)]
    pub output: Output,
}

/// Put load on servers as keyway load serve says
///
/// It calls until somebody is there, does one run after the other, and stops at Ctrl-C. It reads no files
/// but those below its folder, whatever a scenario says.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load agent hub.example.com:4690 --cert a.pem --key a.key --ca load-ca.pem
      until Ctrl-C
  keyway load agent hub.example.com:4690 --cert a.pem --key a.key --ca load-ca.pem --once
      one run; fails if it does")]
pub struct Agent {
    /// Who tells it what to do
    #[arg(value_name = "HOST:PORT")]
    pub hub: String,
    #[command(flatten)]
    pub who: Who,
    /// Where files are that scenarios name
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// End after one run
    #[arg(long)]
    pub once: bool,
}

/// Wait until a server answers
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load wait ldap://localhost:1389 && keyway load run mixed.toml
      begin when the server is there
  keyway load wait ldaps://localhost:1636 --ca ca.pem --at-most 2m
      fail if it is not within two minutes")]
pub struct Wait {
    /// The server
    #[arg(value_name = "URL")]
    pub url: String,
    /// The certificate authority to trust, PEM [default: those of this system]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub insecure: bool,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub at_most: Duration,
}

/// Make a page of HTML of a result: tables and pictures, in one file that needs nothing else
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load report a.json > a.html
      from what --output a.json wrote")]
pub struct Report {
    /// The result
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
}

/// Show two results beside one another, and whether differences are more than noise
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load compare before.json after.json
      rates, errors and percentiles of both; the noise is what each figure varies by within the runs")]
pub struct Compare {
    /// The first result
    #[arg(value_name = "A")]
    pub one: PathBuf,
    /// The second
    #[arg(value_name = "B")]
    pub other: PathBuf,
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds = || text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration(text)
        .or_else(seconds)
        .filter(|time| *time <= keyway_load::limits::PHASE_MAX)
        .ok_or_else(|| "it is no time, such as 30s, 250ms or 5m".into())
}

fn rate(text: &str) -> Result<f64, String> {
    match text.replace('_', "").parse() {
        Ok(rate) if rate > 0.0 && rate <= keyway_load::limits::RATE_MAX => Ok(rate),
        _ => Err("it is no number of sequences a second".into()),
    }
}

/// Reads who the users are: a range, or a file.
pub fn users(text: &str) -> Result<Users, String> {
    let range = text
        .split_once('-')
        .and_then(|(low, high)| Some((low.parse::<u64>().ok()?, high.parse::<u64>().ok()?)));
    match range {
        Some((low, high)) if low <= high && high < u64::MAX => Ok(Users::Range(low, high)),
        Some(_) => Err("the first is greater than the last".into()),
        None => Ok(Users::File(text.into())),
    }
}
