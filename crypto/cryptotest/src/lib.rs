//! Drivers looked at from outside: what they do, whether they are right, how fast they are. This is
//! what `keyway crypto` does, without its flags and output.
//!
//! - [`drivers`] and [`engine`] make what is looked at.
//! - [`Trial`] runs one operation over and over, by some threads, and checks every result;
//!   [`conformance`] has one driver pass the suite.
//! - [`Bench`] compares drivers over sizes; [`Plot`] draws that.
//! - [`chains`], [`features`] and [`crossovers`] say what a driver's report does not.
//! - [`report`] puts all of it into words and into JSON.
//!
//! Nothing here prints. An [`Interrupt`] ends whatever runs, from any thread.
#![forbid(unsafe_code)]

mod bench;
mod conformance;
mod drivers;
mod error;
mod interrupt;
mod list;
mod load;
mod maker;
mod plot;
pub mod report;
mod subject;
mod trial;
mod work;

pub use bench::{Bench, Cell, Event, Outcome, Table};
pub use conformance::conformance;
pub use drivers::{CARDS, Drivers, Spec, drivers, engine, known};
pub use error::{Error, LeftOut};
pub use interrupt::Interrupt;
pub use list::{Crossover, chains, crossovers, features};
pub use load::{Entry, Errors, LOST, WRONG, check_memory};
pub use plot::{Line, Plot};
pub use subject::Subject;
pub use trial::{Figures, Profile, StageTimes, Trial};
pub use work::{Work, signing, verifying};
