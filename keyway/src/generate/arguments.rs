//! The flags of `keyway data`.

use super::access::Access;
use super::entries::Entries;
use crate::value::{count, count_within, size_within};
use clap::{Args, Subcommand, ValueEnum};
use keyway_data::filters::Kind;
use keyway_data::{Compress, Format};
use keyway_host::failure::Failure;
use std::path::{Path, PathBuf};

/// Make entries of templates: MakeLDIF's, read as they are, by the million
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A template describes branches, and templates of the entries below them:
  define suffix=dc=example,dc=com        a constant: [suffix]
  branch: ou=People,[suffix]             an entry with this name
  subordinateTemplate: person:1000       with so many of these below it

  template: person
  rdnAttr: uid                           what names its entries
  uid: user.<sequential>                 a tag, replaced by a value (keyway data tags)
  mail: {uid}@example.com                the value of another line
Sections end at an empty line. Templates can have subordinate templates of their own, extend others
(extends: NAME), and stand in other files (include FILE).")]
pub enum Generate {
    Make(Box<Make>),
    Check(Box<Check>),
    Tags(Tags),
    Template(Template),
}

/// Make the entries of a template: as LDIF, change records or CSV, to a server, into a store
///
/// An entry is a function of the template, the seed and its number: the same bytes come out however
/// many threads there are, and --from and --count give any part of them at once. Templates of
/// SLAMD, OpenDS, OpenDJ and Ping are read as they are.
///
/// A file is put in place when it is whole, and is for its owner only (0600), as it may have
/// passwords in it. Ctrl-C removes what is there of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway data make
      10,000 people of the template that is built in, to standard output
  keyway data make people.template -o people.ldif.zst --define numusers=5M --seed 7
      five million, compressed (.gz and .zst are known), with another constant and another seed
  keyway data make people.template --from 4M --count 10
      ten of them, from the four-millionth on, at once
  keyway data make people.template --to ldaps://ldap.example.com --bind-dn cn=admin,cn=keyway \\
      --password-file keyway-data/admin-password --ca keyway-data/ca.pem
      add them to a server, many at once
  keyway data make people.template --into keyway-data
      into the store of a directory that is not being served, without a file between
  keyway data make people.template --changes modify --generation 1 -o monday.ldif
      what changes the entries of --generation 0 into those of 1; --changes delete removes them
  keyway data make people.template -o people.ldif --binds binds.tsv --dns dns.txt
      the same with lists of names and passwords, for a load generator
  keyway data make people.template -o /dev/null --filters filters.txt --filter cn:initial \\
      --filter uid --matches 1-10
      search filters that match one to ten of the entries each

