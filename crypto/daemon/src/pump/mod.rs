//! A pump: the thread that takes requests out of clients' rings, has the engine do them, and
//! answers.
//!
//! It goes round the pairs that were used lately, and takes from each what its client has
//! [credit](crate::fair) for. The requests it took from all of them go to the engine as one batch,
//! which is where requests of many processes meet in one pass of a driver. A pair that was idle for
//! about as long as a wake-up takes is *parked*: its client has to ring from then on, and it costs
//! nothing. When all are parked the pump sleeps.
//!
//! A turn takes no longer than [`TURN_NS_MAX`](crate::limits::TURN_NS_MAX) and one request. Slow requests, and those of
//! many bytes, go to the [slow class](crate::slow), as many of one client as it may have there, and are answered when
//! they are done. Nothing here waits for a client: one that takes no completions loses them, and one that stops or dies
//! holds up no other.
//!
//! All tables are this thread's (`state`). The control thread changes them by [`Command`]s, which
//! are applied between two turns, and before a handle is said to be unknown (`apply`). To
//! read it, begin with `running`, then `requests`, then `sleeping`.

mod apply;
mod client;
mod command;
mod freezing;
mod handle;
mod mailbox;
mod meters;
mod pair;
mod requests;
mod running;
mod sleeping;
mod state;

pub use command::{ClientId, Command, Position, Usage};
pub use handle::Pump;
pub use mailbox::{Finished, Mailbox};
