//! The state of a screen on which operations are looked through, without the terminal.

use super::detail::{DetailTab, OperationDetail};
use super::items::{BrowsedItems, ItemBody};
use super::list::{ItemList, operations};
use crate::Kept;

/// The page that fills the screen.
#[derive(Debug)]
pub enum BrowserPage {
    /// The list.
    List,
    /// One operation of it.
    Detail(Box<OperationDetail>),
}

/// The popup that lies over that until a key comes.
#[derive(Debug)]
pub enum BrowserPopup {
    /// The help for the keys.
    Help,
    /// Operations in other words.
    Words {
        /// Their title.
        title: String,
        /// The words.
        text: String,
    },
}

/// The purpose of a line that is typed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// A filter.
    Filter,
    /// The name of a file.
    File,
    /// The form of a copy: one letter.
    Copy,
}

impl PromptKind {
    /// The label before the line.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            PromptKind::Filter => "filter: ",
            PromptKind::File => "write to: ",
            PromptKind::Copy => "copy as: (l)dapsearch  l(d)if  (p)ython-ldap  (j)son  (t)ext ",
        }
    }
}

/// A line that is typed in.
#[derive(Debug)]
pub struct BrowserPrompt {
    /// The purpose of the line.
    pub kind: PromptKind,
    /// The text that was typed so far.
    pub text: String,
    /// The filter before.
    pub(super) before: String,
}

/// The state of the screen.
#[derive(Debug)]
pub struct Browser {
    /// The source that is read.
    source: String,
    /// The operations that are shown.
    pub list: ItemList,
    /// The page that fills the screen.
    pub page: BrowserPage,
    /// The popup that lies over that.
    pub popup: Option<BrowserPopup>,
    /// The line that is typed in.
    pub prompt: Option<BrowserPrompt>,
    pub(super) filter: String,
    /// The fault of the typed text.
    pub(super) wrong: Option<String>,
    /// The message about the last action.
    pub(super) said: Option<String>,
    pub(super) is_paused: bool,
    /// Whether the user has left.
    pub is_over: bool,
}

impl Browser {
    /// One of this source; where that is `live`, the end of the list is looked at first.
    #[must_use]
    pub fn new(source: String, live: bool) -> Browser {
        Browser {
            source,
            list: ItemList::new(live),
            page: BrowserPage::List,
            popup: None,
            prompt: None,
            filter: String::new(),
            wrong: None,
            said: None,
            is_paused: false,
            is_over: false,
        }
    }

    /// Takes what came into the list, unless that is paused.
    pub fn catch_up(&mut self, items: &BrowsedItems) {
        if !self.is_paused {
            self.list.catch_up(items);
        }
    }

    /// Looks at the operation of the list that is selected.
    pub(super) fn open(&mut self, items: &BrowsedItems) {
        let selected = self.list.selected().and_then(|number| items.get(number));
        let Some(item) = selected else { return };
        let tab = match &self.page {
            BrowserPage::Detail(detail) => detail.tab,
            BrowserPage::List => DetailTab::Tree,
        };
        if let ItemBody::Operation(kept) = &item.body {
            self.list.follows = false;
            self.page = BrowserPage::Detail(Box::new(OperationDetail::new(item.number, kept, tab)));
        }
    }

    /// Marked ones, or the one that is looked at.
    pub(super) fn chosen<'b>(&self, items: &'b BrowsedItems) -> Vec<&'b Kept> {
        let marked: Vec<u64> =
            items.since(0).filter(|item| item.is_marked).map(|item| item.number).collect();
        match marked.is_empty() {
            true => operations(items, self.list.selected().as_slice()),
            false => operations(items, &marked),
        }
    }

    /// The source and how much of it is shown, in a line.
    #[must_use]
    pub fn title(&self, items: &BrowsedItems) -> String {
        let shown = self.list.shown().len();
        let mut text = format!(" {}  {shown} of {}", self.source, items.len());
        if items.dropped > 0 {
            text.push_str(&format!("; the oldest {} are not kept", items.dropped));
        }
        if items.dropped_marked > 0 {
            text.push_str(&format!(", {} of them marked", items.dropped_marked));
        }
        text
    }

    /// How the list is shown and what was said last, in a line.
    ///
    /// # Errors
    /// The fault of the typed text, in a line.
    pub fn status(&self, items: &BrowsedItems) -> Result<String, String> {
        if let Some(why) = &self.wrong {
            return Err(format!(" {why}"));
        }
        let ItemList { order, is_reversed, follows, .. } = &self.list;
        let mut parts = Vec::new();
        if !self.filter.is_empty() {
            parts.push(format!("filter {}", self.filter));
        }
        let reversed = if *is_reversed { ", reversed" } else { "" };
        parts.push(format!("by {}{reversed}", order.name()));
        let states = [
            (*follows, "follows"),
            (self.list.shows_only_marked(), "marked only"),
            (self.is_paused, "paused"),
            (items.is_complete, "complete"),
        ];
        parts.extend(states.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| (*name).to_owned()));
        parts.extend(self.said.as_ref().or(items.remarks.back()).cloned());
        Ok(format!(" {}", parts.join("  ")))
    }
}
