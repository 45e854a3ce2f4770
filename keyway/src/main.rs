//! (being written)
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod admin;
mod authority;
mod certificate;
mod cli;
mod configuration;
mod data;
mod failure;
mod instance;
mod limits;
mod listeners;
mod moment;
mod offline;
mod output;
mod progress;
mod sample;
mod signals;
mod source;
mod top;
mod unfinished;

fn main() {}
