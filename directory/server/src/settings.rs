//! The settings of the directory: access, indexes, limits, the clock.

use crate::access::Rule;
use crate::clock::Clock;
use crate::feed::FeedRetention;
use crate::index::IndexSetting;
use crate::integrity::IntegritySetting;
use crate::log::Log;
use keyway_password::{Argon2Cost, Scheme};
use keyway_schema::Sources;

/// Settings of a [`crate::Directory`]. `Default` is what `keyway up` starts with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may do what; nothing else is allowed.
    pub rules: Vec<Rule>,
    /// The sources of the schema, beside the standard definitions.
    pub schema: Sources,
    /// Which attributes are indexed, and how.
    pub indexes: Vec<IndexSetting>,
    /// How entries that speak of each other are kept in agreement.
    pub integrity: IntegritySetting,
    /// Entries that one search returns to any subject but the administrator; 0 for no limit.
    pub search_entries_max: u32,
    /// Seconds that one search may take for any subject but the administrator; 0 for no limit.
    pub search_time_max_s: u32,
    /// Entries that a search may look at which no index helps; 0 for no limit. A scope with more is
    /// refused to all but the administrator.
    pub search_unindexed_max: u32,
    /// DNs of entries, and of groups, for which that limit does not hold.
    pub search_unindexed_free: Vec<String>,
    /// The cost of hashing a new password.
    pub password_cost: Argon2Cost,
    /// Schemes of stored passwords that are verified, beside our own.
    pub password_accept: Vec<Scheme>,
    /// The name of a key that new passwords are peppered with; a driver of the engine must hold it.
    pub password_pepper: Option<String>,
    /// Whether a right password is stored again as a new one where what is stored of it is weaker.
    pub password_upgrade: bool,
    /// The DN of the password policy of all who have none of their own.
    pub password_policy: Option<String>,
    /// Characters that a password has at least where no policy says anything else; 0 for no limit.
    pub password_min_length: u32,
    /// How long changes are kept in the feed.
    pub feed: FeedRetention,
    /// Where what happens is written down.
    pub log: Log,
    /// The clocks by which it stamps and measures.
    pub clock: Clock,
}

/// The values of the root DSE that the directory itself does not know: they are about the connection on
/// which it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Announced {
    /// OIDs of the extended operations.
    pub extensions: &'static [&'static str],
    /// Names of the SASL mechanisms.
    pub sasl_mechanisms: &'static [&'static str],
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rules: Rule::defaults(),
            schema: Sources::defaults(),
            indexes: IndexSetting::defaults(),
            integrity: IntegritySetting::default(),
            search_entries_max: 0,
            search_time_max_s: 3_600,
            search_unindexed_max: 1_000_000,
            search_unindexed_free: Vec::new(),
            password_cost: Argon2Cost::default(),
            password_accept: Scheme::defaults(),
            password_pepper: None,
            password_upgrade: true,
            password_policy: None,
            password_min_length: 8,
            feed: FeedRetention::default(),
            log: Log::default(),
            clock: Clock::default(),
        }
    }
}
