//! The bounds of the work and the memory that one request can claim of the directory.

use std::time::Duration;

/// Naming contexts that one server holds.
pub const NAMING_CONTEXTS_MAX: usize = 1_000;

/// Bytes of all definitions together that are made over LDAP.
pub const SCHEMA_CHANGES_BYTES_MAX: usize = 4 << 20;

/// Passwords that are stored anew at a time because a right one was given for a weaker value. It
/// is work that no client waits for; an account that finds no room tries again at its next bind.
pub const PASSWORD_UPGRADES_MAX: usize = 1;

/// Values that one attribute of an entry may have.
pub const ATTRIBUTE_VALUES_MAX: usize = 1 << 20;

/// Values of an attribute from which on they lie in the store's table of values and not in the entry's
/// record, so that one of them is found and changed without the others; in this crate's tests few.
pub const LARGE_VALUES_MIN: usize = if cfg!(test) { 12 } else { 512 };

/// Bytes of all values of an attribute from which on they lie in that table.
pub const LARGE_BYTES_MIN: usize = 64 << 10;

/// Size from which on an entry is sent in pieces, as they are read by its client, in bytes; in this crate's
/// tests small.
pub const ENTRY_PIECES_MIN: usize = if cfg!(test) { 600 } else { 64 << 10 };
/// Size from which on a value of such an entry is not kept until it is sent, in bytes.
pub const PIECE_VALUE_BYTES_MIN: usize = if cfg!(test) { 64 } else { 1 << 10 };
/// How long such an entry may take to be sent, and how many bytes more it may have for each second more.
pub const ENTRY_SEND_MAX: Duration = Duration::from_secs(30);
/// See [`ENTRY_SEND_MAX`].
pub const ENTRY_SEND_BYTES_S_MIN: u64 = 64 << 10;
/// States of the store that are kept for entries which are being sent.
pub const SNAPSHOTS_MAX: usize = 64;

/// Values below which they go back into the record, if they have not more than
/// [`LARGE_BYTES_KEPT_MIN`]: fewer, so that an attribute does not go to and fro.
pub const LARGE_VALUES_KEPT_MIN: usize = if cfg!(test) { 6 } else { 256 };

/// See [`LARGE_VALUES_KEPT_MIN`].
pub const LARGE_BYTES_KEPT_MIN: usize = 32 << 10;

/// Bytes of a normalised value up to which its parts are indexed; longer ones share one list.
pub const SUBSTRING_INDEXED_BYTES_MAX: usize = 512;

/// Words of a value up to which each is found by its sound; values with more share one list.
pub const APPROXIMATE_WORDS_MAX: usize = 64;

/// Ids that an ordering or prefix range may collect; a wider one is answered by walking the scope.
pub const RANGE_IDS_MAX: usize = 128 << 10;

/// Posting lists that a plan may unite; beyond that the scope is walked.
pub const UNION_LISTS_MAX: usize = 256;

/// Lookups of one conjunction that a plan compares; the rest are left to the filter.
pub const ALTERNATIVES_MAX: usize = 128;

/// Lookups of one conjunction that are counted to see whether they leave out candidates of the shortest.
pub const NARROWING_MAX: usize = 8;

/// Postings a plan counts before it calls a list long, and all long lists alike; never less than
/// the minimum, also for a search that returns few entries.
pub const COUNT_MAX: usize = 64 << 10;

/// See [`COUNT_MAX`].
pub const COUNT_MIN: usize = 512;

/// Attributes and kinds of index of which it is counted apart how many searches lack them; the rest are
/// counted together.
pub const UNINDEXED_COUNTED_MAX: usize = 256;

/// Shapes of filters that are counted apart; the rest are counted together. Each takes five counters.
pub const SHAPES_MAX: usize = 128;

/// Bytes of such a shape that are kept: it is a part of counters' names.
pub const SHAPE_BYTES_MAX: usize = 92;

/// Candidates that one step of a search looks at before it lets others run.
pub const STEP_CANDIDATES_MAX: usize = 4_096;

/// Tests of entries and values after which a step lets others run, however few candidates it has
/// looked at: a filter may have thousands of terms.
pub const STEP_TESTS_MAX: usize = 16 << 10;

/// Bytes of rows of the feed that a step of a search of the changelog reads before others have their turn.
pub const STEP_FEED_BYTES_MAX: u64 = 256 << 10;

/// Aliases that lead from one to the next before their end is not looked for any more.
pub const ALIAS_STEPS_MAX: usize = 16;

/// Aliases of a directory that searches follow below their bases: each search looks at all of them.
pub const ALIASES_MAX: usize = 256;

/// Search continuation references that one search returns.
pub const CONTINUATIONS_MAX: usize = 1_000;

/// Candidates between two looks at the clock.
pub const CLOCK_CANDIDATES: usize = 64;

/// Names of parents that are kept as they were understood, for each operation at a time.
pub const KNOWN_PARENTS_MAX: usize = 16;

