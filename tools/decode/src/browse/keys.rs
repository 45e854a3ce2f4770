//! The effects of keys.

use super::browser::{Browser, BrowserPage, BrowserPopup, BrowserPrompt, PromptKind};
use super::detail::DetailTab;
use super::items::{BrowsedItem, BrowsedItems};
use super::list::operations;
use crate::Kept;
use crate::limits::BROWSER_TEXT_BYTES_MAX;
use crate::say::{Changes, Commands, Packets, Python};
use crate::view::{Json, View};
use std::path::Path;

/// A key of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserKey {
    /// A letter, or another character.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A screen back.
    PageUp,
    /// A screen on.
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Tabulator.
    Tab,
    /// Backspace.
    Backspace,
    /// Any other.
    Other,
}

/// The effects of keys outside of the browser.
pub trait BrowserEffects {
    /// Gives text to the terminal to be pasted; whether that has worked.
    fn copy(&mut self, text: &[u8]) -> bool;

    /// Writes a file.
    ///
    /// # Errors
    /// Why it was not written.
    fn write(&mut self, file: &Path, octets: &[u8]) -> Result<(), String>;
}

/// A screen's length, nearly.
const SCREEN: isize = 18;

impl Browser {
    /// Does what a key asks for, pressed with Ctrl or without.
    pub fn key(
        &mut self,
        key: BrowserKey,
        is_control: bool,
        items: &mut BrowsedItems,
        effects: &mut dyn BrowserEffects,
    ) {
        self.said = None;
        if is_control && key == BrowserKey::Char('c') {
            self.is_over = true;
        } else if self.popup.take().is_some() {
            // Any key closes it.
        } else if self.prompt.is_some() {
            self.typed(key, is_control, items, effects);
        } else if !self.common(key, items) {
            match self.page {
                BrowserPage::List => self.list_key(key, items),
                BrowserPage::Detail(_) => self.detail_key(key, items),
            }
        }
    }

    /// The keys that are the same everywhere.
    fn common(&mut self, key: BrowserKey, items: &mut BrowsedItems) -> bool {
        match key {
            BrowserKey::Char('?') => self.popup = Some(BrowserPopup::Help),
            BrowserKey::Char('y') => self.ask(PromptKind::Copy, String::new()),
            BrowserKey::Char('w') => self.ask(PromptKind::File, String::new()),
            BrowserKey::Char('m') => self.mark(items),
            BrowserKey::Char('P') => self.is_paused = !self.is_paused,
            _ => return false,
        }
        true
    }

    fn list_key(&mut self, key: BrowserKey, items: &mut BrowsedItems) {
        match key {
            BrowserKey::Char('q') => self.is_over = true,
            BrowserKey::Up | BrowserKey::Char('k') => self.list.go(-1),
            BrowserKey::Down | BrowserKey::Char('j') => self.list.go(1),
            BrowserKey::PageUp => self.list.go(-SCREEN),
            BrowserKey::PageDown => self.list.go(SCREEN),
            BrowserKey::Home | BrowserKey::Char('g') => self.list.go_to_end(false),
            BrowserKey::End | BrowserKey::Char('G') => self.list.go_to_end(true),
            BrowserKey::Enter | BrowserKey::Right | BrowserKey::Char('l') => self.open(items),
            BrowserKey::Char('f' | '/') => self.ask(PromptKind::Filter, self.filter.clone()),
            BrowserKey::Char('F') => {
                self.list.follows = !self.list.follows;
                self.list.catch_up(items);
            }
            BrowserKey::Char('s') => self.list.next_order(items),
            BrowserKey::Char('S') => self.list.reverse(items),
            BrowserKey::Char(' ') => self.mark(items),
            BrowserKey::Char('M') => self.list.show_only_marked(items),
            BrowserKey::Char('u') => items.unmark_all(),
            _ => {}
        }
    }

    fn detail_key(&mut self, key: BrowserKey, items: &BrowsedItems) {
        let BrowserPage::Detail(detail) = &mut self.page else { return };
        match key {
            BrowserKey::Char('q') | BrowserKey::Escape | BrowserKey::Left => {
                self.page = BrowserPage::List
            }
            BrowserKey::Up | BrowserKey::Char('k') => detail.go(-1),
            BrowserKey::Down | BrowserKey::Char('j') => detail.go(1),
            BrowserKey::PageUp => detail.go(-SCREEN),
            BrowserKey::PageDown => detail.go(SCREEN),
            BrowserKey::Home | BrowserKey::Char('g') => detail.go(isize::MIN),
            BrowserKey::End | BrowserKey::Char('G') => detail.go(isize::MAX),
            BrowserKey::Char(' ') | BrowserKey::Enter => detail.fold(),
            BrowserKey::Tab => {
                detail.tab = match detail.tab {
                    DetailTab::Tree => DetailTab::Octets,
                    DetailTab::Octets => DetailTab::Words,
                    DetailTab::Words => DetailTab::Tree,
                }
            }
            BrowserKey::Char('n') => self.open_beside(1, items),
            BrowserKey::Char('p') => self.open_beside(-1, items),
            _ => {}
        }
    }

