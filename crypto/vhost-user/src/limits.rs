//! What one virtual machine may ask for.

/// Most regions of a memory table. QEMU has as many as there are blocks of shared RAM.
pub const REGIONS_MAX: usize = 32;
/// Most bytes of a message behind its header: a memory table of [`REGIONS_MAX`] and a session of QEMU's are shorter.
pub const PAYLOAD_BYTES_MAX: usize = 4_096;
/// Most descriptors of an indirect table. Linux makes tables longer than its ring, where a request's pages are
/// scattered.
pub const INDIRECT_DESCRIPTORS_MAX: usize = 65_536;
/// Longest key of a session, in bytes: an RSA private key of 8,192 bits has fewer.
pub const KEY_BYTES_MAX: usize = 8_192;
/// Rings of the device: a data queue, and the control queue or a second data queue.
pub const RINGS: usize = 2;

/// What one virtual machine may have and ask for at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open sessions. Linux opens two for each key: one encrypts, one decrypts.
    pub sessions: usize,
    /// Bytes of a request's source and of its destination, each.
    pub request_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { sessions: 1_024, request_bytes: 1 << 20 }
    }
}
