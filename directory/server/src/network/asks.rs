//! What a request wants to be told beside its result.

use super::conversation::Conversation;
use crate::access::{Place, RULE, Rights, Trace};
use crate::controls::{RequestControls, ResponseControl};
use crate::failure::{Failure, Result};
use keyway_codec::password_policy::{PasswordError, PasswordPolicyResponse};
use std::sync::Arc;

/// What is asked for by controls that go with any operation.
#[derive(Clone, Default)]
pub(super) struct Asks {
    /// What the password policy has to say.
    policy: bool,
    /// Which access rules decided.
    pub trace: Option<Arc<Trace>>,
}

impl Asks {
    /// Of a search nothing is said of passwords.
    pub fn of_search(self) -> Asks {
        Asks { policy: false, ..self }
    }

    /// The controls to answer with, and what the password policy holds against the request.
    pub fn controls(&self, error: Option<PasswordError>) -> Vec<ResponseControl> {
        self.with_policy(PasswordPolicyResponse { warning: None, error })
    }

    /// The same with all that the password policy has to say.
    pub fn with_policy(&self, response: PasswordPolicyResponse) -> Vec<ResponseControl> {
        let policy = self.policy.then(|| ResponseControl::policy(response));
        let trace = self.trace.as_deref().map(ResponseControl::deciding_rules);
        policy.into_iter().chain(trace).collect()
    }
}

impl Conversation {
    /// What a request asks for.
    ///
    /// # Errors
    /// `insufficientAccessRights` if it must be told about rules that it may not read.
    pub(super) fn asks(&self, controls: &RequestControls<'_>) -> Result<Asks> {
        let policy = controls.password_policy;
        let Some(critical) = controls.deciding_rules else {
            return Ok(Asks { policy, trace: None });
        };
        self.shared.directory.refresh(&self.subject)?;
        let core = self.shared.directory.core();
        let rights = core.permissions(&self.subject, Place::Data);
        match (rights.may_somewhere(Rights::READ, RULE), critical) {
            (true, _) => Ok(Asks { policy, trace: Some(Arc::default()) }),
            (false, true) => Err(Failure::denied("ask which rules decide")),
            // It is as if it was not known.
            (false, false) => Ok(Asks { policy, trace: None }),
        }
    }
}
