//! Findings, as text for people and as JSON for programs.

mod costs;
mod driver_list;
mod figures;
mod names;
mod picture;
mod profile;
mod suite;
mod table;

pub use driver_list::{DriverList, ListQuery};
pub use figures::{figures_heading, figures_text, figures_value, pending_text, pending_value};
pub use picture::plot;
pub use suite::{suite_text, suite_value};
pub use table::{cells_value, table_text};
