//! Which of them are shown, in what order, and which one is looked at.

use super::book::{Book, Item, What};
use keyway_decode::view::{Line, View};
use keyway_decode::{Kept, Query};
use std::cmp::Reverse;

/// Which are shown.
#[derive(Clone, Default)]
enum Wanted {
    #[default]
    All,
    Query(Query),
    /// Those whose line has this in it, whatever its case.
    Text(String),
}

impl Wanted {
    /// A filter, also without its parentheses, or any text.
    fn parse(text: &str) -> Result<Wanted, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Wanted::All);
        }
        let query = |text: &str| Query::parse(text).map_err(|why| why.to_string());
        if text.starts_with('(') {
            return query(text).map(Wanted::Query);
        }
        match query(&format!("({text})")) {
            Ok(found) => Ok(Wanted::Query(found)),
            Err(why) if text.contains(['=', '(', ')']) => Err(why),
            Err(_) => Ok(Wanted::Text(text.to_lowercase())),
        }
    }

    fn means(&self, item: &Item) -> bool {
        match (self, &item.what) {
            (Wanted::All, _) => true,
            (Wanted::Query(query), What::Operation(kept)) => query.matches(&kept.operation()),
            (Wanted::Query(_), What::Note(_)) => false,
            (Wanted::Text(text), _) => line(item).to_lowercase().contains(text),
        }
    }
}

/// An item as a line.
pub fn line(item: &Item) -> String {
    match &item.what {
        What::Note(line) => line.clone(),
        What::Operation(kept) => {
            let mut line = Vec::new();
            Line.operation(&kept.operation(), &mut line);
            String::from_utf8_lossy(&line).trim_end().to_owned()
        }
    }
}

/// What the list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Time,
    Latency,
    Code,
    Entries,
    Octets,
}

const ORDERS: [(Order, &str); 5] = [
    (Order::Time, "time"),
    (Order::Latency, "latency"),
    (Order::Code, "result"),
    (Order::Entries, "entries"),
    (Order::Octets, "octets"),
];

impl Order {
    pub fn name(self) -> &'static str {
        ORDERS.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| *name)
    }

    fn next(self) -> Order {
        let at = ORDERS.iter().position(|(order, _)| *order == self).unwrap_or_default();
        ORDERS.iter().cycle().nth(at + 1).map_or(self, |(order, _)| *order)
    }

    fn key(self, item: &Item) -> u64 {
        match self {
            Order::Time => item.number,
            Order::Latency => item.latency_ns.unwrap_or_default(),
            Order::Code => item.code.map_or(0, u64::from),
            Order::Entries => item.entries,
            Order::Octets => item.received,
        }
    }
}

/// What is shown of a book.
#[derive(Default)]
pub struct List {
    /// Numbers, in the order in which they are shown.
    shown: Vec<u64>,
    /// Up to where the book was looked at.
    seen: u64,
    wanted: Wanted,
    only_marked: bool,
    pub order: Order,
    pub is_reversed: bool,
    /// The last one is looked at, whatever comes.
    pub follows: bool,
    selected: Option<u64>,
    /// Of those shown, the first on the screen.
    pub top: usize,
}

impl List {
    /// One that may follow what comes.
    pub fn new(follows: bool) -> List {
        List { follows, ..List::default() }
    }

    /// Shows what this text means.
    ///
    /// # Errors
    /// Why it means nothing. Then nothing has changed.
    pub fn filter(&mut self, text: &str, book: &Book) -> Result<(), String> {
        self.wanted = Wanted::parse(text)?;
        self.refill(book);
        Ok(())
    }

    /// Takes what came, and forgets what went.
    pub fn catch_up(&mut self, book: &Book) {
        let first = book.first();
        if self.order == Order::Time && !self.is_reversed {
            let gone = self.shown.partition_point(|number| *number < first);
            self.shown.drain(..gone);
            self.top = self.top.saturating_sub(gone);
        } else {
            self.shown.retain(|number| *number >= first);
        }
        let before = self.shown.len();
        let new = book.since(self.seen).filter(|item| self.means(item));
        let new: Vec<u64> = new.map(|item| item.number).collect();
        self.shown.extend(new);
        self.seen = book.next();
        if before < self.shown.len() && (self.order != Order::Time || self.is_reversed) {
            self.sort(book);
        }
        self.keep_selection();
    }

    fn means(&self, item: &Item) -> bool {
        (!self.only_marked || item.is_marked) && self.wanted.means(item)
    }

    fn refill(&mut self, book: &Book) {
        let shown = book.since(0).filter(|item| self.means(item));
        self.shown = shown.map(|item| item.number).collect();
        self.seen = book.next();
        self.sort(book);
        self.keep_selection();
    }

    fn sort(&mut self, book: &Book) {
        let order = self.order;
        let key = |number: &u64| book.get(*number).map_or(0, |item| order.key(item));
        // The greatest first, but for time.
        if (order == Order::Time) == self.is_reversed {
            self.shown.sort_by_cached_key(|number| (Reverse(key(number)), *number));
        } else {
            self.shown.sort_by_cached_key(|number| (key(number), *number));
        }
    }

    fn keep_selection(&mut self) {
        let is_there = self.position().is_some();
        if self.follows {
            self.selected = self.shown.last().copied();
        } else if !is_there {
            self.selected = self.shown.get(self.top).or(self.shown.last()).copied();
        }
    }

    pub fn next_order(&mut self, book: &Book) {
        self.order = self.order.next();
        self.sort(book);
    }

    pub fn reverse(&mut self, book: &Book) {
        self.is_reversed = !self.is_reversed;
        self.sort(book);
    }

    pub fn show_only_marked(&mut self, book: &Book) {
        self.only_marked = !self.only_marked;
        self.refill(book);
    }

    pub fn shows_only_marked(&self) -> bool {
        self.only_marked
    }

    pub fn shown(&self) -> &[u64] {
        &self.shown
    }

    pub fn selected(&self) -> Option<u64> {
        self.selected
    }

    /// Where the one is that is looked at.
    pub fn position(&self) -> Option<usize> {
        let selected = self.selected?;
        if self.order == Order::Time && !self.is_reversed {
            return self.shown.binary_search(&selected).ok();
        }
        self.shown.iter().position(|number| *number == selected)
    }

    /// Looks at another one, so many further on. Whoever goes back does not follow any more.
    pub fn go(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        let at = self.position().unwrap_or_default().saturating_add_signed(by).min(last);
        self.follows &= by > 0;
        self.selected = self.shown.get(at).copied();
    }

    pub fn go_to_end(&mut self, end: bool) {
        self.follows = false;
        let chosen = if end { self.shown.last() } else { self.shown.first() };
        self.selected = chosen.copied();
    }

    /// Has the one that is looked at on a screen of so many lines.
    pub fn scroll(&mut self, lines: usize) {
        let at = self.position().unwrap_or_default();
        let least = (at + 1).saturating_sub(lines);
        self.top = self.top.clamp(least, at.max(least));
        self.top = self.top.min(self.shown.len().saturating_sub(lines));
    }
}

/// The operations of some items.
pub fn operations<'b>(book: &'b Book, numbers: &[u64]) -> Vec<&'b Kept> {
    let kept = |number: &u64| match &book.get(*number)?.what {
        What::Operation(kept) => Some(&**kept),
        What::Note(_) => None,
    };
    numbers.iter().filter_map(kept).collect()
}
