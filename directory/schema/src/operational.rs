//! Operational attributes: those that the server keeps, and those that it works out when asked.

use std::time::{SystemTime, UNIX_EPOCH};

/// The entry's UUID, for good (RFC 4530). Stored.
pub const ENTRY_UUID: &str = "entryUUID";
/// Who added the entry. Stored.
pub const CREATORS_NAME: &str = "creatorsName";
/// When. Stored.
pub const CREATE_TIMESTAMP: &str = "createTimestamp";
/// Who changed the entry last. Stored.
pub const MODIFIERS_NAME: &str = "modifiersName";
/// When. Stored.
pub const MODIFY_TIMESTAMP: &str = "modifyTimestamp";
/// The structural object class the entry was made with. Stored.
pub const STRUCTURAL_OBJECT_CLASS: &str = "structuralObjectClass";
/// The entry's own name (RFC 5020). Worked out.
pub const ENTRY_DN: &str = "entryDN";
/// Whether there are entries below. Worked out.
pub const HAS_SUBORDINATES: &str = "hasSubordinates";
/// How many entries there are one level below. Worked out.
pub const NUM_SUBORDINATES: &str = "numSubordinates";
/// Where the schema is. Worked out.
pub const SUBSCHEMA_SUBENTRY: &str = "subschemaSubentry";
/// The groups that the entry is in. Worked out.
pub const MEMBER_OF: &str = "memberOf";

/// The name of the one subschema entry.
pub const SUBSCHEMA_DN: &str = "cn=schema";

/// An attribute that is worked out from where an entry is, or from others that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// [`ENTRY_DN`].
    EntryDn,
    /// [`HAS_SUBORDINATES`].
    HasSubordinates,
    /// [`NUM_SUBORDINATES`].
    NumSubordinates,
    /// [`SUBSCHEMA_SUBENTRY`].
    SubschemaSubentry,
    /// [`MEMBER_OF`].
    MemberOf,
}

impl Computed {
    /// All of them.
    pub const ALL: [Computed; 5] = [
        Computed::EntryDn,
        Computed::HasSubordinates,
        Computed::NumSubordinates,
        Computed::SubschemaSubentry,
        Computed::MemberOf,
    ];

    /// Its canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Computed::EntryDn => ENTRY_DN,
            Computed::HasSubordinates => HAS_SUBORDINATES,
            Computed::NumSubordinates => NUM_SUBORDINATES,
            Computed::SubschemaSubentry => SUBSCHEMA_SUBENTRY,
            Computed::MemberOf => MEMBER_OF,
        }
    }

    /// The one of a canonical name.
    pub fn from_name(name: &str) -> Option<Computed> {
        Computed::ALL.into_iter().find(|computed| computed.name() == name)
    }
}

/// A GeneralizedTime in UTC, to the second (RFC 4517 § 3.3.13). Times before 1970 are 1970.
pub fn generalized_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, days after 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// A version 4 UUID of these random bytes (RFC 9562 § 5.4), in text.
pub fn uuid_v4(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in random.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101000000Z"),
            (951_782_399, "20000228235959Z"),
            (951_782_400, "20000229000000Z"),
            (951_868_800, "20000301000000Z"),
            (1_704_067_199, "20231231235959Z"),
            (4_107_542_400, "21000301000000Z"),
        ] {
            assert_eq!(generalized_time(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn uuids_have_version_and_variant() {
        assert_eq!(uuid_v4([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid_v4([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
