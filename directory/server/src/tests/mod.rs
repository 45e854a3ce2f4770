//! The directory from outside, without sockets.

mod access;
mod access_model;
mod changelog;
mod compare;
mod controls;
mod described;
mod disclosure;
mod export;
mod feed;
mod groups;
mod hostile;
mod import;
mod integrity;
mod large;
mod learnt;
mod model;
mod open;
mod ordering;
mod plan;
mod relax;
mod rights;
mod search;
mod special_entries;
mod stored_rules;
mod unindexed;
mod write;

use crate::controls::{RequestControls, ResponseControl};
use crate::{Announced, Clock, Directory, Failure, Settings, Step, Subject, WriteDone};
use keyway_codec::Filter;
use keyway_codec::message::{
    AddRequest, Attribute, Change, ChangeOperation, Deref, LdapResult, Message, ModifyDnRequest,
    ModifyRequest, Op, ResultCode, Scope, SearchRequest,
};
use keyway_store::{Options, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

pub const BASE: &str = "dc=example,dc=com";
pub const PEOPLE: &str = "ou=people,dc=example,dc=com";
pub const GROUPS: &str = "ou=groups,dc=example,dc=com";

/// The values of the root DSE about a connection, where there is none.
pub const ANNOUNCED: Announced = Announced { extensions: &["1.2.3"], sasl_mechanisms: &["PLAIN"] };

/// A directory in a folder that goes with it.
pub struct Fixture {
    pub directory: Directory,
    pub folder: TempDir,
}

/// When everything happens.
pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// A monotonic clock of which each look takes a second.
pub fn a_second_a_look() -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(|| (Clock::default().monotonic)());
    static SECONDS: AtomicU64 = AtomicU64::new(0);
    *START + Duration::from_secs(SECONDS.fetch_add(1, Ordering::Relaxed))
}

pub fn settings() -> Settings {
    let clock = Clock { wall: now, ..Clock::default() };
    // Passwords are as short as the tests.
    Settings { clock, password_min_length: 0, ..Settings::default() }
}

fn engine() -> keyway_engine::Engine {
    static ENGINE: OnceLock<keyway_engine::Engine> = OnceLock::new();
    ENGINE.get_or_init(keyway_drivers::engine).clone()
}

pub fn store(folder: &TempDir) -> Store {
    // No power is cut in these tests.
    let identity = Some(keyway_schema::operational::ENTRY_UUID);
    let options = Options { map_bytes_max: 256 << 20, sync: false, identity, ..Options::default() };
    Store::open(folder.path(), options).unwrap()
}

/// An empty directory with an administrator.
pub fn empty(settings: &Settings) -> Fixture {
    let folder = TempDir::new().unwrap();
    let directory = Directory::open(store(&folder), settings, engine()).unwrap();
    directory.bootstrap_administrator(b"{SSHA}none".to_vec()).unwrap();
    Fixture { directory, folder }
}

/// A directory with twenty entries below `dc=example,dc=com`: two units, fourteen people, three
/// groups.
pub fn filled() -> Fixture {
    filled_with(&settings())
}

