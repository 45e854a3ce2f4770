//! A process on its machine: its end and its errors, its output, signals, files and listeners that it was
//! handed, and the rights that it gives up. Nothing here knows of keys or directories.
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod decompress;
pub mod failure;
pub mod limits;
pub mod listeners;
pub mod notify;
pub mod output;
pub mod process_hardening;
pub mod progress;
pub mod same_file;
pub mod sandbox;
pub mod shutdown;
pub mod signals;
pub mod supervised;
pub mod text;
pub mod timestamp;
pub mod who;
