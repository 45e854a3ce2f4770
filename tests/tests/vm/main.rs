//! Keyway and virtual machines.

mod bypass;
mod machine;
mod process;
mod site;
