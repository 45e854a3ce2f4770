//! Operations browsed without a terminal: what keys do to the list, and what they have done outside.

use keyway_codec::message::{LdapResult, ResultCode};
use keyway_codec::{Message, Op};
use keyway_decode::browse::{
    Browser, BrowserEffects, BrowserKey, BrowserPage, BrowserPopup, DetailTab, RowTone,
    SharedItems, row,
};
use keyway_decode::view::Printer;
use keyway_decode::{Options, Side, Tap};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Noted {
    copied: Vec<u8>,
    written: Vec<(PathBuf, Vec<u8>)>,
    refuses: bool,
}

impl BrowserEffects for Noted {
    fn copy(&mut self, text: &[u8]) -> bool {
        self.copied = text.to_vec();
        true
    }

    fn write(&mut self, file: &Path, octets: &[u8]) -> Result<(), String> {
        if self.refuses {
            return Err("the disk is full".to_owned());
        }
        self.written.push((file.to_owned(), octets.to_vec()));
        Ok(())
    }
}

/// Deletes of these entries, with these results, over one connection.
fn deletes(all: &[(&str, ResultCode)]) -> SharedItems {
    let tap = Tap::default();
    let end = |port| SocketAddr::from(([127, 0, 0, 1], port));
    tap.opened(1, 0, end(4000), end(389));
    for (index, (name, code)) in all.iter().enumerate() {
        let id = index as u32 + 1;
        let mut octets = Vec::new();
        Message::new(id, Op::DeleteRequest(name)).encode(&mut octets);
        tap.octets(1, u64::from(id) * 1000, Side::First, &octets);
        octets.clear();
        Message::new(id, Op::DeleteResponse(LdapResult::new(*code, ""))).encode(&mut octets);
        tap.octets(1, u64::from(id) * 1000 + 10 * u64::from(id), Side::Second, &octets);
    }
    tap.end();
    let items = SharedItems::default();
    let mut printer = Printer::new(items.clone(), None, io::sink());
    let options = Options { keep_answers: true, ..Options::default() };
    tap.decode(options, &mut printer).unwrap();
    printer.end().unwrap();
    items
}

struct Screen {
    items: SharedItems,
    browser: Browser,
    effects: Noted,
}

impl Screen {
    fn of(all: &[(&str, ResultCode)]) -> Screen {
        let items = deletes(all);
        let mut browser = Browser::new("a.pcap".to_owned(), false);
        browser.catch_up(&items.lock());
        Screen { items, browser, effects: Noted::default() }
    }

    fn press(&mut self, key: BrowserKey) {
        self.browser.key(key, false, &mut self.items.lock(), &mut self.effects);
    }

    fn type_in(&mut self, text: &str) {
        text.chars().for_each(|character| self.press(BrowserKey::Char(character)));
    }

    fn status(&self) -> Result<String, String> {
        self.browser.status(&self.items.lock())
    }

    /// The rows that are shown.
    fn rows(&self) -> Vec<String> {
        let items = self.items.lock();
        let shown = self.browser.list.shown().iter();
        shown.filter_map(|number| items.get(*number)).map(|item| row(item, true).0).collect()
    }
}

const THREE: [(&str, ResultCode); 3] = [
    ("cn=one", ResultCode::Success),
    ("cn=two", ResultCode::NoSuchObject),
    ("cn=three", ResultCode::Success),
];

#[test]
fn a_filter_works_while_it_is_typed_and_escape_takes_it_back() {
    let mut screen = Screen::of(&THREE);
    assert_eq!(screen.rows().len(), 3);
    screen.press(BrowserKey::Char('f'));
    screen.type_in("code>=1");
    assert_eq!(screen.rows().len(), 1);
    assert!(screen.rows()[0].contains("cn=two"), "{:?}", screen.rows());
    screen.press(BrowserKey::Escape);
    assert_eq!(screen.rows().len(), 3);
    screen.press(BrowserKey::Char('/'));
    screen.type_in("ThreE");
    assert_eq!(screen.rows().len(), 1, "any text, whatever its case");
    screen.type_in("(");
    assert!(screen.status().is_err(), "half a filter is told");
    assert_eq!(screen.rows().len(), 1, "and what is shown has not changed");
    let mut items = screen.items.lock();
    screen.browser.key(BrowserKey::Char('u'), true, &mut items, &mut screen.effects);
    assert_eq!(screen.browser.list.shown().len(), 3, "Ctrl-U empties the line");
}

#[test]
fn failures_stand_out_and_orders_follow_one_another() {
    let mut screen = Screen::of(&THREE);
    let tones: Vec<RowTone> = screen.items.lock().since(0).map(|item| row(item, false).1).collect();
    assert_eq!(tones, [RowTone::Usual, RowTone::Failed, RowTone::Usual]);
    screen.press(BrowserKey::Char('s'));
    assert!(screen.rows()[0].contains("cn=three"), "the slowest first: {:?}", screen.rows());
    screen.press(BrowserKey::Char('S'));
    assert!(screen.rows()[0].contains("cn=one"), "{:?}", screen.rows());
    assert_eq!(screen.status().unwrap(), " by latency, reversed  complete");
    assert_eq!(screen.browser.title(&screen.items.lock()), " a.pcap  3 of 3");
}

#[test]
fn marked_ones_are_written_or_else_all_that_are_shown() {
    let mut screen = Screen::of(&THREE);
    screen.press(BrowserKey::Char('w'));
    screen.type_in("all.pcapng");
    screen.press(BrowserKey::Enter);
    screen.press(BrowserKey::Char('m'));
    screen.press(BrowserKey::Char('w'));
    screen.type_in("one.pcapng");
    screen.press(BrowserKey::Enter);
    let [(all, whole), (one, part)] = &screen.effects.written[..] else { panic!("two files") };
    assert_eq!((all.as_path(), one.as_path()), (Path::new("all.pcapng"), Path::new("one.pcapng")));
    assert!(part.len() < whole.len());
    assert!(screen.status().unwrap().ends_with("1 operations written to one.pcapng"));
    screen.effects.refuses = true;
    screen.press(BrowserKey::Char('w'));
    screen.type_in("two.pcapng");
    screen.press(BrowserKey::Enter);
    assert_eq!(screen.status(), Err(" the disk is full".to_owned()));
}

#[test]
fn one_is_looked_at_and_copied_in_other_words() {
    let mut screen = Screen::of(&THREE);
    screen.press(BrowserKey::Down);
    screen.press(BrowserKey::Enter);
    screen.press(BrowserKey::Tab);
    let BrowserPage::Detail(detail) = &screen.browser.page else { panic!("one operation") };
    assert_eq!(detail.tab, DetailTab::Octets);
    assert_eq!(detail.title(0), "request");
    assert!(detail.words().iter().any(|line| line.contains("cn=two")));
    screen.press(BrowserKey::Char('n'));
    let BrowserPage::Detail(detail) = &screen.browser.page else { panic!("the next one") };
    assert_eq!((detail.number, detail.tab), (2, DetailTab::Octets));
    screen.press(BrowserKey::Char('y'));
    screen.press(BrowserKey::Char('d'));
    let copied = String::from_utf8(screen.effects.copied.clone()).unwrap();
    assert!(copied.contains("dn: cn=three\nchangetype: delete"), "{copied}");
    assert!(matches!(screen.browser.popup, Some(BrowserPopup::Words { .. })));
    screen.press(BrowserKey::Other);
    assert!(screen.browser.popup.is_none());
    screen.press(BrowserKey::Escape);
    screen.press(BrowserKey::Char('q'));
    assert!(screen.browser.is_over);
}
