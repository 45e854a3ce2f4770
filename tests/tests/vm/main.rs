//! Keyway and virtual machines.

mod bypass;
mod device;
mod machine;
mod process;
mod site;