/// Attribute descriptions whose verdict a search step remembers; others are judged every time.
pub const VERDICTS_MAX: usize = 256;

/// Verdicts that there is room for from the start: an entry seldom has more attributes.
pub const VERDICTS_FIRST: usize = 32;

/// Changes of one operation that a line of the audit log names; the rest are counted.
pub const AUDITED_CHANGES_MAX: usize = 64;

/// Bytes of a DN, filter or the like that are kept for a line of the log; the rest is left out.
pub const LOGGED_TEXT_BYTES_MAX: usize = 1_024;

/// Entries that one piece of building an index lists; in this crate's tests few, so that there are many
/// pieces.
pub const INDEX_PIECE_ENTRIES_MAX: usize = if cfg!(test) { 3 } else { 500 };

/// Keys after which such a piece takes no further entry.
pub const INDEX_PIECE_KEYS_MAX: usize = 16 << 10;

/// Rows that one piece of dropping an index removes.
pub const INDEX_PIECE_ROWS_MAX: usize = if cfg!(test) { 5 } else { 4_000 };

/// Records in one commit of an import.
pub const IMPORT_GROUP_RECORDS_MAX: usize = if cfg!(test) { 7 } else { 2_000 };

/// Groups of an import's records that the committer has at a time, so that neither it nor the reader waits for
/// the other.
pub const IMPORT_GROUPS_MAX: usize = 4;

/// Passwords that are hashed for one commit of an import: some seconds of work, so that it is seen
/// how far it is.
pub const IMPORT_GROUP_PASSWORDS_MAX: u64 = 256;

/// Access rules of the configuration.
pub const ACCESS_RULES_MAX: usize = 256;

/// Access rules that entries hold, all together.
pub const STORED_RULES_MAX: usize = 256;

/// Bytes of one of them.
pub const STORED_RULE_BYTES_MAX: usize = 16 << 10;

/// Decisions of access rules that the answer to one request names.
pub const DECISIONS_MAX: usize = 256;

/// Groups that one entry is found to be in, those in which its groups are included.
pub const MEMBERSHIPS_MAX: usize = 1_024;

/// Entries that lead to another one by an attribute, as far as a filter looks for them.
pub const CHAIN_IDS_MAX: usize = 16 << 10;

/// Chains of one filter that are looked up once a step; others anew for each entry.
pub const CHAINS_MAX: usize = 16;

/// Members of a group that a filter on `memberOf` turns into candidates; of a larger one the scope
/// is walked.
pub const MEMBER_IDS_MAX: usize = 128 << 10;

/// Values that name an entry which is deleted or renamed, or one below it, and follow it.
pub const REFERENCES_MAX: usize = 256 << 10;

/// Numbers that are looked at to find one that is free.
pub const NUMBERS_TRIED_MAX: usize = 1 << 20;

/// Values of `memberOf` in an import that are compared with the groups; the rest are counted.
pub const IMPORTED_MEMBER_OF_MAX: usize = 1 << 20;

/// Values of `memberOf` without such a group that are told one by one.
pub const DISAGREEMENTS_KEPT_MAX: usize = 100;

/// Schemes of passwords that an import tells one by one.
pub const IMPORT_SCHEMES_MAX: usize = 32;

/// Attributes without a definition that one import defines, because extensibleObject entries have them.
pub const IMPORT_DEFINED_MAX: usize = 1_000;

/// Bytes of the definitions in the head of an export.
pub const EXPORT_HEAD_BYTES_MAX: usize = SCHEMA_CHANGES_BYTES_MAX;

/// Bytes of a line in the head of an export, or at its end.
pub const EXPORT_LINE_BYTES_MAX: usize = 1 << 20;

/// Bytes of LDIF in one commit of an import.
pub const IMPORT_GROUP_BYTES_MAX: usize = 4 << 20;

/// Entries that an import names for each reason it notes.
pub const IMPORT_NOTED_ENTRIES_MAX: usize = 3;

/// Entries that may come before those above them.
pub const IMPORT_WAITING_MAX: usize = 1 << 20;

/// Bytes of them that are kept in memory where a file can be had.
pub const IMPORT_SPOOL_MEMORY_BYTES_MAX: usize = 16 << 20;

/// Errors that an import reports one by one; the rest are counted.
pub const IMPORT_ERRORS_KEPT_MAX: usize = 1_000;

/// Lines of the audit log that are kept in the store where the log cannot be written.
pub const AUDIT_KEPT_MAX: u64 = 100_000;

/// Readers of the feed that have a name.
pub const FEED_READERS_MAX: usize = 64;

/// Bytes of such a name.
pub const FEED_READER_NAME_BYTES_MAX: usize = 128;

/// How many times as long, and as many bytes, changes are kept that a reader with a name has not read.
pub const FEED_KEPT_FOR_READERS: u32 = 2;

/// Rows of the feed that are removed in one commit.
pub const FEED_TRIMMED_ROWS_MAX: u64 = 256;
