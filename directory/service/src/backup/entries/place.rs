//! Where entries of a backup are by now.

use super::side::Side;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_schema::EntryName;
use keyway_server::Room;
use keyway_store::EntryId;
use std::collections::HashSet;

/// An entry of the backup.
pub struct Found {
    /// Its number there.
    pub id: EntryId,
    /// Its DN there.
    pub dn: String,
    /// Its `entryUUID`.
    pub uuid: Option<String>,
    /// The place of its name now.
    pub place: Place,
}

/// The holder of the name of an entry of the backup now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The entry itself.
    There(EntryId),
    /// Another one.
    Taken(EntryId),
    /// None, and the entry above is there.
    Free,
    /// None, and the entry above is not there either.
    Nowhere,
}

/// An entry of the backup, and those below it if they are meant, too: parents first.
///
/// # Errors
/// If the backup has none of this name, with the nearest one above; and the stores'.
pub fn find(
    (then, now): (&Side, &Side),
    (dn, is_subtree): (&str, bool),
    backup: &str,
) -> Result<Vec<Found>, Failure> {
    let name = then.name(dn)?;
    let Room::Taken(top) = then.room(&name)? else {
        return Err(Failure::new(format!(
            "there is no entry {dn} in {backup}{}; --backup, --at and --position name other moments",
            nearest(then, &name)?
        )));
    };
    let (mut found, mut next) = (Vec::new(), vec![top]);
    while let Some(id) = next.pop() {
        let node = then.node(id)?;
        if is_subtree {
            next.extend(node.below.iter().rev());
        }
        let place = place(now, &node.dn, node.uuid.as_ref())?;
        found.push(Found { id, dn: node.dn, uuid: node.uuid, place });
    }
    Ok(found)
}

/// Looks up which entry has the name of one of the backup now.
///
/// # Errors
/// The store's.
pub fn place(now: &Side, dn: &str, uuid: Option<&String>) -> Result<Place, Failure> {
    // A name that the schema does not understand any more is no entry's.
    let Ok(name) = EntryName::parse(now.schema(), dn) else { return Ok(Place::Nowhere) };
    Ok(match now.room(&name)? {
        Room::Taken(id) if uuid.is_none() || now.uuid(id)?.as_ref() == uuid => Place::There(id),
        Room::Taken(id) => Place::Taken(id),
        Room::Free => Place::Free,
        Room::Nowhere => Place::Nowhere,
    })
}

fn nearest(then: &Side, name: &EntryName) -> Result<String, Failure> {
    let mut above = name.parent();
    while !above.is_root() {
        if let Room::Taken(_) = then.room(&above)? {
            return Ok(format!(": the nearest one above it is {}", above.text()));
        }
        above = above.parent();
    }
    Ok(", and none above it".to_owned())
}

/// Says what is missing above an entry that cannot be added therefore, and what to do; or why the stores cannot be read.
pub fn no_room((then, now): (&Side, &Side), dn: &str) -> Failure {
    match missing(then, now, dn) {
        Ok(missing) => {
            Failure::new(format!("{dn} cannot be restored: {missing}. Nothing was changed"))
        }
        Err(failure) => failure,
    }
}

fn missing(then: &Side, now: &Side, dn: &str) -> Result<String, Failure> {
    let mut above = now.name(dn)?.parent();
    while !above.is_root() && now.room(&above)? != Room::Free {
        above = above.parent();
    }
    let missing = above.text();
    if above.is_root() {
        return Ok("no naming context of the directory has this name (naming_contexts in \
                   keyway.toml lists those without entries)"
            .to_owned());
    }
    let uuid = match then.room(&then.name(&missing)?)? {
        Room::Taken(id) => then.uuid(id)?,
        Room::Free | Room::Nowhere => None,
    };
    let elsewhere = now.find(&uuid.into_iter().collect::<HashSet<String>>())?;
    Ok(match elsewhere.values().next() {
        Some((_, is_now)) => format!("{missing}, above it, {}", renamed(is_now)),
        None => format!(
            "{missing}, above it, is not there either; bring that one back with all below it: --subtree {} (or alone: \
             --entry)",
            output::shell(&missing)
        ),
    })
}

/// Words on an entry that has another name.
pub fn renamed(is_now: &str) -> String {
    format!(
        "was renamed since, and is {is_now} now; keyway history {} shows at which position, and keyway undo takes that \
         back",
        output::shell(is_now)
    )
}
