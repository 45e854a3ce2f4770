//! A daemon, through its socket and its rings, by a client that has nothing of the engine's: so it
//! can do what no honest one would.

mod client;
mod hostile;
mod named;
mod requests;
mod served;
mod shared;
mod slow;

use served::Served;
