//! The bounds of the memory and the time that a template can claim.

/// Bytes of a template with all that it includes.
pub const TEMPLATE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a file of values that a template names.
pub const LIST_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a line of a template, as it is written.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of a line whose constants are replaced.
pub const EXPANDED_BYTES_MAX: usize = 1 << 20;
/// Files that a template may include, one by another at that.
pub const INCLUDES_MAX: usize = 64;
/// Branches and templates of a file.
pub const SECTIONS_MAX: usize = 256;
/// Lines of values that a branch or a template may have, with those that it inherits.
pub const LINES_MAX: usize = 4_096;
/// How many lines may take values of each other one after the other.
pub const CHAIN_MAX: usize = 256;
/// How deep templates may be subordinate to each other.
pub const DEPTH_MAX: usize = 32;
/// How deep tags may be nested.
pub const TAG_DEPTH_MAX: usize = 4;
/// Entries that a template may describe.
pub const ENTRIES_MAX: u64 = 1 << 53;
/// Entries of a subordinate template without a number: as many as are asked for.
pub const ENDLESS: u64 = 1 << 40;
/// Characters or bytes that one random tag may make.
pub const RANDOM_MAX: u64 = 4 << 20;
/// Values that a line may make with `<loop>` or `<ref>`.
pub const VALUES_MAX: u64 = 1 << 20;
/// Numbers that a Zipf distribution may choose from; each takes 8 bytes.
pub const ZIPF_MAX: u64 = 1 << 20;
/// Numbers that all Zipf distributions of a template may choose from.
pub const ZIPF_ALL_MAX: u64 = 8 << 20;
/// Bytes of all values of one entry; no LDIF reader of this workspace takes a longer record.
pub const ENTRY_BYTES_MAX: usize = 16 << 20;
/// The output of a command of `<exec>`, in bytes.
pub const EXEC_BYTES_MAX: u64 = 1 << 20;
/// Entries of a chunk, which one thread makes as a whole.
pub const CHUNK_ENTRIES: u64 = 1_024;
/// Bytes of a chunk's output after which a part of it is passed on.
pub const PART_BYTES: usize = 1 << 20;
/// Threads that make entries.
pub const THREADS_MAX: usize = 256;
/// Bytes of the values that filters are made of.
pub const FILTER_BYTES_MAX: usize = 2 << 30;
/// Refused entries whose reasons are kept.
pub const REASONS_MAX: usize = 10;
/// Bytes of an answer of a server.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Warnings about a template that are kept.
pub const WARNINGS_MAX: usize = 20;
/// Things that are wrong with the entries of a template, which are said each.
pub const FAULTS_SAID_MAX: usize = 1_000;
