//! A list of operations on the terminal, in the manner of mitmproxy: filtered while a filter is typed,
//! each to be looked at as a tree beside its octets, marked, sorted, copied in other words.

mod draw;

use crate::limits::TUI_LOOK_EVERY;
use crate::terminal::Keys;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keyway_decode::browse::{Browser, BrowserEffects, BrowserKey, SharedItems};
use keyway_decode::io::file::create;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Refuses where there is no terminal to be used.
///
/// # Errors
/// If standard output is none.
pub fn check() -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => Ok(()),
        false => {
            Err(Failure::usage("--tui needs a terminal; without it there are lines, or --json"))
        }
    }
}

/// Shows what there is until the user leaves, or `stopped` is set; where it is `live`, the end of it
/// first. The terminal is what it was before, whatever ends it.
///
/// # Errors
/// If the terminal cannot be used.
pub fn run(
    source: String,
    live: bool,
    captures: &[PathBuf],
    items: &SharedItems,
    stopped: &AtomicBool,
) -> Result<(), Failure> {
    let remarks = items.clone();
    output::divert_notes(Some(Box::new(move |text| remarks.lock().remark(text))));
    let shown = show(Browser::new(source, live), captures, items, stopped);
    output::divert_notes(None);
    shown.map_err(|why| Failure::new(format!("cannot use the terminal: {}", plain(&why))))
}

fn show(
    browser: Browser,
    captures: &[PathBuf],
    items: &SharedItems,
    stopped: &AtomicBool,
) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = look(&mut terminal, (browser, Effects { captures }), items, stopped);
    // A failure to draw is the error to be told.
    shown.and(ratatui::try_restore())
}

fn look(
    terminal: &mut DefaultTerminal,
    (mut browser, mut effects): (Browser, Effects<'_>),
    items: &SharedItems,
    stopped: &AtomicBool,
) -> io::Result<()> {
    let (keys, mut drawn) = (Keys::open()?, None);
    while !browser.is_over && !stopped.load(Ordering::Relaxed) {
        {
            let items = items.lock();
            let state = (items.next(), items.is_complete, items.remarks.len());
            if drawn != Some(state) {
                browser.catch_up(&items);
                terminal.draw(|frame| draw::draw(frame, &mut browser, &items))?;
                drawn = Some(state);
            }
        }
        if let Some(event) = keys.next(TUI_LOOK_EVERY)? {
            if let Event::Key(key) = event
                && key.kind == KeyEventKind::Press
            {
                let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                browser.key(named(key.code), is_control, &mut items.lock(), &mut effects);
            }
            drawn = None;
        }
    }
    Ok(())
}

/// The terminal's clipboard, and files.
struct Effects<'c> {
    /// The files that are read, and not to be written over.
    captures: &'c [PathBuf],
}

impl BrowserEffects for Effects<'_> {
    /// By what terminals call OSC 52.
    fn copy(&mut self, text: &[u8]) -> bool {
        let mut output = io::stdout().lock();
        let written = write!(output, "\x1b]52;c;{}\x07", STANDARD.encode(text));
        written.and_then(|()| output.flush()).is_ok()
    }

    fn write(&mut self, file: &Path, octets: &[u8]) -> Result<(), String> {
        let written = create(file, self.captures).and_then(|mut output| {
            output.write_all(octets).map_err(|why| Failure::system("write", file, &why))
        });
        written.map_err(|why| why.to_string())
    }
}

fn named(key: KeyCode) -> BrowserKey {
    match key {
        KeyCode::Char(character) => BrowserKey::Char(character),
        KeyCode::Up => BrowserKey::Up,
        KeyCode::Down => BrowserKey::Down,
        KeyCode::Left => BrowserKey::Left,
        KeyCode::Right => BrowserKey::Right,
        KeyCode::PageUp => BrowserKey::PageUp,
        KeyCode::PageDown => BrowserKey::PageDown,
        KeyCode::Home => BrowserKey::Home,
        KeyCode::End => BrowserKey::End,
        KeyCode::Enter => BrowserKey::Enter,
        KeyCode::Esc => BrowserKey::Escape,
        KeyCode::Tab => BrowserKey::Tab,
        KeyCode::Backspace => BrowserKey::Backspace,
        _ => BrowserKey::Other,
    }
}
