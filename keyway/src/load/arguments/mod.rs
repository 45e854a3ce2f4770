//! The arguments of `keyway load`.

mod agents;
mod results;
mod scenarios;
mod target;
mod value;

pub use agents::{Agent, Serve};
pub use results::{Compare, Kept, Output, Report};
pub use scenarios::{Find, Init, Run, Short, Wait};
pub use target::{Target, as_at_home, own_urls};
pub use value::users;

use clap::{Args, Subcommand};

/// Put load on an LDAP server, any LDAP server, and measure what it does
///
/// With --rate each sequence of operations has a moment at which it is to start, whatever the server
/// does meanwhile, and response times count from then (an open loop): a server that stalls for two
/// seconds shows it. Without --rate each connection goes on when it has its answer (a closed loop).
/// Service times, from a request to its answer, are printed beside that. It says when this program,
/// and not the server, was the limit.
///
/// Without a command it is `keyway load search`; without a URL the server is the one that runs on
/// ./keyway-data, its users are asked for, and its administrator asks. Each operation is tried once before the
/// start; a run of which almost all fails is ended after three seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load
      searches on the server that keyway up has started, for its users, for 10 seconds
  keyway load mixed
      the same with logins, compares, changes and new entries
  keyway load search ldap://localhost:1389 --rate 5000 --users 0-9999
      searches for (uid=user.N), 5,000 a second for 10 seconds
  keyway load auth ldaps://ds.example.com --ca ca.pem --rate 500 --duration 5m \\
      --fail-if 'p99 > 20ms'
      logins; the exit status says whether the rule came true
  keyway load find search ldap://localhost:1389 --until 'p99 > 10ms or errors > 0.1%'
      the highest rate at which answers are still fast
  keyway load init mixed > mixed.toml; keyway load run mixed.toml --output a.json
      a scenario of your own (keyway load init lists what there is to begin with)
  keyway load add-delete ldap://localhost:1389 --template people.template \\
      --bind-dn cn=admin --password-file pw
      entries of a MakeLDIF template, each once, added and deleted
  keyway load report a.json > a.html; keyway load compare a.json b.json
      pictures, and two results beside one another, of runs or of searches

Users are those that the server shows; of one that shows none, those that MakeLDIF's example template makes \
(uid=user.N,ou=People,BASE, password 'password'). --users, --filter, --user-dn and --user-password say otherwise.")]
pub struct Load {
    #[command(subcommand)]
    pub command: Option<Kind>,
}

/// A kind of load, or another command about it.
#[derive(Debug, Subcommand)]
pub enum Kind {
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