MakeLDIF's options are: -t FILE, the argument; -o; -s, --seed; -x, --per-template; -c FILE, --csv;
-d, --dns; -b, --binds; -L, --logins (-i, --login-attribute); -F, --filters; -T, --filter; -N, -X:
--matches. OpenDJ's -c NAME=VALUE is --define, its -r is --resources.")]
pub struct Make {
    #[command(flatten)]
    pub entries: Entries,
    /// The file to write, or '-' for standard output; .gz and .zst are compressed
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// The format of the file [default: csv if it is called .csv, .csv.gz or .csv.zst, else ldif]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FileFormat>,
    /// Columns of CSV, beside the DN [default: all attributes]
    #[arg(long, value_name = "ATTRIBUTE", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Write change records, which ldapmodify takes, instead of entries
    #[arg(long, value_name = "KIND", conflicts_with_all = ["columns", "to", "into"])]
    pub changes: Option<Changes>,
    /// Attributes that --changes modify replaces [default: those that another generation changes]
    #[arg(long, value_name = "ATTRIBUTE", value_delimiter = ',')]
    pub attributes: Vec<String>,
    /// Threads that make entries [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = size_within::<1, 1024>)]
    pub threads: Option<usize>,
    /// Compress a file, whatever it is called
    #[arg(long, value_name = "HOW", conflicts_with_all = ["to", "into"])]
    pub compress: Option<Compression>,
    /// Write the names of the entries too
    #[arg(short = 'd', long, value_name = "FILE", conflicts_with_all = ["to", "into"])]
    pub dns: Option<PathBuf>,
    /// Write their names and passwords too, with a tab between
    #[arg(short = 'b', long, value_name = "FILE", conflicts_with_all = ["to", "into"])]
    pub binds: Option<PathBuf>,
    /// Write their logins and passwords too
    #[arg(short = 'L', long, value_name = "FILE", conflicts_with_all = ["to", "into"])]
    pub logins: Option<PathBuf>,
    /// The attribute that is a login
    #[arg(short = 'i', long, value_name = "ATTRIBUTE", default_value = "uid")]
    pub login_attribute: String,
    /// Write search filters too, which match some of the entries
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with_all = ["to", "into"])]
    pub filters: Option<PathBuf>,
    /// The attribute that they ask for, with ':initial' or ':final' the begin or the end of its
    /// values (repeatable)
    #[arg(short = 'T', long, value_name = "ATTRIBUTE", requires = "filters", value_parser = filter)]
    pub filter: Vec<(String, FilterKind)>,
    /// How many entries a filter matches
    #[arg(long, value_name = "MIN-MAX", default_value = "1-100", value_parser = matches)]
    pub matches: (u64, u64),
    /// Add the entries to a server (ldap:// or ldaps://)
    #[arg(long, value_name = "URL", conflicts_with_all = ["output", "into"])]
    pub to: Option<String>,
    #[command(flatten)]
    pub access: Access,
    /// Entries that are sent before the first of them is answered
    #[arg(long, value_name = "N", default_value = "64", value_parser = count_within::<1, 1000>)]
    pub in_flight: u64,
    /// Put the entries into the store of this data folder, which no process serves meanwhile
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub into: Option<PathBuf>,
    /// Definitions of attributes and classes that the store is to know first (repeatable)
    #[arg(long, value_name = "FILE", requires = "into")]
    pub schema: Vec<PathBuf>,
    /// Store passwords in clear as {SSHA512}, which takes microseconds each and not the tens of milliseconds
    /// of Argon2id: for test data
    #[arg(long, requires = "into")]
    pub fast_passwords: bool,
    /// Report entries that the store refuses, and go on with the next
    #[arg(long = "continue", requires = "into")]
    pub go_on: bool,
    /// Go on with an import that was not finished
    #[arg(long, requires = "into", conflicts_with = "restart")]
    pub resume: bool,
    /// Forget an import that was not finished
    #[arg(long, requires = "into")]
    pub restart: bool,
    /// Say how it went as one line of JSON (on standard error if entries go to standard output)
    #[arg(long)]
    pub json: bool,
}

/// Check the entries of a template against a schema: that a directory would take them
///
/// The entries are made and thrown away. Looked at are their object classes, what these demand and
/// allow, the syntax of values, values that are there twice, and attributes that may have one value
/// only. Each thing that is wrong is said once, with the template's line, the first entry that has
/// it, and how many have it.
///
/// The exit status is 0 if all entries are right, 1 if not.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway data check people.template
      all entries, against the definitions that are built in
  keyway data check people.template --each 1000 --schema our.schema
      the first thousand of each branch and template; with definitions of ours beside those
  keyway data check people.template --to ldaps://ldap.example.com --bind-dn DN \\
      --password-file FILE
      against the schema that this server publishes, and nothing else

Definitions are files of attribute types and object classes as OpenLDAP has them (.schema, or LDIF
of cn=config), or LDIF of a subschema entry as 389 Directory Server has it.")]
pub struct Check {
    #[command(flatten)]
    pub entries: Entries,
    /// Check no more than the first N entries of each branch and template
    #[arg(long, value_name = "N", value_parser = count, conflicts_with_all = ["from", "count"])]
    pub each: Option<u64>,
    /// Definitions beside those that are built in (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    pub schema: Vec<PathBuf>,
    /// Take the schema of a server (ldap:// or ldaps://)
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    #[command(flatten)]
    pub access: Access,
    /// Say what was found as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Show the tags that a template can have
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway data tags
      all of them
  keyway data tags random
      one: its forms, what it does, an example")]
pub struct Tags {
    /// The tag
    #[arg(value_name = "TAG")]
    pub name: Option<String>,
}

/// Print a template that is built in, to begin one's own with
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway data template > people.template
  keyway data template people_and_groups")]
pub struct Template {
    /// Which: example or people_and_groups
    #[arg(value_name = "NAME", default_value = "example")]
    pub name: String,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// RFC 2849
    Ldif,
    /// RFC 4180, several values with | between
    Csv,
}

/// The operation of change records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Changes {
    /// Add the entries
    Add,
    /// Replace values by those of --generation
    Modify,
    /// Delete the entries, those below first
    Delete,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// RFC 1952
    Gzip,
    /// RFC 8878
    Zstd,
    /// Not at all
    None,
}

