//! The feed of a directory: all that was changed is in it, with its author and reason, for as long as was said.

use super::*;
use crate::policy::micros;
use crate::{ChangeNote, FeedReader, FeedRetention, Reason};
use keyway_store::{Change, FeedRow, RawRow};
use std::cell::Cell;

thread_local! {
    static SECONDS: Cell<u64> = const { Cell::new(0) };
}

/// A wall clock that this thread sets.
fn as_set() -> SystemTime {
    now() + Duration::from_secs(SECONDS.get())
}

fn rows(fixture: &Fixture, after: u64) -> Vec<FeedRow> {
    let read = fixture.directory.store.read().unwrap();
    let rows = read.view().feed_after(after).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Makes all changes of a directory again in an empty store, and compares the two.
pub fn replays(directory: &Directory) {
    let folder = TempDir::new().unwrap();
    let replayed = store(&folder);
    let read = directory.store.read().unwrap();
    replayed.replay(&read, &mut |_| {}).unwrap();
    let replayed = replayed.read().unwrap();
    assert_eq!(read.view().difference(replayed.view()).unwrap(), None);
    read.view().check().unwrap();
    for together in [1, 7] {
        is_followed(directory, together);
    }
}

/// Applies all changes of a directory in one that follows it, up to so many rows at once.
fn is_followed(directory: &Directory, together: usize) {
    let folder = TempDir::new().unwrap();
    let follower = store(&folder);
    let read = directory.store.read().unwrap();
    let mut rows = read.view().feed_after(0).unwrap().raw().map(Result::unwrap);
    // With this it has the schema, without which no directory is opened.
    follower.apply_row(&rows.next().unwrap()).unwrap();
    follower.write_now(|write| write.keep_contents()).unwrap();
    follower.follow(true);
    let settings = directory.shared.settings.read().unwrap().clone();
    let follower = Directory::open(follower, &settings, engine()).unwrap();
    let rows: Vec<RawRow> = rows.collect();
    let is_of_entries = |row: &RawRow| !row.changes().any(|it| matches!(it, Change::Meta(_)));
    for run in rows.chunk_by(|one, next| is_of_entries(one) && is_of_entries(next)) {
        for rows in run.chunks(together) {
            follower.apply(rows.into()).unwrap();
            assert_eq!(follower.position().unwrap(), rows.last().unwrap().position());
        }
    }
    follower.check(&mut |_, _| {}).unwrap();
    let applied = follower.store.read().unwrap();
    assert_eq!(read.view().difference(applied.view()).unwrap(), None);
    let contents = read.view().count_contents().unwrap();
    assert_eq!(applied.view().contents().unwrap(), Some(contents));
    assert_eq!(applied.view().count_contents().unwrap(), contents);
    assert_eq!(follower.naming_contexts(), directory.naming_contexts());
    let names = |one: &Directory| one.snapshot().composed.to_text();
    assert_eq!(names(&follower), names(directory));
    // It makes no change of its own.
    let request = AddRequest { dn: BASE, attributes: Vec::new() };
    let subject = Subject::administrator(crate::ADMINISTRATOR_DN, keyway_store::EntryId(1));
    assert!(block_on(follower.add(&subject, &request, &RequestControls::default())).is_err());
}

#[test]
fn all_that_was_changed_can_be_made_again() {
    let fixture = filled();
    let people = "ou=folk,dc=example,dc=com";
    fixture.rename(PEOPLE, "ou=folk", false, None).unwrap();
    fixture.rename(&format!("uid=ada,{people}"), "uid=countess", true, Some(GROUPS)).unwrap();
    fixture.delete(&format!("uid=alan,{people}")).unwrap();
    let changes = vec![
        change(ChangeOperation::Replace, "mail", &["new@example.com", "other@example.com"]),
        change(ChangeOperation::Add, "description", &["one", "two"]),
        change(ChangeOperation::Delete, "givenName", &[]),
    ];
    fixture.modify(&format!("uid=barbara,{people}"), changes).unwrap();
    fixture.modify(
        "cn=schema",
        vec![change(
            ChangeOperation::Add,
            "attributeTypes",
            &["( 1.2.3.4.5 NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )"],
        )],
    )
    .unwrap();
    fixture.directory.add_naming_context("dc=example,dc=org").unwrap();
    let before = rows(&fixture, 0).len();
    assert!(fixture.delete("ou=not there,dc=example,dc=com").is_err());
    assert_eq!(rows(&fixture, 0).len(), before, "what is refused is no change");
    replays(&fixture.directory);
}

#[test]
fn a_change_names_its_author_its_request_and_its_reason() {
    let fixture = filled();
    let from = fixture.directory.feed_status().unwrap().unwrap().head.position;
    let dn = format!("uid=ada,{PEOPLE}");
    let subject = fixture.administrator();
    let request = ModifyRequest {
        dn: &dn,
        changes: vec![change(ChangeOperation::Add, "description", &["x"])],
    };
    let op = Op::ModifyRequest(request);
    let prepared = fixture.directory.prepare(&subject, &op, &RequestControls::default()).unwrap();
    let origin =
        crate::RequestOrigin { connection: 17, operation: 4, ..crate::RequestOrigin::HERE };
    block_on(fixture.directory.carry_out(prepared, origin, None)).unwrap();
    let notes: Vec<ChangeNote> = rows(&fixture, from)
        .iter()
        .flat_map(|row| &row.jobs)
        .map(|job| ChangeNote::decode(&job.note).unwrap())
        .collect();
    let author = crate::ADMINISTRATOR_DN.to_owned();
    let wanted = ChangeNote {
        at: micros(now()),
        reason: Reason::Request,
        connection: 17,
        operation: 4,
        author,
    };
    assert_eq!(notes, [wanted]);
    let first = rows(&fixture, 0).remove(0);
    let first = ChangeNote::decode(&first.jobs[0].note).unwrap();
    assert_eq!((first.reason, first.author.as_str()), (Reason::Server, ""));
}

fn kept(keep_s: u64, bytes_max: u64) -> Fixture {
    let feed = FeedRetention { keep: Duration::from_secs(keep_s), bytes_max };
    let clock = Clock { wall: as_set, ..Clock::default() };
    let fixture = filled_with(&Settings { feed, clock, ..settings() });
    SECONDS.set(0);
    fixture
}

fn first(fixture: &Fixture) -> u64 {
    while fixture.directory.trim_feed().unwrap() {}
    fixture.directory.feed_status().unwrap().unwrap().head.first
}

fn describe(fixture: &Fixture, text: &str) -> u64 {
    let changes = vec![change(ChangeOperation::Replace, "description", &[text])];
    fixture.modify(&format!("uid=ada,{PEOPLE}"), changes).unwrap();
    fixture.directory.feed_status().unwrap().unwrap().head.position
}

#[test]
fn old_changes_go_and_those_that_a_reader_has_not_read_stay_for_longer() {
    let fixture = kept(6400, u64::MAX >> 8);
    let last = describe(&fixture, "now");
    assert_eq!(first(&fixture), 1);
    SECONDS.set(6500);
    let late = describe(&fixture, "later");
    assert_eq!(first(&fixture), 1, "the limit and a little more");
    SECONDS.set(6501);
    assert_eq!(first(&fixture), last + 1);
    fixture.directory.note_feed_reader("one", late - 1).unwrap();
    fixture.directory.note_feed_reader("two", late).unwrap();
    SECONDS.set(6500 + 12_900);
    assert_eq!(first(&fixture), late, "it is kept for the reader twice as long");
    fixture.directory.note_feed_reader("one", late).unwrap();
    assert_eq!(first(&fixture), late + 1);
    let status = fixture.directory.feed_status().unwrap().unwrap();
    let one = FeedReader { name: "one".into(), position: late };
    assert_eq!((status.readers.len(), &status.readers[0]), (2, &one));
    assert!(status.head.is_empty() && status.age.is_zero());
    fixture.directory.forget_feed_reader("one").unwrap();
    let no_such = fixture.directory.forget_feed_reader("one");
    assert_eq!(no_such.unwrap_err().code, ResultCode::NoSuchObject);
    for bad in ["", "a b", "a\nb", "é", &"x".repeat(200)] {
        let refused = fixture.directory.note_feed_reader(bad, 1).unwrap_err();
        assert_eq!(refused.code, ResultCode::ConstraintViolation);
    }
}

#[test]
fn no_more_bytes_are_kept_than_was_said_but_for_a_reader() {
    let fixture = kept(1 << 20, 64_000);
    let text = "x".repeat(1000);
    for n in 0..200 {
        describe(&fixture, &format!("{text}{n}"));
        first(&fixture);
        let status = fixture.directory.feed_status().unwrap().unwrap();
        assert!(status.head.bytes <= 65_000, "{status:?}");
    }
    let status = fixture.directory.feed_status().unwrap().unwrap();
    assert!(status.head.bytes > 60_000 && status.head.first > 100, "{status:?}");
    fixture.directory.note_feed_reader("slow", status.head.first).unwrap();
    for n in 0..200 {
        describe(&fixture, &format!("{text}{n}"));
        first(&fixture);
    }
    let status = fixture.directory.feed_status().unwrap().unwrap();
    assert!((120_000..=130_000).contains(&status.head.bytes), "{status:?}");
    // It has been left behind, and will be told so.
    assert!(status.readers[0].position + 1 < status.head.first);
}

#[test]
fn a_load_into_an_empty_directory_is_left_out_and_one_into_a_filled_one_is_not() {
    let fixture = empty(&settings());
    let before = fixture.directory.feed_status().unwrap().unwrap().head;
    fixture.directory.add_naming_context(BASE).unwrap();
    let load = |text: &str| {
        let options = crate::ImportOptions::default();
        fixture.directory.import(&mut text.as_bytes(), &options, &mut |_| {}).unwrap();
        fixture.directory.feed_status().unwrap().unwrap().head
    };
    let first = load("dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n");
    assert!(first.is_empty() && first.position > before.position, "{first:?}");
    let second = load(&format!("dn: {PEOPLE}\nobjectClass: organizationalUnit\nou: people\n"));
    assert_eq!(second.position, first.position + 1);
    let row = rows(&fixture, first.position).remove(0);
    assert_eq!(ChangeNote::decode(&row.jobs[0].note).unwrap().reason, Reason::Import);
}
