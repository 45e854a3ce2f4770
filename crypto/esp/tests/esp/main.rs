//! ESP packets through a sealer and an opener, or what an attacker makes of them.

mod hostile;
mod lifetimes;
mod named;
mod packets;
mod policies;
mod round_trips;
mod support;
mod threads;
mod vectors;
