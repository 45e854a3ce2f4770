//! The outcome of a write.

use crate::access::Rule;
use crate::controls::ResponseControl;

/// The answer of a write that was done.
#[derive(Clone, Debug, Default)]
pub struct WriteDone {
    /// The controls to answer with.
    pub response_controls: Vec<ResponseControl>,
    /// The access rules that entries hold now, if it has changed any.
    pub(crate) rules: Option<Vec<Rule>>,
}
