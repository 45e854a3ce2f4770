//! A list of operations on the terminal, in the manner of mitmproxy: filtered while a filter is typed,
//! each to be looked at as a tree beside its octets, marked, sorted, copied in other words.

mod book;
mod detail;
mod draw;
mod keys;
mod list;

use crate::limits::TUI_LOOK_EVERY;
use crate::terminal::Keys;
pub use book::Shared;
use book::{Book, What};
use detail::Detail;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use list::List;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyEventKind};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is shown.
enum Shows {
    List,
    Detail(Box<Detail>),
}

/// Over that, until a key comes.
enum Popup {
    Help,
    Words { title: String, text: String },
}

/// What a line is typed in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Filter,
    File,
    Copy,
}

impl Asks {
    fn label(self) -> &'static str {
        match self {
            Asks::Filter => "filter: ",
            Asks::File => "write to: ",
            Asks::Copy => "copy as: (l)dapsearch  l(d)if  (p)ython-ldap  (j)son  (t)ext ",
        }
    }
}

struct Prompt {
    kind: Asks,
    text: String,
    /// What the filter was before.
    before: String,
}

/// The state of the screen.
struct Screen {
    /// The files that are read, and not to be written over.
    captures: Vec<PathBuf>,
    /// What is read.
    source: String,
    list: List,
    shows: Shows,
    popup: Option<Popup>,
    prompt: Option<Prompt>,
    filter: String,
    /// What is wrong with what was typed in.
    wrong: Option<String>,
    /// What was done last.
    said: Option<String>,
    is_paused: bool,
    is_over: bool,
}

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

/// Shows what a book has until somebody ends it, or `stopped` is set; where it is `live`, the end of it
/// first. The terminal is what it was before, whatever ends it.
///
/// # Errors
/// If the terminal cannot be used.
pub fn run(
    source: String,
    live: bool,
    captures: &[PathBuf],
    book: &Shared,
    stopped: &AtomicBool,
) -> Result<(), Failure> {
    let remarks = book.clone();
    output::divert_notes(Some(Box::new(move |text| remarks.lock().remark(text))));
    let shown = show(Screen::new(source, live, captures), book, stopped);
    output::divert_notes(None);
    shown.map_err(|why| Failure::new(format!("cannot use the terminal: {}", plain(&why))))
}

fn show(screen: Screen, book: &Shared, stopped: &AtomicBool) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = look(&mut terminal, screen, book, stopped);
    // What could not be drawn is the error to be told.
    shown.and(ratatui::try_restore())
}

fn look(
    terminal: &mut DefaultTerminal,
    mut screen: Screen,
    book: &Shared,
    stopped: &AtomicBool,
) -> io::Result<()> {
    let (keys, mut drawn) = (Keys::open()?, None);
    while !screen.is_over && !stopped.load(Ordering::Relaxed) {
        {
            let book = book.lock();
            let state = (book.next(), book.is_complete, book.remarks.len());
            if drawn != Some(state) {
                screen.catch_up(&book);
                terminal.draw(|frame| draw::draw(frame, &mut screen, &book))?;
                drawn = Some(state);
            }
        }
        if let Some(event) = keys.next(TUI_LOOK_EVERY)? {
            if let Event::Key(key) = event
                && key.kind == KeyEventKind::Press
            {
                screen.key(key, &mut book.lock());
            }
            drawn = None;
        }
    }
    Ok(())
}

impl Screen {
    fn new(source: String, live: bool, captures: &[PathBuf]) -> Screen {
        Screen {
            captures: captures.to_vec(),
            source,
            list: List::new(live),
            shows: Shows::List,
            popup: None,
            prompt: None,
            filter: String::new(),
            wrong: None,
            said: None,
            is_paused: false,
            is_over: false,
        }
    }

    fn catch_up(&mut self, book: &Book) {
        if !self.is_paused {
            self.list.catch_up(book);
        }
    }

    /// Looks at the operation of the list that is selected.
    fn open(&mut self, book: &Book) {
        let selected = self.list.selected().and_then(|number| book.get(number));
        let Some(item) = selected else { return };
        let tab = match &self.shows {
            Shows::Detail(detail) => detail.tab,
            Shows::List => detail::Tab::Tree,
        };
        if let What::Operation(kept) = &item.what {
            self.list.follows = false;
            self.shows = Shows::Detail(Box::new(Detail::new(item.number, kept, tab)));
        }
    }
}
