//! A user that has to change its password before anything else.

use keyway_codec::extended::{CANCEL, PASSWORD_MODIFY, START_TLS};
use keyway_codec::message::{ExtendedRequest, ResultCode};
use keyway_codec::password_policy::PasswordError;
use keyway_server::Failure;

/// Whether a request changes a password, or protects one on its way: this is still allowed to
/// a user that must change its own first.
pub(crate) fn is_allowed(request: &ExtendedRequest<'_>) -> bool {
    [START_TLS, PASSWORD_MODIFY, CANCEL].contains(&request.oid)
}

/// The answer to all other requests.
pub(crate) fn refusal() -> Failure {
    let why = "the password was set by another user: change it first";
    let denied = ResultCode::InsufficientAccessRights;
    Failure::policy(denied, PasswordError::ChangeAfterReset, why)
}