    fn open_beside(&mut self, by: isize, items: &BrowsedItems) {
        self.list.go(by);
        self.open(items);
    }

    fn mark(&mut self, items: &mut BrowsedItems) {
        if let Some(item) = self.list.selected().and_then(|number| items.get_mut(number)) {
            item.is_marked = !item.is_marked;
        }
        if let BrowserPage::List = self.page {
            self.list.go(1);
        }
    }

    fn ask(&mut self, kind: PromptKind, text: String) {
        self.prompt = Some(BrowserPrompt { kind, text, before: self.filter.clone() });
    }

    fn typed(
        &mut self,
        key: BrowserKey,
        is_control: bool,
        items: &BrowsedItems,
        effects: &mut dyn BrowserEffects,
    ) {
        let Some(mut prompt) = self.prompt.take() else { return };
        match (key, prompt.kind) {
            (BrowserKey::Escape, PromptKind::Filter) => {
                let before = std::mem::take(&mut prompt.before);
                return self.filter_by(before, items);
            }
            (BrowserKey::Escape, _) => return,
            (BrowserKey::Char(c), PromptKind::Copy) => return self.copy(c, items, effects),
            (BrowserKey::Enter, PromptKind::Filter) => {
                return self.filter_by(self.filter.clone(), items);
            }
            (BrowserKey::Enter, PromptKind::File) => {
                return self.write(&prompt.text, items, effects);
            }
            (BrowserKey::Backspace, _) => {
                prompt.text.pop();
            }
            (BrowserKey::Char('u'), _) if is_control => {
                prompt.text.clear();
            }
            (BrowserKey::Char(c), _) if prompt.text.len() < BROWSER_TEXT_BYTES_MAX => {
                prompt.text.push(c)
            }
            _ => {}
        }
        if prompt.kind == PromptKind::Filter {
            self.filter_by(prompt.text.clone(), items);
        }
        self.prompt = Some(prompt);
    }

    /// Filters by what is typed in, as soon as that means something.
    fn filter_by(&mut self, text: String, items: &BrowsedItems) {
        self.wrong = self.list.filter(&text, items).err();
        if self.wrong.is_none() {
            self.filter = text;
        }
    }

    /// Shows operations in other words, and gives them to the terminal to be pasted.
    fn copy(&mut self, form: char, items: &BrowsedItems, effects: &mut dyn BrowserEffects) {
        let chosen = self.chosen(items);
        let (title, text) = match form {
            'l' => ("ldap-utils", said(&mut Commands, &chosen)),
            'd' => ("LDIF", said(&mut Changes::default(), &chosen)),
            'p' => ("python-ldap", said(&mut Python::default(), &chosen)),
            'j' => ("JSON", said(&mut Json, &chosen)),
            't' => {
                let lines = self
                    .list
                    .selected()
                    .and_then(|number| items.get(number))
                    .map(BrowsedItem::line);
                ("text", lines.unwrap_or_default().into_bytes())
            }
            _ => return,
        };
        let copied = if text.len() <= BROWSER_TEXT_BYTES_MAX && effects.copy(&text) {
            "given to the terminal to be pasted"
        } else {
            "too long for the terminal; w writes files"
        };
        let title = format!(" {title} ({copied}) ");
        self.popup =
            Some(BrowserPopup::Words { title, text: String::from_utf8_lossy(&text).into_owned() });
    }

    /// Writes marked operations, or all that are shown, as pcapng.
    fn write(&mut self, file: &str, items: &BrowsedItems, effects: &mut dyn BrowserEffects) {
        let file = file.trim();
        if file.is_empty() {
            return;
        }
        let has_marked = items.since(0).any(|item| item.is_marked);
        let chosen = match has_marked {
            true => self.chosen(items),
            false => operations(items, self.list.shown()),
        };
        let written = effects.write(Path::new(file), &said(&mut Packets::default(), &chosen));
        match written {
            Ok(()) => self.said = Some(format!("{} operations written to {file}", chosen.len())),
            Err(why) => self.wrong = Some(why),
        }
    }
}

fn said(view: &mut impl View, operations: &[&Kept]) -> Vec<u8> {
    let mut out = Vec::new();
    operations.iter().for_each(|kept| view.operation(&kept.operation(), &mut out));
    view.end(&mut out);
    out
}
