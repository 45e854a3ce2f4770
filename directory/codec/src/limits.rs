//! The bounds of the memory and the stack that a message from outside can claim.

/// How deep a filter may be nested; a lone item has depth 1.
pub const FILTER_DEPTH_MAX: usize = 64;

/// How many nodes a filter may have, with each piece of a substring assertion counted as one.
pub const FILTER_TERMS_MAX: usize = 4096;

/// How many controls a message may carry.
pub const CONTROLS_MAX: usize = 64;

/// How many attributes one request or entry may list, and how many changes one modify.
pub const ATTRIBUTES_MAX: usize = 4096;

/// How many attribute values one message may carry, over all its attributes.
///
/// An empty value takes two octets on the wire and some 24 in memory.
pub const VALUES_MAX: usize = 1 << 20;

/// How many URIs one referral or search reference may list.
pub const REFERRALS_MAX: usize = 64;

/// The greatest INTEGER of RFC 4511, `maxInt`: message ids, size and time limits stay below it.
pub const INTEGER_MAX: u32 = i32::MAX as u32;

/// How many RDNs a distinguished name may have.
pub const DN_RDNS_MAX: usize = 256;

/// How many attribute values one RDN may have.
pub const RDN_AVAS_MAX: usize = 64;

/// How deep a name may be a value within a name, when names are compared.
pub const DN_NESTING_MAX: usize = 4;

/// How many words, quoted strings and signs a schema description may have.
pub const DESCRIPTION_WORDS_MAX: usize = 1 << 16;

/// How many attribute types and object classes files may define together.
pub const DEFINITIONS_MAX: usize = 1 << 14;

/// How many names an OID may be given by, one by the next (`objectidentifier`).
pub const OBJECT_IDENTIFIER_DEPTH_MAX: usize = 16;

/// How many bytes the lines of one LDIF record may have together.
///
/// It bounds what a reader holds, and lets a group of several million members pass.
pub const LDIF_RECORD_BYTES_MAX: usize = 1 << 28;

/// How many bytes a header of the PROXY protocol may have, with all that a proxy adds to it.
pub const PROXY_HEADER_BYTES_MAX: usize = 1 << 12;
