//! The items that are shown, in what order, and the one that is looked at.

use super::items::{BrowsedItem, BrowsedItems, ItemBody};
use crate::{Kept, Query};
use std::cmp::Reverse;

/// The items that are shown.
#[derive(Clone, Debug, Default)]
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

    fn means(&self, item: &BrowsedItem) -> bool {
        match (self, &item.body) {
            (Wanted::All, _) => true,
            (Wanted::Query(query), ItemBody::Operation(kept)) => query.matches(&kept.operation()),
            (Wanted::Query(_), ItemBody::Note(_)) => false,
            (Wanted::Text(text), _) => item.line().to_lowercase().contains(text),
        }
    }
}

/// The key that the list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemOrder {
    /// As they came.
    #[default]
    Time,
    /// The slowest first.
    Latency,
    /// By result code, the greatest first.
    Code,
    /// By the number of entries found, the greatest first.
    Entries,
    /// By the bytes of the answers, the greatest first.
    Octets,
}

const ORDERS: [(ItemOrder, &str); 5] = [
    (ItemOrder::Time, "time"),
    (ItemOrder::Latency, "latency"),
    (ItemOrder::Code, "result"),
    (ItemOrder::Entries, "entries"),
    (ItemOrder::Octets, "octets"),
];

impl ItemOrder {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        ORDERS.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| *name)
    }

    fn next(self) -> ItemOrder {
        let at = ORDERS.iter().position(|(order, _)| *order == self).unwrap_or_default();
        ORDERS.iter().cycle().nth(at + 1).map_or(self, |(order, _)| *order)
    }

    fn key(self, item: &BrowsedItem) -> u64 {
        match self {
            ItemOrder::Time => item.number,
            ItemOrder::Latency => item.latency_ns.unwrap_or_default(),
            ItemOrder::Code => item.code.map_or(0, u64::from),
            ItemOrder::Entries => item.entries,
            ItemOrder::Octets => item.received,
        }
    }
}

/// The shown ones of all items.
#[derive(Debug, Default)]
pub struct ItemList {
    /// Numbers, in the order in which they are shown.
    shown: Vec<u64>,
    /// Up to where the items were looked at.
    seen: u64,
    wanted: Wanted,
    only_marked: bool,
    /// The key it is sorted by.
    pub order: ItemOrder,
    /// Whether the other way round.
    pub is_reversed: bool,
    /// The last one is looked at, whatever comes.
    pub follows: bool,
    selected: Option<u64>,
    /// The first shown one on the screen.
    pub top: usize,
}

impl ItemList {
    /// One that may follow what comes.
    #[must_use]
    pub fn new(follows: bool) -> ItemList {
        ItemList { follows, ..ItemList::default() }
    }

    /// Shows what this text means.
    ///
    /// # Errors
    /// Why it means nothing. Then nothing has changed.
    pub fn filter(&mut self, text: &str, items: &BrowsedItems) -> Result<(), String> {
        self.wanted = Wanted::parse(text)?;
        self.refill(items);
        Ok(())
    }

    /// Takes what came, and forgets what went.
    pub fn catch_up(&mut self, items: &BrowsedItems) {
        let first = items.first();
        if self.order == ItemOrder::Time && !self.is_reversed {
            let gone = self.shown.partition_point(|number| *number < first);
            self.shown.drain(..gone);
            self.top = self.top.saturating_sub(gone);
        } else {
            self.shown.retain(|number| *number >= first);
        }
        let before = self.shown.len();
        let new = items.since(self.seen).filter(|item| self.means(item));
        let new: Vec<u64> = new.map(|item| item.number).collect();
        self.shown.extend(new);
        self.seen = items.next();
        if before < self.shown.len() && (self.order != ItemOrder::Time || self.is_reversed) {
            self.sort(items);
        }
        self.keep_selection();
    }

    fn means(&self, item: &BrowsedItem) -> bool {
        (!self.only_marked || item.is_marked) && self.wanted.means(item)
    }

    fn refill(&mut self, items: &BrowsedItems) {
        let shown = items.since(0).filter(|item| self.means(item));
        self.shown = shown.map(|item| item.number).collect();
        self.seen = items.next();
        self.sort(items);
        self.keep_selection();
    }

    fn sort(&mut self, items: &BrowsedItems) {
        let order = self.order;
        let key = |number: &u64| items.get(*number).map_or(0, |item| order.key(item));
        // The greatest first, but for time.
        if (order == ItemOrder::Time) == self.is_reversed {
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

    /// Sorts by the next of the orders.
    pub fn next_order(&mut self, items: &BrowsedItems) {
        self.order = self.order.next();
        self.sort(items);
    }

    /// Sorts the other way round.
    pub fn reverse(&mut self, items: &BrowsedItems) {
        self.is_reversed = !self.is_reversed;
        self.sort(items);
    }

    /// Shows marked ones alone, or all again.
    pub fn show_only_marked(&mut self, items: &BrowsedItems) {
        self.only_marked = !self.only_marked;
        self.refill(items);
    }

    /// Whether marked ones are shown alone.
    #[must_use]
    pub fn shows_only_marked(&self) -> bool {
        self.only_marked
    }

    /// The numbers of those shown, in their order.
    #[must_use]
    pub fn shown(&self) -> &[u64] {
        &self.shown
    }

    /// The number of the one that is looked at.
    #[must_use]
    pub fn selected(&self) -> Option<u64> {
        self.selected
    }

    /// The place of the one that is looked at, among those shown.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        let selected = self.selected?;
        if self.order == ItemOrder::Time && !self.is_reversed {
            return self.shown.binary_search(&selected).ok();
        }
        self.shown.iter().position(|number| *number == selected)
    }

    /// Looks at another one, so many further on. One that goes back does not follow any more.
    pub fn go(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        let at = self.position().unwrap_or_default().saturating_add_signed(by).min(last);
        self.follows &= by > 0;
        self.selected = self.shown.get(at).copied();
    }

    /// Looks at the last one, or at the first.
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

/// The operations among the items with these numbers.
#[must_use]
pub fn operations<'b>(items: &'b BrowsedItems, numbers: &[u64]) -> Vec<&'b Kept> {
    let kept = |number: &u64| match &items.get(*number)?.body {
        ItemBody::Operation(kept) => Some(&**kept),
        ItemBody::Note(_) => None,
    };
    numbers.iter().filter_map(kept).collect()
}
