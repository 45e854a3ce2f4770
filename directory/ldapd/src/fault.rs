//! Which result codes are of fault.

use keyway_codec::message::ResultCode;

/// Whether it is an answer of fault.
pub(crate) fn is_fault(code: ResultCode) -> bool {
    use ResultCode::*;
    !matches!(code, Success | CompareFalse | CompareTrue | Referral)
}
