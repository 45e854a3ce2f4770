//! Attacks on `keyway cryptod` by clients of it, as outsiders have made them: each is one module. Beside
//! every one of them the daemon stays up, other clients are served, and SIGTERM ends it.
//!
//! To add one, make a file here, name it below, and write
//!
//! ```ignore
//! #[test]
//! fn such_a_thing_harms_no_client() {
//!     beside_neighbours(Cryptod::start(&[]), |cryptod| {
//!         let client = Client::new(cryptod.socket());
//!         ...                    // the attack
//!         client                 // what is returned lives until the daemon has ended
//!     });
//! }
//! ```
//!
//! - `keyway_tests::cryptod::Cryptod` is the built program on a fresh folder (`start`; `for_every_user` lets
//!   in every user, `as_user(UID, || ...)` connects as one), `figure("VmRSS")` and `open_files()` say what it
//!   has.
//! - `keyway_tests::ring_client` is a client by hand, which can send anything: its socket, its rings, its
//!   regions.
//! - `Neighbour` is an honest client on a thread: `goes_on()` waits until it has had 100 more things done, and
//!   `rounds()` says how many it had, to compare shares. `Neighbour::start` makes one that does something
//!   else (`Cryptod::engine` is a whole engine with the daemon behind it).
//! - No assertion is on time: a step that is never done fails after `PATIENCE`. An attack takes a second
//!   or two; `keyway_tests::nightly()` says when it may be as long as it likes.

mod audit;
mod crowds;
mod doorbell;
mod files;
mod holes;
mod key_files;
mod programs;
mod slow;
mod take_over;
