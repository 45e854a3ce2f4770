//! Planned changes, shown or carried out.

use super::planned::PlannedChange;
use keyway_host::failure::Failure;
use keyway_host::output;

/// Shows them, in their order.
///
/// # Errors
/// The output's.
pub fn show(
    changes: &[PlannedChange],
    json: bool,
    is_secret: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    changes.iter().try_for_each(|change| match json {
        true => output::json(&change.json("planned", &is_secret)),
        false => {
            let text = change.ldif(&is_secret);
            output::text(text.strip_suffix('\n').unwrap_or(&text))
        }
    })
}

/// Makes them one after the other, until one is refused. `make` makes one, as the administrator: with relaxed rules, and
/// only if the entry has the values that are asserted; it returns when the change is on the disk.
///
/// # Errors
/// Which one was refused and why, and what was done before it; `go_on` says what to do then.
pub fn carry_out(
    changes: &[PlannedChange],
    go_on: &str,
    mut make: impl FnMut(&PlannedChange) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (done, change) in changes.iter().enumerate() {
        make(change).map_err(|why| {
            let (kind, dn) = (change.kind(), &change.record.dn);
            let before = match done {
                0 => "Nothing was changed".to_owned(),
                1 => format!("The first of {} changes was made before; {go_on}", changes.len()),
                _ => format!(
                    "The first {done} of {} changes were made before; {go_on}",
                    changes.len()
                ),
            };
            Failure::new(format!("{kind} of {dn}: {why}. {before}"))
        })?;
    }
    Ok(())
}

/// The running server cannot be told to make changes.
pub fn not_reached() -> Failure {
    Failure::new(
        "changes are made over LDAPS, and the running server has it off (listen_tls): stop it, and they are made in \
         the folder",
    )
}
