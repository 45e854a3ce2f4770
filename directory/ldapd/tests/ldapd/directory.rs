//! The entries that the tests find.

use crate::support::COST;
use keyway_codec::message::{AddRequest, Attribute, Change, ChangeOperation, ModifyRequest};
use keyway_engine::Engine;
use keyway_server::controls::RequestControls;
use keyway_server::{Clock, Directory, Settings, Subject};
use keyway_store::{EntryId, Options, Store};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

pub const BASE: &str = "dc=example,dc=com";
/// A user whose password is checked at once.
pub const FAST: &str = "uid=fast,dc=example,dc=com";
/// A user whose password is checked in the slow class.
pub const SLOW: &str = "uid=slow,dc=example,dc=com";
/// The password of both.
pub const PASSWORD: &str = "secret";
/// `PASSWORD`, hashed by Python.
const PASSWORD_SSHA512: &str = "{SSHA512}aCu7JRc+kLsuEmFs1zTY+AiP7DSGnjjG+dH28Dp+E5usqoAixeTPihKqZ\
                                mkWal4mUfp63tqvCAkFV1LKTDFH6XNhbHRzYWx0";
/// A user who is a certificate's subject.
pub const CERTIFIED: &str = "cn=Ada,o=Certified";
/// How many entries are big ones.
pub const BIG_ENTRIES: usize = 10;

/// Keeps the store's folder while a test runs.
pub struct Guard(#[expect(dead_code, reason = "held for its drop")] TempDir);

thread_local! {
    /// How far the directory's wall clock is ahead, in seconds: for tests of one thread.
    static AHEAD_S: Cell<u64> = const { Cell::new(0) };
}

/// Moves the wall clock on.
pub fn wait(seconds: u64) {
    AHEAD_S.set(AHEAD_S.get() + seconds);
}

fn wall() -> SystemTime {
    SystemTime::now() + Duration::from_secs(AHEAD_S.get())
}

pub async fn open(engine: Engine) -> (Arc<Directory>, Guard) {
    let folder = TempDir::new().unwrap();
    let options = Options { map_bytes_max: 64 << 20, sync: false, ..Options::default() };
    let store = Store::open(folder.path(), options).unwrap();
    // Passwords are as short as the tests.
    let (password_cost, password_min_length) = (COST, 0);
    let clock = Clock { wall, ..Clock::default() };
    let settings = Settings { password_cost, password_min_length, clock, ..Settings::default() };
    // Filled with an engine of its own, for the given one may be held up.
    let filling = Directory::open(store.clone(), &settings, keyway_drivers::engine()).unwrap();
    fill(&filling).await;
    drop(filling);
    (Arc::new(Directory::open(store, &settings, engine).unwrap()), Guard(folder))
}

async fn fill(directory: &Directory) {
    directory.add_naming_context(BASE).unwrap();
    directory.add_naming_context("o=Certified").unwrap();
    add(
        directory,
        BASE,
        &[("objectClass", "organization"), ("objectClass", "dcObject"), ("o", "E")],
    )
    .await;
    person(directory, FAST, &[("userPassword", PASSWORD_SSHA512)]).await;
    person(directory, SLOW, &[("userPassword", PASSWORD)]).await;
    let big = "x".repeat(16 << 10);
    for number in 0..BIG_ENTRIES {
        person(directory, &format!("uid=big{number},{BASE}"), &[("description", &big)]).await;
    }
    add(directory, "o=Certified", &[("objectClass", "organization")]).await;
    add(directory, CERTIFIED, &[("objectClass", "person"), ("sn", "L")]).await;
}

pub async fn person(directory: &Directory, dn: &str, more: &[(&str, &str)]) {
    let mut attributes = vec![("objectClass", "inetOrgPerson"), ("cn", "C"), ("sn", "S")];
    attributes.extend(more);
    add(directory, dn, &attributes).await;
}

pub fn administrator() -> Subject {
    Subject::administrator("cn=admin,cn=keyway", EntryId(1))
}

/// Replaces an attribute's values as the administrator does.
pub async fn replace(directory: &Directory, dn: &str, description: &str, values: &[&str]) {
    let values = values.iter().map(|value| value.as_bytes().into()).collect();
    let attribute = Attribute { description: description.into(), values };
    let changes = vec![Change { operation: ChangeOperation::Replace, attribute }];
    let request = ModifyRequest { dn, changes };
    let controls = RequestControls::default();
    directory.modify(&administrator(), &request, &controls).await.unwrap();
}

pub async fn add(directory: &Directory, dn: &str, attributes: &[(&str, &str)]) {
    let attributes = attributes
        .iter()
        .map(|(description, value)| Attribute {
            description: (*description).into(),
            values: vec![value.as_bytes().into()],
        })
        .collect();
    let request = AddRequest { dn, attributes };
    directory.add(&administrator(), &request, &RequestControls::default()).await.unwrap();
}
