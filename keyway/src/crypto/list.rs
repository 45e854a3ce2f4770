//! `keyway crypto list`: the drivers, what they do, what their work costs, and where it pays to
//! take another.

use super::arguments::List;
use super::shared::say;
use crate::crypto::failed::failed;
use keyway_cryptotest::report::{DriverList, ListQuery};
use keyway_cryptotest::{drivers, engine, known};
use keyway_host::failure::Failure;

/// Shows what there is; nothing can be wrong with that.
///
/// # Errors
/// If a driver cannot be made, or there is none of a name.
pub fn run(arguments: &List) -> Result<bool, Failure> {
    let drivers = drivers(&arguments.more.with).map_err(failed)?;
    known(&arguments.drivers, &drivers).map_err(failed)?;
    let engine = engine(&drivers, arguments.more.legacy).map_err(failed)?;
    let query = ListQuery {
        drivers: &arguments.drivers,
        algorithms: &arguments.algorithms,
        legacy: arguments.more.legacy,
        costs: arguments.costs,
    };
    let list = DriverList::of(&drivers, &engine, query);
    if arguments.json {
        say(list.value())?;
        return Ok(true);
    }
    say(list.text())?;
    if let Some(costs) = list.costs_text() {
        say(costs)?;
    }
    Ok(true)
}
