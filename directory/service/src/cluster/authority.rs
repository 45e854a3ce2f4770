//! Certificates of members, by the data folder's authority, whose key may be in cryptod.

use crate::client_certificate::authority_key;
use keyway_cluster::message::MemberId;
use keyway_engine::Engine;
use keyway_folder::data::name;
use keyway_folder::folder_keys;
use keyway_folder::host_names::host_names;
use keyway_folder::member::{self, Member, PublicKey};
use keyway_folder::pem::certificates;
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use std::path::{Path, PathBuf};

/// The data folder's authority, and where its key is.
#[derive(Clone)]
pub struct Authority {
    /// Connected to the cryptod, if that holds the key.
    pub engine: Engine,
    /// The data folder.
    pub folder: PathBuf,
    /// The socket of the cryptod that holds the key; without one it is in a file.
    pub cryptod: Option<PathBuf>,
}

impl Authority {
    /// Issues the certificate of a member, PEM.
    ///
    /// # Errors
    /// If the key is not there.
    pub fn issue(&self, key: &PublicKey, member: MemberId) -> Result<String, Failure> {
        let Authority { engine, folder, cryptod } = self;
        let file = folder.join(name::CA_CERTIFICATE);
        let ca = certificates(&file)?;
        let public = folder_keys::public_key_in(&file)?;
        let ca_key = authority_key(engine, folder, cryptod.as_deref(), &public)?;
        member::issue(engine, ca_key, &ca, key, member.0, Timestamp::now())
    }

    /// Makes the data folder a member's, if it is none yet: the first one of a cluster that there will be when another
    /// joins.
    ///
    /// # Errors
    /// If the authority or its key is not there, or the folder cannot be written.
    pub fn found(&self) -> Result<Member, Failure> {
        if let Some(member) = member::read(&self.folder)? {
            member::complete(&self.folder)?;
            return Ok(member);
        }
        let id = new_member(&self.engine)?;
        let (public, key) = member::make_key(&self.engine)?;
        let public = PublicKey::read(&public).ok_or_else(|| Failure::new("no key was made"))?;
        let certificate = self.issue(&public, id)?;
        let own = Member { id: id.to_string(), name: host(), follow: Vec::new() };
        member::keep(&self.folder, &own, &certificate, &key)?;
        Ok(own)
    }
}

/// A member's number that no other has.
///
/// # Errors
/// If there are no random numbers.
pub fn new_member(engine: &Engine) -> Result<MemberId, Failure> {
    let mut id = [0; 8];
    engine.random(&mut id).map_err(Failure::new)?;
    Ok(MemberId(u64::from_be_bytes(id)))
}

/// What a member of this host is called, if it was not said.
pub fn host() -> String {
    let name = host_names().pop().unwrap_or_else(|| "keyway".to_owned());
    let name = name.split('.').next().unwrap_or_default();
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = name.chars().filter(|c| fit(*c)).take(60).collect();
    if name.is_empty() { "keyway".to_owned() } else { name }
}

/// The authority of a data folder, for a command that works beside its server. The connection to cryptod lasts as long
/// as the second value is kept.
///
/// # Errors
/// If the cryptod that holds its key is not there.
pub fn of_folder(
    folder: &Path,
) -> Result<(Authority, Option<keyway_drivers::remote::Remote>), Failure> {
    let engine = keyway_drivers::engine();
    let daemon = folder_keys::are_held(folder).then(|| crate::client::Daemon::of_folder(folder));
    let remote = crate::client::connect(&engine, daemon.as_ref(), |_| {})?;
    let cryptod = daemon.map(|daemon| daemon.socket);
    Ok((Authority { engine, folder: folder.to_owned(), cryptod }, remote))
}