/// The question of filters about an attribute.
#[derive(Clone, Copy, Debug)]
pub struct FilterKind(pub Kind);

impl Generate {
    /// Whether standard output has something else than an answer.
    pub fn writes_to_standard_output(&self) -> bool {
        match self {
            Generate::Make(make) => {
                make.to.is_none() && make.into.is_none() && make.output.as_os_str() == "-"
            }
            Generate::Check(_) => false,
            Generate::Tags(_) | Generate::Template(_) => true,
        }
    }
}

/// The format that a file is to have, by its name.
fn by_name(file: &Path) -> FileFormat {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let packed = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending));
    match packed.unwrap_or(&name).ends_with(".csv") {
        true => FileFormat::Csv,
        false => FileFormat::Ldif,
    }
}

impl Make {
    /// How entries are written to a file.
    ///
    /// # Errors
    /// If the flags contradict each other.
    pub fn entry_format(&self, attributes: &[&str]) -> Result<Format, Failure> {
        let format = self.format.unwrap_or_else(|| by_name(&self.output));
        let wanted = (!self.attributes.is_empty()).then(|| self.attributes.clone());
        if wanted.is_some() && self.changes != Some(Changes::Modify) {
            return Err(Failure::usage("--attributes is for --changes modify"));
        }
        Ok(match (self.changes, format) {
            (Some(_), FileFormat::Csv) => {
                return Err(Failure::usage(
                    "--changes writes LDIF; leave out --format csv, or add --format ldif for a file that is \
                     called .csv",
                ));
            }
            (Some(Changes::Add), _) => Format::Add,
            (Some(Changes::Delete), _) => Format::Delete,
            (Some(Changes::Modify), _) if self.entries.generation == 0 => {
                return Err(Failure::usage(
                    "--changes modify changes entries into another generation; say which, \
                     --generation 1",
                ));
            }
            (Some(Changes::Modify), _) => Format::Modify(wanted),
            (None, FileFormat::Ldif) if !self.columns.is_empty() => {
                return Err(Failure::usage("--columns is for CSV (--format csv, or a file .csv)"));
            }
            (None, FileFormat::Ldif) => Format::Ldif,
            (None, FileFormat::Csv) if self.columns.is_empty() => {
                Format::Csv(attributes.iter().map(|it| (*it).to_owned()).collect())
            }
            (None, FileFormat::Csv) => Format::Csv(self.columns.clone()),
        })
    }

    /// How many threads make entries.
    pub fn thread_count(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(all)
    }
}

/// How a file is to be compressed: as the flag says, else as it is called.
pub fn compress(flag: Option<Compression>, file: &Path) -> Option<Compress> {
    match flag {
        Some(Compression::Gzip) => Some(Compress::Gzip),
        Some(Compression::Zstd) => Some(Compress::Zstd),
        Some(Compression::None) => None,
        None => Compress::by_name(file),
    }
}

fn filter(text: &str) -> Result<(String, FilterKind), String> {
    let (attribute, kind) = match text.split_once(':') {
        None => (text, Kind::Equality),
        Some((attribute, "eq" | "equality")) => (attribute, Kind::Equality),
        Some((attribute, "initial" | "sub")) => (attribute, Kind::Initial),
        Some((attribute, "final")) => (attribute, Kind::Final),
        Some(_) => return Err("write ATTRIBUTE, ATTRIBUTE:initial or ATTRIBUTE:final".to_owned()),
    };
    Ok((attribute.to_owned(), FilterKind(kind)))
}

fn matches(text: &str) -> Result<(u64, u64), String> {
    let bad = || "write MIN-MAX, such as 1-10".to_owned();
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (count(least)?, count(most)?);
    if least == 0 || least > most { Err(bad()) } else { Ok((least, most)) }
}
