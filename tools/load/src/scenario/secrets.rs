//! The text of a scenario that results keep: all but its passwords.

use toml::de::{DeTable, DeValue};

/// The text with the values of all keys `password` replaced.
pub(super) fn without_passwords(text: &str, table: &DeTable<'_>) -> String {
    fn places(value: &DeValue<'_>, found: &mut Vec<std::ops::Range<usize>>) {
        match value {
            DeValue::Table(table) => in_table(table, found),
            DeValue::Array(members) => {
                members.iter().for_each(|member| places(member.get_ref(), found));
            }
            _ => {}
        }
    }
    fn in_table(table: &DeTable<'_>, found: &mut Vec<std::ops::Range<usize>>) {
        for (key, value) in table {
            let is_ours = ["password", "old_password", "new_password"];
            if is_ours.iter().any(|ours| key.get_ref().eq_ignore_ascii_case(ours))
                || keyway_codec::message::is_password(key.get_ref())
            {
                found.push(value.span());
            } else {
                places(value.get_ref(), found);
            }
        }
    }
    let mut found = Vec::new();
    in_table(table, &mut found);
    found.sort_by_key(|place| std::cmp::Reverse(place.start));
    let mut text = text.to_owned();
    for place in found {
        text.replace_range(place, "\"*\"");
    }
    text
}
