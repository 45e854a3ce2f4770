//! Keyway and virtual machines.

mod machine;
