//! Limits on what is taken for a name.

/// Bytes of a DN in its text form that is looked up or added.
pub const NAME_BYTES_MAX: usize = 16 << 10;

/// Bytes of the name of an attribute type or object class. No schema has a longer one.
pub const DESCRIPTOR_BYTES_MAX: usize = 128;
