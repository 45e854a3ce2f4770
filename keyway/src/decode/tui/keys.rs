//! What keys do.

use super::book::Book;
use super::detail::Tab;
use super::list::{line, operations};
use super::{Asks, Popup, Prompt, Screen, Shows};
use crate::limits::TUI_TEXT_BYTES_MAX;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keyway_decode::Kept;
use keyway_decode::io::file::create;
use keyway_decode::say::{Changes, Commands, Packets, Python};
use keyway_decode::view::{Json, View};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::io::{self, Write};
use std::path::Path;

/// A screen's length, nearly.
const SCREEN: isize = 18;

impl Screen {
    pub(super) fn key(&mut self, key: KeyEvent, book: &mut Book) {
        self.said = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            self.is_over = true;
        } else if self.popup.take().is_some() {
            // Any key closes it.
        } else if self.prompt.is_some() {
            self.typed(key, book);
        } else if !self.common(key, book) {
            match self.shows {
                Shows::List => self.list_key(key, book),
                Shows::Detail(_) => self.detail_key(key, book),
            }
        }
    }

    /// What is the same everywhere.
    fn common(&mut self, key: KeyEvent, book: &mut Book) -> bool {
        match key.code {
            KeyCode::Char('?') => self.popup = Some(Popup::Help),
            KeyCode::Char('y') => self.ask(Asks::Copy, String::new()),
            KeyCode::Char('w') => self.ask(Asks::File, String::new()),
            KeyCode::Char('m') => self.mark(book),
            KeyCode::Char('P') => self.is_paused = !self.is_paused,
            _ => return false,
        }
        true
    }

    fn list_key(&mut self, key: KeyEvent, book: &mut Book) {
        match key.code {
            KeyCode::Char('q') => self.is_over = true,
            KeyCode::Up | KeyCode::Char('k') => self.list.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.list.go(1),
            KeyCode::PageUp => self.list.go(-SCREEN),
            KeyCode::PageDown => self.list.go(SCREEN),
            KeyCode::Home | KeyCode::Char('g') => self.list.go_to_end(false),
            KeyCode::End | KeyCode::Char('G') => self.list.go_to_end(true),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.open(book),
            KeyCode::Char('f' | '/') => self.ask(Asks::Filter, self.filter.clone()),
            KeyCode::Char('F') => {
                self.list.follows = !self.list.follows;
                self.list.catch_up(book);
            }
            KeyCode::Char('s') => self.list.next_order(book),
            KeyCode::Char('S') => self.list.reverse(book),
            KeyCode::Char(' ') => self.mark(book),
            KeyCode::Char('M') => self.list.show_only_marked(book),
            KeyCode::Char('u') => book.unmark_all(),
            _ => {}
        }
    }

    fn detail_key(&mut self, key: KeyEvent, book: &Book) {
        let Shows::Detail(detail) = &mut self.shows else { return };
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Left => self.shows = Shows::List,
            KeyCode::Up | KeyCode::Char('k') => detail.go(-1),
            KeyCode::Down | KeyCode::Char('j') => detail.go(1),
            KeyCode::PageUp => detail.go(-SCREEN),
            KeyCode::PageDown => detail.go(SCREEN),
            KeyCode::Home | KeyCode::Char('g') => detail.go(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => detail.go(isize::MAX),
            KeyCode::Char(' ') | KeyCode::Enter => detail.fold(),
            KeyCode::Tab => {
                detail.tab = match detail.tab {
                    Tab::Tree => Tab::Octets,
                    Tab::Octets => Tab::Words,
                    Tab::Words => Tab::Tree,
                }
            }
            KeyCode::Char('n') => self.open_beside(1, book),
            KeyCode::Char('p') => self.open_beside(-1, book),
            _ => {}
        }
    }

    fn open_beside(&mut self, by: isize, book: &Book) {
        self.list.go(by);
        self.open(book);
    }

    fn mark(&mut self, book: &mut Book) {
        if let Some(item) = self.list.selected().and_then(|number| book.get_mut(number)) {
            item.is_marked = !item.is_marked;
        }
        if let Shows::List = self.shows {
            self.list.go(1);
        }
    }

    fn ask(&mut self, kind: Asks, text: String) {
        self.prompt = Some(Prompt { kind, text, before: self.filter.clone() });
    }

    fn typed(&mut self, key: KeyEvent, book: &Book) {
        let Some(mut prompt) = self.prompt.take() else { return };
        match (key.code, prompt.kind) {
            (KeyCode::Esc, Asks::Filter) => {
                let before = std::mem::take(&mut prompt.before);
                return self.filter_by(before, book);
            }
            (KeyCode::Esc, _) => return,
            (KeyCode::Char(c), Asks::Copy) => return self.copy(c, book),
            (KeyCode::Enter, Asks::Filter) => return self.filter_by(self.filter.clone(), book),
            (KeyCode::Enter, Asks::File) => return self.write(&prompt.text, book),
            (KeyCode::Backspace, _) => {
                prompt.text.pop();
            }
            (KeyCode::Char('u'), _) if key.modifiers.contains(KeyModifiers::CONTROL) => {
                prompt.text.clear();
            }
            (KeyCode::Char(c), _) if prompt.text.len() < TUI_TEXT_BYTES_MAX => prompt.text.push(c),
            _ => {}
        }
        if prompt.kind == Asks::Filter {
            self.filter_by(prompt.text.clone(), book);
        }
        self.prompt = Some(prompt);
    }

    /// Filters by what is typed in, as soon as that means something.
    fn filter_by(&mut self, text: String, book: &Book) {
        self.wrong = self.list.filter(&text, book).err();
        if self.wrong.is_none() {
            self.filter = text;
        }
    }

    /// Marked ones, or the one that is looked at.
    fn chosen<'b>(&self, book: &'b Book) -> Vec<&'b Kept> {
        let marked: Vec<u64> =
            book.since(0).filter(|item| item.is_marked).map(|item| item.number).collect();
        match marked.is_empty() {
            true => operations(book, self.list.selected().as_slice()),
            false => operations(book, &marked),
        }
    }

    /// Shows operations in other words, and gives them to the terminal to be pasted.
    fn copy(&mut self, form: char, book: &Book) {
        let chosen = self.chosen(book);
        let (title, text) = match form {
            'l' => ("ldap-utils", said(&mut Commands, &chosen)),
            'd' => ("LDIF", said(&mut Changes::default(), &chosen)),
            'p' => ("python-ldap", said(&mut Python::default(), &chosen)),
            'j' => ("JSON", said(&mut Json, &chosen)),
            't' => {
                let lines = self.list.selected().and_then(|number| book.get(number)).map(line);
                ("text", lines.unwrap_or_default().into_bytes())
            }
            _ => return,
        };
        let copied = if text.len() <= TUI_TEXT_BYTES_MAX && to_clipboard(&text).is_ok() {
            "given to the terminal to be pasted"
        } else {
            "too long for the terminal; w writes files"
        };
        let title = format!(" {title} ({copied}) ");
        self.popup =
            Some(Popup::Words { title, text: String::from_utf8_lossy(&text).into_owned() });
    }

    /// Writes marked operations, or all that are shown, as pcapng.
    fn write(&mut self, file: &str, book: &Book) {
        let file = file.trim();
        if file.is_empty() {
            return;
        }
        let has_marked = book.since(0).any(|item| item.is_marked);
        let chosen = match has_marked {
            true => self.chosen(book),
            false => operations(book, self.list.shown()),
        };
        let path = Path::new(file);
        let written = create(path, &self.captures).and_then(|mut output| {
            let text = said(&mut Packets::default(), &chosen);
            output
                .write_all(&text)
                .map_err(|why| keyway_host::failure::Failure::system("write", path, &why))
        });
        match written {
            Ok(()) => self.said = Some(format!("{} operations written to {file}", chosen.len())),
            Err(why) => self.wrong = Some(why.to_string()),
        }
    }
}

fn said(view: &mut impl View, operations: &[&Kept]) -> Vec<u8> {
    let mut out = Vec::new();
    operations.iter().for_each(|kept| view.operation(&kept.operation(), &mut out));
    view.end(&mut out);
    out
}

/// What terminals call OSC 52.
fn to_clipboard(text: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    write!(output, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
    output.flush()
}