pub fn filled_with(settings: &Settings) -> Fixture {
    let fixture = empty(settings);
    fixture.directory.add_naming_context(BASE).unwrap();
    fixture.add(BASE, &[("objectClass", &["domain"]), ("dc", &["example"])]);
    for (dn, ou) in [(PEOPLE, "people"), (GROUPS, "groups")] {
        fixture.add(dn, &[("objectClass", &["organizationalUnit"]), ("ou", &[ou])]);
    }
    let names = [
        ("ada", "Ada Lovelace"),
        ("alan", "Alan Turing"),
        ("barbara", "Barbara Liskov"),
        ("claude", "Claude Shannon"),
        ("donald", "Donald Knuth"),
        ("edsger", "Edsger Dijkstra"),
        ("frances", "Frances Allen"),
        ("grace", "Grace Hopper"),
        ("hedy", "Hedy Lamarr"),
        ("ivan", "Ivan Sutherland"),
        ("jean", "Jean Bartik"),
        ("kurt", "Kurt Gödel"),
        ("leslie", "Leslie Lamport"),
        ("margaret", "Margaret Hamilton"),
    ];
    for (number, (uid, cn)) in names.iter().enumerate() {
        let (given, sn) = cn.split_once(' ').unwrap();
        let (number, mail) = (format!("{}", 1000 + number), format!("{uid}@example.com"));
        fixture.add(
            &format!("uid={uid},{PEOPLE}"),
            &[
                ("objectClass", &["inetOrgPerson", "posixAccount"]),
                ("cn", &[cn]),
                ("givenName", &[given]),
                ("sn", &[sn]),
                ("mail", &[&mail]),
                ("uidNumber", &[&number]),
                ("gidNumber", &["100"]),
                ("homeDirectory", &["/home"]),
            ],
        );
    }
    let members = |count: usize| -> Vec<String> {
        names.iter().take(count).map(|(uid, _)| format!("uid={uid},{PEOPLE}")).collect()
    };
    for (cn, count) in [("few", 1), ("some", 5), ("all", 14)] {
        let members = members(count);
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let attributes: [(&str, &[&str]); 2] =
            [("objectClass", &["groupOfNames"]), ("member", &members)];
        fixture.add(&format!("cn={cn},{GROUPS}"), &attributes);
    }
    fixture
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub fn attribute<'a>(description: &'a str, values: &[&'a str]) -> Attribute<'a> {
    let values = values.iter().map(|value| value.as_bytes().into()).collect();
    Attribute { description: description.into(), values }
}

pub fn change<'a>(
    operation: ChangeOperation,
    description: &'a str,
    values: &[&'a str],
) -> Change<'a> {
    Change { operation, attribute: attribute(description, values) }
}

/// A search request for everything below the sample's top.
pub fn request(filter: &str) -> SearchRequest<'_> {
    SearchRequest {
        base: BASE,
        scope: Scope::Subtree,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter: Filter::parse(filter).unwrap(),
        attributes: vec!["1.1"],
    }
}

/// Attributes, their values as text.
pub type Texts = Vec<(String, Vec<String>)>;

/// The outcome of a search.
#[derive(Debug, Default)]
pub struct Found {
    pub entries: Vec<(String, Texts)>,
    /// URLs of search continuation references.
    pub references: Vec<String>,
    pub result: Option<LdapResult<'static>>,
    pub controls: Vec<ResponseControl>,
}

impl Found {
    pub fn code(&self) -> ResultCode {
        self.result.as_ref().unwrap().code
    }

    /// The first RDN's value of every entry, sorted.
    pub fn names(&self) -> Vec<String> {
        let name = |dn: &String| {
            let rdn = dn.split(',').next().unwrap_or_default();
            rdn.split_once('=').map_or(dn.clone(), |(_, value)| value.to_owned())
        };
        let mut names: Vec<_> = self.entries.iter().map(|(dn, _)| name(dn)).collect();
        names.sort();
        names
    }

    /// The values of the first entry's attribute.
    pub fn values(&self, name: &str) -> Vec<String> {
        let (_, attributes) = self.entries.first().expect("an entry was found");
        let found = attributes.iter().find(|(found, _)| found == name);
        found.map(|(_, values)| values.clone()).unwrap_or_default()
    }

    /// The descriptions of the first entry's attributes, sorted.
    pub fn descriptions(&self) -> Vec<String> {
        let (_, attributes) = self.entries.first().expect("an entry was found");
        let mut names: Vec<_> = attributes.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }
}

pub fn code<T>(result: Result<T, Failure>) -> ResultCode {
    match result {
        Ok(_) => ResultCode::Success,
        Err(failure) => {
            assert!(!failure.diagnostic.is_empty(), "{failure:?} explains itself");
            failure.code
        }
    }
}

/// Encoded entries, understood again.
pub fn decode(bytes: &[u8]) -> Vec<(String, Texts)> {
    let (entries, references) = decode_all(bytes);
    assert!(references.is_empty(), "{references:?}");
    entries
}

