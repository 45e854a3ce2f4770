//! Every bound of this crate, named, with its unit.

use std::time::Duration;

/// Most tokens of one daemon.
pub const TOKENS_MAX: usize = 8;
/// Sessions, each with a thread, that are open in one token at a time.
pub const SESSIONS_MAX: usize = 8;
/// Calls that wait for a session of one token.
pub const WAITING_MAX: usize = 256;
/// How long a call may take, with its wait for a session. A card that takes a second for each signature, with all its
/// sessions in use, still answers in time; a token that does not counts as silent.
pub const CALL_MAX: Duration = Duration::from_secs(20);
/// How long a token may take to make a key: a card may search for the primes of RSA for most of a minute, and the
/// manager who asked for it waits for a minute.
pub const GENERATE_MAX: Duration = Duration::from_secs(50);
/// How long a token that failed is left out where another one has the key; then a request tries it again.
pub const LEFT_OUT: Duration = Duration::from_secs(1);
/// How long other calls in a module may keep it from being started anew, and how long its tokens have to wait for that.
pub const RESTART: Duration = Duration::from_secs(2);
/// How long after a start of a module that does not show a token it is started again; from one to the next twice as
/// long, until the token is back.
pub const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two such starts.
pub const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long the end of the process waits for threads that are in a module, and then for the module's own end.
pub const CLOSE: Duration = Duration::from_secs(2);
/// How long the end of the process leaves requests to tokens before it gives them up. A card that takes a second for
/// each signature does a few more.
pub const LAST_CALLS: Duration = Duration::from_secs(5);
/// How long the start of the process waits for tokens. One that takes longer is looked for beside the daemon's work.
pub const LOOK: Duration = Duration::from_secs(2);
/// How long a trouble with a key in a token is not said again, and how many are remembered for each token.
pub const SAID: Duration = Duration::from_secs(60);
/// See [`SAID`].
pub const SAID_MAX: usize = 32;
/// Longest label of a token, in bytes (`CK_TOKEN_INFO`).
pub const LABEL_BYTES_MAX: usize = 32;
/// Longest PIN, in bytes.
pub const PIN_BYTES_MAX: usize = 256;
/// Longest `CKA_ID` of a key that is taken in, in bytes.
pub const ID_BYTES_MAX: usize = 256;
/// Length of the `CKA_ID` of a key that is made here, in bytes.
pub const NEW_ID_BYTES: usize = 16;
/// Most tokens that one key may be in.
pub const PLACES_MAX: usize = 4;
