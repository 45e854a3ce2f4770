//! Reads that another server of the cluster does: what they are to see goes along.

use crate::carried::{Carried, asked_for};
use crate::session::Session;
use keyway_cluster::message::ClusterRow;
use keyway_cluster::own_writes::{Here, OwnWrites, Reading};
use keyway_codec::message::ResultCode;
use keyway_server::Failure;
use keyway_server::controls::Written;
use std::time::Duration;

impl Session {
    /// What a read that is sent elsewhere is to see: all that this server has, too, since the connection may have read it.
    pub(crate) fn carried(&self, named: Option<Written>) -> Result<Carried, Failure> {
        let (applied, row) = self.shared.here()?;
        let mut own = self.wrote;
        own.wrote(row.as_ref().map(ClusterRow::reign), applied);
        let carried = Carried { own, others: OwnWrites::default() };
        let address = self.shared.written.of(self.from);
        Ok(carried.and(&address).and(&asked_for(named, row.as_ref())))
    }

    /// That this server has what a read is to see.
    ///
    /// # Errors
    /// If it has not, or that is lost.
    pub(crate) fn has_carried(&self, carried: &Carried) -> Result<(), Failure> {
        let (applied, row) = self.shared.here()?;
        let here = Here { applied, row: row.as_ref(), is_following: false };
        let reading =
            |own: &OwnWrites| own.reading(&here, Duration::ZERO, Duration::ZERO, Duration::ZERO);
        match (reading(&carried.own), reading(&carried.others)) {
            (Reading::Lost, _) => {
                let text = "a change of this connection was lost with the server that had made it: connect again, and \
                            read again what is there";
                Err(Failure::new(ResultCode::Unavailable, text))
            }
            // What was lost of others' will not come.
            (Reading::Now, Reading::Now | Reading::Lost) => Ok(()),
            _ => {
                let text = "no server that can be asked has come to the position that this is to be seen from; try again";
                Err(Failure::new(ResultCode::Busy, text))
            }
        }
    }
}
