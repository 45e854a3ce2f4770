//! The counters of what runs on a data folder, for Prometheus and for OpenTelemetry.

mod collector;
mod model;
mod otlp;
mod pages;
mod prometheus;
mod push;

pub use collector::Collector;
pub use pages::{PageSource, of_folder, of_gateway, of_server, render};
pub use prometheus::CONTENT_TYPE;
pub use push::{Push, PushSettings, Pusher, Say, resource};
