//! The one web page: what a server is doing, live, and load on it.
//!
//! [`serve`] answers browsers on a socket. The [`Auth`] decides which user may see the page; what there is to
//! see comes from a [`Source`] for each server, which is looked at once a second whether or not a browser
//! looks, so that a page that is opened later has the last minutes too ([`MonitorTarget`]). Load is put on the
//! servers that the program has named, and no others ([`Races`]).
//!
//! The page is plain HTML, CSS and modules of JavaScript (`page/`), with uPlot (`vendor/`, MIT) for its
//! graphs, all embedded. It asks for JSON:
//!
//! | | |
//! | --- | --- |
//! | `GET /api/hosts` | what is watched: `hosts`, a list of `name`, `up`, `why` not, `started_unix_ms`, and what to say where something is `missing` that a server of another kind does not tell |
//! | `GET /api/now?host=N&after=M` | looks after number M: `points`, each with `number`, `unix_ms`, `seconds` since the one before, `counts` (what was counted in that time, without what is 0), `now` (gauges), `times` (`count`, `mean`, `p50`, `p95`, `p99`, `max`, in nanoseconds, of that time), `host` (`cpu_share` of all processors, `memory_bytes` that are free, `written_bytes`, `received_bytes` and `sent_bytes` a second; null if it is another machine). `known` are the counters that a server of another kind has, `now_unix_ms` the page's time. `history` is another number when the page's process is another one |
//! | `GET /api/slow?host=N` | `operations`, the slowest of the last minutes, with their stages |
//! | `GET /api/filters?host=N` | `counters` of filters and of missing indexes, and `advice` |
//! | `GET /api/connections?host=N` | `connections`, and `total` |
//! | `GET /api/store?host=N` | `counters` of the store |
//! | `GET /api/crypto?host=N` | `counters` of drivers, algorithms and clients; `daemon`, cryptod's clients and keys |
//! | `GET /api/backups?host=N` | `done`, what was imported, exported and checked, the latest last (`unix_s`, `command`, `verdict`, `entries`, `bytes`, `seconds`, `file`, `base`, `served`, `why`); `export` and `check`, the last of these that count; `warnings` |
//! | `GET /api/load` | what can be run, on what, and how the last run goes |
//! | `POST /api/load/start`, `stop`, `rate` | an [`Order`], nothing, or `{"rate": N}`, `{"rate": N, "lane": 0}` |
//!
//! `counters` are `counts` (name: since the start, and in the last second), `now` and `times`
//! (`since_start` and `interval`). Names are those of `keyway top`; with underscores for points they are those of
//! `keyway metrics`.
#![forbid(unsafe_code)]

mod answer;
mod api;
mod auth;
mod history;
mod hosts;
pub mod limits;
mod monitor;
mod order;
mod page;
mod race;
mod router;
mod serve;
mod server_source;
mod sessions;
mod tls;

pub use auth::{Auth, AuthMethod, Random};
pub use hosts::hosts;
pub use monitor::{Detail, MonitorTarget, Source};
pub use order::Order;
#[doc(hidden)]
pub use race::scenario_of;
pub use race::{Races, Target};
pub use router::App;
#[doc(hidden)]
pub use router::field;
pub use serve::serve;
pub use server_source::{Advisor, IndexAdvice, ServerSource};
pub use tls::{PageTls, TlsOptions};
