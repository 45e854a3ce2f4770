//! Operations looked through on a screen, in the manner of mitmproxy: which are kept, which of them are shown in
//! what order, and what keys do. The terminal is elsewhere.

mod browser;
mod detail;
mod items;
mod keys;
mod list;
mod row;

pub use browser::{Browser, BrowserPage, BrowserPopup, BrowserPrompt, PromptKind};
pub use detail::{DetailRow, DetailTab, OperationDetail};
pub use items::{BrowsedItem, BrowsedItems, ItemBody, SharedItems};
pub use keys::{BrowserEffects, BrowserKey};
pub use list::{ItemList, ItemOrder};
pub use row::{RowTone, row};
