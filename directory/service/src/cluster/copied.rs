//! A store and a configuration that were copied from another member: what in them is of its host alone becomes that of
//! this one. The store keeps its incarnation, as it goes on with the other's changes.

use super::row;
use keyway_cluster::message::MemberId;
use keyway_config::applied::META_CONFIGURATION;
use keyway_config::edit;
use keyway_folder::data::{self, Folder, StoreId, name};
use keyway_host::failure::Failure;
use keyway_schema::operational::ENTRY_UUID;
use keyway_server::META_READERS;
use keyway_store::{Options, Store};
use std::path::Path;
use toml::Value;

/// The setting by which a server says where others reach it.
const URL: &str = "cluster.url";

/// The name of a member, by the row of a store that was copied.
///
/// # Errors
/// If the store cannot be read, or knows no such member.
pub fn name_of(made: &Folder, member: MemberId) -> Result<String, Failure> {
    let cannot =
        |why: &dyn std::fmt::Display| Failure::new(format!("the store of the base: {why}"));
    let store = Store::open_to_read(&made.file(name::STORE), &Options::default());
    let row = row::read(&store.map_err(|why| cannot(&why))?)?;
    let name = row.and_then(|row| row.member(member).map(|member| member.name.clone()));
    name.ok_or_else(|| cannot(&"it does not know this member; try again"))
}

/// Makes a copy that lies in `made`, and is to come to `folder`, this host's own: its configuration, unless there is one,
/// names this server, and the folder knows its store.
///
/// # Errors
/// If the store cannot be opened.
pub fn make_own(made: &Folder, folder: &Path, url: Option<&str>) -> Result<(), Failure> {
    let own = folder.join(name::CONFIGURATION);
    let text = match own.exists() {
        true => Some(data::read(&own)?),
        false if made.has(name::CONFIGURATION) => {
            let text = made.read(name::CONFIGURATION)?;
            let url = url.map(|url| Value::String(url.to_owned()));
            let edited = edit::set(&text, URL, url.as_ref());
            let edited =
                edited.map_err(|why| Failure::new(format!("the base's configuration: {why}")))?;
            made.write(name::CONFIGURATION, edited.as_bytes())?;
            Some(edited)
        }
        false => None,
    };
    let store = own_store(&made.file(name::STORE), text.as_deref())?;
    made.note_store(store)
}

/// Makes a store that was copied this host's own: it remembers this text of a configuration, and nothing that reads the
/// other one's feed. Returns its incarnation.
///
/// # Errors
/// If it cannot be opened.
pub fn own_store(path: &Path, configuration: Option<&str>) -> Result<StoreId, Failure> {
    let cannot =
        |why: &dyn std::fmt::Display| Failure::new(format!("the store of the base: {why}"));
    let options = Options { feed: true, identity: Some(ENTRY_UUID), ..Options::default() };
    let store = Store::open(path, options).map_err(|why| cannot(&why))?;
    let incarnation = store.incarnation();
    let configuration = configuration.map(|text| text.as_bytes().to_vec());
    let written = store.write_now(move |write| {
        write.local_delete(META_READERS)?;
        match &configuration {
            Some(text) => write.local_put(META_CONFIGURATION, text),
            None => Ok(()),
        }
    });
    written.map_err(|why: keyway_store::Error| cannot(&why))?;
    store.close().map_err(|why| cannot(&why))?;
    Ok(incarnation)
}