/// The same, and the URLs of references.
fn decode_all(mut bytes: &[u8]) -> (Vec<(String, Texts)>, Vec<String>) {
    let (mut entries, mut references) = (Vec::new(), Vec::new());
    while let Some(length) = keyway_codec::ber::frame(bytes, usize::MAX).unwrap() {
        let (message, rest) = bytes.split_at(length);
        let message = Message::decode(message).unwrap();
        match message.op {
            Op::SearchResultEntry(entry) => {
                entries.push((entry.dn.into_owned(), texts(&entry.attributes)));
            }
            Op::SearchResultReference(urls) => {
                references.extend(urls.iter().map(|url| (*url).into()))
            }
            other => panic!("no entry: {other:?}"),
        }
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    (entries, references)
}

pub fn texts(attributes: &[Attribute<'_>]) -> Texts {
    let text = |value: &std::borrow::Cow<'_, [u8]>| String::from_utf8_lossy(value).into_owned();
    attributes
        .iter()
        .map(|one| (one.description.to_string(), one.values.iter().map(text).collect()))
        .collect()
}

impl Fixture {
    pub fn administrator(&self) -> Subject {
        self.subject(crate::ADMINISTRATOR_DN)
    }

    pub fn user(&self, uid: &str) -> Subject {
        self.subject(&format!("uid={uid},{PEOPLE}"))
    }

    pub fn subject(&self, dn: &str) -> Subject {
        self.directory.credentials(dn).unwrap().expect("the subject is there").subject
    }

    pub fn add(&self, dn: &str, attributes: &[(&str, &[&str])]) {
        self.try_add(dn, attributes).unwrap();
    }

    pub fn try_add(&self, dn: &str, attributes: &[(&str, &[&str])]) -> Result<WriteDone, Failure> {
        self.add_as(&self.administrator(), dn, attributes, &RequestControls::default())
    }

    pub fn add_as(
        &self,
        subject: &Subject,
        dn: &str,
        attributes: &[(&str, &[&str])],
        controls: &RequestControls<'_>,
    ) -> Result<WriteDone, Failure> {
        let attributes = attributes.iter().map(|(name, values)| attribute(name, values)).collect();
        let request = AddRequest { dn, attributes };
        block_on(self.directory.add(subject, &request, controls))
    }

    pub fn modify(&self, dn: &str, changes: Vec<Change<'_>>) -> Result<WriteDone, Failure> {
        self.modify_as(&self.administrator(), dn, changes, &RequestControls::default())
    }

    pub fn modify_as(
        &self,
        subject: &Subject,
        dn: &str,
        changes: Vec<Change<'_>>,
        controls: &RequestControls<'_>,
    ) -> Result<WriteDone, Failure> {
        let request = ModifyRequest { dn, changes };
        block_on(self.directory.modify(subject, &request, controls))
    }

    pub fn delete(&self, dn: &str) -> Result<WriteDone, Failure> {
        let controls = RequestControls::default();
        block_on(self.directory.delete(&self.administrator(), dn, &controls))
    }

    pub fn rename(
        &self,
        dn: &str,
        new_rdn: &str,
        delete_old_rdn: bool,
        new_superior: Option<&str>,
    ) -> Result<WriteDone, Failure> {
        let request = ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior };
        let controls = RequestControls::default();
        block_on(self.directory.modify_dn(&self.administrator(), &request, &controls))
    }

    /// Runs a search to its end, a step of a few entries at a time.
    pub fn run(
        &self,
        subject: &Subject,
        request: &SearchRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Found, Failure> {
        let mut search = self.directory.search(subject, request, controls, ANNOUNCED)?;
        let mut out = Vec::new();
        loop {
            if let Step::Done(result, controls) = search.step(&self.directory, 7, &mut out, 500) {
                let ((entries, references), result) = (decode_all(&out), Some(result));
                return Ok(Found { entries, references, result, controls });
            }
        }
    }

    pub fn search(&self, request: &SearchRequest<'_>) -> Found {
        self.run(&self.administrator(), request, &RequestControls::default()).unwrap()
    }

    /// The names of all entries that match.
    pub fn names(&self, filter: &str) -> Vec<String> {
        let found = self.search(&request(filter));
        assert_eq!(found.code(), ResultCode::Success);
        found.names()
    }

    /// One entry with these attributes.
    pub fn read(&self, dn: &str, attributes: &[&'static str]) -> Found {
        self.read_as(&self.administrator(), dn, attributes)
    }

    pub fn read_as(&self, subject: &Subject, dn: &str, attributes: &[&'static str]) -> Found {
        let request = SearchRequest {
            base: dn,
            scope: Scope::Base,
            attributes: attributes.to_vec(),
            ..request("(objectClass=*)")
        };
        self.run(subject, &request, &RequestControls::default()).unwrap()
    }
}
