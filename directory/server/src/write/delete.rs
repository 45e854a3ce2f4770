//! Delete (RFC 4511 § 4.8).

use super::{Request, WriteDone, unwilling};
use crate::access::{Rights, Subject};
use crate::controls::RequestControls;
use crate::directory::Core;
use crate::failure::{Failure, Result};
use keyway_codec::message::ResultCode;
use keyway_store::Write;

/// A delete that is ready to be done.
pub(crate) struct Delete {
    request: Request,
}

impl Delete {
    /// Understands a request.
    pub fn new(
        core: &Core,
        subject: &Subject,
        dn: &str,
        controls: &RequestControls<'_>,
    ) -> Result<Delete> {
        let request = Request::new(core, subject, dn, Rights::MANAGE, controls)?;
        if core.is_own(&request.name) {
            return Err(unwilling("the server needs this entry"));
        }
        Ok(Delete { request })
    }

    /// Deletes the entry.
    pub fn apply(&self, core: &Core, write: &mut Write<'_>) -> Result<WriteDone> {
        let request = &self.request;
        let (id, entry) = request.find(core, write.view())?;
        if !request.rights(core).may_manage(id) {
            return Err(Failure::denied("delete this entry"));
        }
        request.assert_entry(core, write, id, entry)?;
        if write.view().child_count(id)? > 0 {
            let text = "the entry has entries below it; delete those first";
            return Err(Failure::new(ResultCode::NotAllowedOnNonLeaf, text));
        }
        let response_controls = request.pre_read(core, write, id)?.into_iter().collect();
        let keys = core.indexes.keys(&core.schema, &entry.to_entry().attributes);
        write.delete(id, request.component()?, &keys)?;
        Ok(WriteDone { response_controls })
    }
}
