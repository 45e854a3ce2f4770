//! Response controls that a request asks for.

use keyway_codec::password_policy::{PasswordError, PasswordPolicyResponse};
use keyway_server::access::Trace;
use keyway_server::controls::ResponseControl;
use std::sync::Arc;

/// The response controls that are asked for by controls that go with any operation.
#[derive(Clone, Default)]
pub(crate) struct RequestedControls {
    /// The answer of the password policy.
    pub policy: bool,
    /// The position by which the change is there.
    pub position: bool,
    /// The access rules that decided.
    pub trace: Option<Arc<Trace>>,
}

impl RequestedControls {
    /// Those of a search: nothing is said of passwords.
    pub fn of_search(self) -> RequestedControls {
        RequestedControls { policy: false, ..self }
    }

    /// The controls to answer with, and what the password policy holds against the request.
    pub fn controls(&self, error: Option<PasswordError>) -> Vec<ResponseControl> {
        self.with_policy(PasswordPolicyResponse { warning: None, error })
    }

    /// Those controls, with all that the password policy has to say.
    pub fn with_policy(&self, response: PasswordPolicyResponse) -> Vec<ResponseControl> {
        let policy = self.policy.then(|| ResponseControl::policy(response));
        let trace = self.trace.as_deref().map(ResponseControl::deciding_rules);
        policy.into_iter().chain(trace).collect()
    }
}
