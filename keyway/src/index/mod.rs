//! Questions about indexes: which there are, what a search does with them, which are lacking.

mod advise;
mod arguments;
mod explain;
mod list;
mod reindex;

pub use advise::run as advise;
pub use arguments::{Advise, Explain, Indexes, Reindex};
pub use explain::run as explain;
pub use list::run as list;
pub use reindex::run as reindex;
