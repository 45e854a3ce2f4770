//! (being written)
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod authority;
mod certificate;
mod cli;
mod data;
mod failure;
mod moment;
mod output;
mod sample;
mod top;

fn main() {}
