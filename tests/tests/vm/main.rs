//! Keyway and virtual machines.

mod device;
mod machine;
