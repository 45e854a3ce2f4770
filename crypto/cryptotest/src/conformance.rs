//! The conformance suite on one driver.

use crate::error::Error;
use crate::interrupt::Interrupt;
use keyway_conformance::{Plan, Progress, Report};
use keyway_drivers::software;
use keyway_engine::Driver;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Has the driver pass the suite, with the software driver as its peer. `progress` hears of each
/// check.
///
/// # Errors
/// [`Error::Interrupted`]. Faults of a driver are in the report.
pub fn conformance(
    driver: &Arc<dyn Driver>,
    plan: &Plan,
    interrupt: &Interrupt,
    mut progress: impl FnMut(&Progress),
) -> Result<Report, Error> {
    let (mut done, mut total) = (0, 0);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        keyway_conformance::run(driver.clone(), software(), plan, &mut |so_far| {
            (done, total) = (so_far.done, so_far.total);
            progress(so_far);
            if interrupt.came() {
                // The only way out of the suite before its end.
                resume_unwind(Box::new("interrupted"));
            }
        })
    }));
    match ran {
        Ok(report) => Ok(report),
        Err(_) if interrupt.came() => Err(Error::Interrupted { done, total }),
        Err(panic) => resume_unwind(panic),
    }
}
