//! The common part of our clients that believe a server.

use crate::data::name;
use keyway_host::output;
use std::path::{Path, PathBuf};

/// The warning if any certificate is accepted.
const INSECURE: &str = "--insecure: any certificate is accepted, so an attacker on the network path can read and change \
                        everything, passwords too";

/// Says so, if that is so.
pub fn warn(is_insecure: bool) {
    if is_insecure {
        output::note(INSECURE);
    }
}

/// The authority of the usual data folder, which may not be there.
pub fn usual_authority() -> PathBuf {
    Path::new(name::DEFAULT).join(name::CA_CERTIFICATE)
}
