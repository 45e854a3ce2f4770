//! The arguments of `keyway cluster`.

use crate::data_flag::DataAndForm;
use crate::value::some_time;
use clap::{Args, Subcommand};
use keyway_config::MemberUrl;
use keyway_folder::user::Account;
use keyway_service::cluster::{JoinToken, join_token, member_name};
use std::time::Duration;

/// Work with several servers of one directory: one writes, all answer everything
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Two servers from one:
  keyway cluster token --data DIR
      at the first: prints a token, good once and for an hour
  keyway up --follow ldaps://a.example.com --join TOKEN
      at the other: takes the directory, then serves it
  keyway cluster status --all
      at either")]
pub enum Cluster {
    Token(Token),
    Join(Join),
    Status(Status),
    Members(Members),
    Promote(Promote),
    Rejoin(Rejoin),
    Remove(Remove),
}

/// Make a token, by which one other server joins
///
/// It works beside the server, which has to write. The token is printed alone on its line; who has it gets all of the
/// directory, its keys too. The server keeps a digest of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster token --valid 10m
      a token for the next ten minutes, and what to do with it")]
pub struct Token {
    /// For how long it is good
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = some_time)]
    pub valid: Duration,
    /// What the other server is to be called
    #[arg(long, value_name = "NAME", value_parser = member_name)]
    pub name: Option<String>,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Join without starting: what keyway up --follow does first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster join --follow ldaps://a.example.com --join - --data b < token
      the folder b is a follower's; keyway up --data b starts it")]
pub struct Join {
    /// Where the server is that writes: ldaps://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub follow: MemberUrl,
    /// The token, or '-' for standard input
    #[arg(long, value_name = "TOKEN", value_parser = join_token)]
    pub join: JoinToken,
    /// What this server is to be called [default: the host's name]
    #[arg(long, value_name = "NAME", value_parser = member_name)]
    pub name: Option<String>,
    /// Where others reach this server [default: this host's address, port 636]
    #[arg(long, value_name = "URL")]
    pub url: Option<MemberUrl>,
    /// The user whose DIR is to be, if root does this
    #[arg(long, value_name = "USER", value_parser = Account::parse)]
    pub user: Option<Account>,
    /// The user that cryptod is to be
    #[arg(long, value_name = "USER", value_parser = Account::parse)]
    pub cryptod_user: Option<Account>,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Ask the server that runs here how it stands: role, position, lag, last error
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster status --all
      this server and all members that answer")]
pub struct Status {
    /// Ask all members
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// List the members, by this server's store
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster members --json
      all members, for a program")]
pub struct Members {
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Make the follower that runs here the writer
///
/// All members are asked first. A writer that lives takes no changes from then on, gives this one all that it has, and
/// follows it. If it does not answer, changes that this one has not are lost to the others: keyway cluster rejoin at the
/// old writer writes them out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster promote
      the writer is lost, or is to be another one: this follower takes its place
  keyway cluster promote --force
      no other member is asked: what only those have is lost to the cluster")]
pub struct Promote {
    /// Ask no other member: changes that they have and this one has not are lost to the others then
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Begin anew with the writer's directory, while the server is stopped
///
/// The store of before is kept as DIR/store.before-rejoin-TIME.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster rejoin
      the server is stopped, and cannot follow: it has changes of its own, mostly")]
pub struct Rejoin {
    /// The member whose directory it takes [default: the writer, asked for among the members]
    #[arg(long, value_name = "URL")]
    pub from: Option<MemberUrl>,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Remove a member for good, at the writer: nothing is kept for it any more, and it is let in no more
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cluster remove b
      b will not come back")]
pub struct Remove {
    /// Its name, as keyway cluster members shows it
    #[arg(value_name = "NAME", value_parser = member_name)]
    pub name: String,
    #[command(flatten)]
    pub data: DataAndForm,
}
