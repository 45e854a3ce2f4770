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
/// only if the entry has the values that are asserted. It returns when the change is on the disk, with the refusal if it
/// is refused; an error means that this is not known.
///
/// # Errors
/// Which one was not made and why, and what was done before it; `go_on` says what to do then.
pub fn carry_out(
    changes: &[PlannedChange],
    go_on: &str,
    mut make: impl FnMut(&PlannedChange) -> Result<Result<(), Failure>, Failure>,
) -> Result<(), Failure> {
    for (done, change) in changes.iter().enumerate() {
        let (why, outcome) = match make(change) {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => (why, ""),
            Err(why) => (why, "It is not known whether this change was made. "),
        };
        // What was refused for a reason is refused again for as long as that is there.
        let go_on = match outcome {
            "" => format!("once the reason is gone, {go_on}"),
            _ => go_on.to_owned(),
        };
        let (kind, dn, count) = (change.kind(), &change.record.dn, changes.len());
        let before = match done {
            0 if outcome.is_empty() => "Nothing was changed".to_owned(),
            0 => format!("It was the first of {count}; {go_on}"),
            1 => format!("The first of {count} changes was made before; {go_on}"),
            _ => format!("The first {done} of {count} changes were made before; {go_on}"),
        };
        return Err(Failure::new(format!("{kind} of {dn}: {why}. {outcome}{before}")));
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
