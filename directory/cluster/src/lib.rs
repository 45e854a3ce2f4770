//! Several servers ("members") of one directory, one of which writes: the frames between them, and the logic of roles,
//! epochs, fencing, catch-up, trimming and reads of one's own writes.
//!
//! There is no I/O, no thread and no clock in here: octets, answers of stores and the time come in as arguments, so that
//! whole clusters can be run from a seed. A time is a [`Duration`](std::time::Duration) since any start, of a clock that does
//! not go back.
//!
//! ```text
//! follower ── Follow(place, highest reign heard) ──▶ writer     answer_follow: same history, its own past, rows kept
//!          ◀─ Following │ Refused(reason, reign) ──             Follower: to try elsewhere, or to stop for a person
//!          ◀─ Row… Heartbeat… ─────────────────────             Follower::row: number, digest before, epoch
//!          ── Acknowledge to each group and heartbeat ─▶        Progress: who is near, how far, what may be removed
//! promoted ── Prepare(reign) ─────────────────▶ any member     Standing::promise: takes no changes, no other promise
//!          ◀─ Promised(status) ────────────────                what it has is waited for, then Standing::may_begin
//! ```
//!
//! What the callers owe it, as the simulator shows:
//! - A reign that is heard of anywhere goes to [`Standing::heard`](role::Standing::heard), and is kept in the folder.
//! - A writer asks all members that are not near ([`Progress::is_near`](writer::Progress::is_near)) for their status: one of
//!   them may have been promoted while the end of its connection went lost.
//! - A read that was forwarded is answered only by a member that may write, and by [`OwnWrites`](own_writes::OwnWrites) too.
//! - A commit that is on the disk is answered when [`Standing::may_acknowledge`](role::Standing::may_acknowledge) says so.
//! - Rows that were received and not yet applied are forgotten when a member is promoted.
//! - With etcd a member's position counts only if it was asked after the doubt began ([`Lease::stands`](lease::Lease::stands)).
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

pub mod append;
mod backoff;
mod fence;
pub mod follower;
pub mod lease;
pub mod message;
pub mod own_writes;
pub mod promise;
pub mod role;
#[cfg(feature = "simulator")]
pub mod simulator;
pub mod writer;
