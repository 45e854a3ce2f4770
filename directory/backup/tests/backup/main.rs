//! Repositories of backups, through their API.

mod damage;
mod full;
mod kill;
mod locks;
mod model;
mod prune;
mod roundtrip;
mod secrets;
mod support;
