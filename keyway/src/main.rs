//! (being written)
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod authority;
mod certificate;
mod data;
mod failure;
mod moment;
mod output;

fn main() {}
