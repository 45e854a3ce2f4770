//! The context that the sections of a scenario are read with.

use super::target::Target;
use crate::source::Source;
use std::path::Path;

/// The parts of a scenario that a job may refer to.
pub(crate) struct Context<'c> {
    pub(crate) sources: &'c [Source],
    pub(crate) target: &'c Target,
    pub(crate) folder: &'c Path,
}
