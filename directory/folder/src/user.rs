//! The user that a server runs as when root has started it. Nothing of it is root for longer than it takes
//! to open what only root may: from then on it has the one right to bind low ports, and when they are
//! bound none.
//!
//! The owner of the data folder decides. A folder of root's is given to the user that was named, at that user's
//! first start. The contents of a folder of another user never make a process root: that user may have written them.
//!
//! cryptod may be another user than the directory: then what is cryptod's in the folder is that user's, and
//! the directory's user gets to the socket and to nothing else there. The supervisor, to which no client
//! speaks, keeps the rights to start a process as that user and to end it.

use crate::data::{self, State, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::process_hardening;
use keyway_ring::Socket;
use nix::unistd::{
    Gid, Group, Uid, User, getgroups, getresgid, getresuid, initgroups, setgroups, setresgid,
    setresuid,
};
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, access};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
};
use std::ffi::CString;
use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::Command;

const FOLDER_MODE: u32 = 0o700;
/// The mode of a folder that the group may pass through.
const PASSED_MODE: u32 = 0o710;
/// cryptod's user where no flag names one, if there is that user.
const CRYPTOD_USER: &str = "keyway-cryptod";
/// To start a process as another user, and to end it.
const OVER_ANOTHER: CapabilitySet =
    CapabilitySet::SETUID.union(CapabilitySet::SETGID).union(CapabilitySet::KILL);
/// The mode of folders above it that are made on the way.
const ABOVE_MODE: u32 = 0o755;

/// A user, with the group that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name by which the user's other groups are found; a number alone has none.
    name: Option<String>,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// Reads `USER` or `USER:GROUP`, each a name or a number.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Account, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let found = User::from_name(user).ok().flatten();
        let mut account = match (found, user.parse()) {
            (Some(found), _) => Account::from(found),
            (None, Ok(number)) => Account::of(number, number),
            (None, Err(_)) => {
                return Err(format!(
                    "there is no user {user:?} on this machine; make one (useradd --system \
                     {user}), or give the number of one"
                ));
            }
        };
        if let Some(group) = group {
            let named = || Group::from_name(group).ok().flatten().map(|it| it.gid.as_raw());
            let gid = named().or_else(|| group.parse().ok());
            account.gid = Gid::from_raw(gid.ok_or_else(|| {
                format!("there is no group {group:?} on this machine; give a name or a number")
            })?);
        }
        Ok(account)
    }

    /// The account with these numbers.
    fn of(uid: u32, gid: u32) -> Account {
        let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let unnamed = || Account { name: None, uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) };
        found.map_or_else(unnamed, Account::from)
    }

    /// That of this process.
    pub fn this() -> Account {
        Account::of(geteuid().as_raw(), getegid().as_raw())
    }

    fn is_root(&self) -> bool {
        self.uid.is_root()
    }

    /// Has a command run as this user, with the group of this process and no other, to pass through its folder.
    pub fn start_as(&self, command: &mut Command) {
        command.uid(self.uid.as_raw()).gid(getegid().as_raw());
    }

    /// Whether this process runs as this user.
    fn is_this(&self) -> bool {
        self.uid.as_raw() == geteuid().as_raw()
    }
}

impl From<User> for Account {
    fn from(user: User) -> Account {
        Account { name: Some(user.name), uid: user.uid, gid: user.gid }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "user {}", self.uid),
        }
    }
}

/// The rights of root that are kept.
#[must_use]
pub struct Entered {
    /// The account that it has become.
    account: Option<Account>,
    /// The user that cryptod is to be, if that is another.
    cryptod: Option<Account>,
}

/// Which process becomes a user.
#[derive(Clone, Copy, Debug)]
pub enum Half<'a> {
    /// The supervisor, whose cryptod is to be this user, if a flag names one.
    Up(Option<&'a Account>),
    /// The directory's server.
    Ldapd,
    /// The daemon.
    Cryptod,
}

/// Becomes the user that a server on this data folder is to be, if root has started it; to be called
/// before it starts a thread. A process that is not root keeps its user.
///
/// # Errors
/// If the folder is another's or cannot be given away, or the system refuses.
pub fn enter(flag: Option<&Account>, folder: &Path, half: Half<'_>) -> Result<Entered, Failure> {
    if !geteuid().is_root() {
        let cryptod = match half {
            Half::Up(cryptod) => cryptod.map(|account| ("--cryptod-user", account)),
            _ => None,
        };
        let named = flag.map(|account| ("--user", account)).into_iter().chain(cryptod);
        return match named.into_iter().find(|(_, account)| !account.is_this()) {
            None => Ok(Entered { account: None, cryptod: None }),
            Some((flag, account)) => Err(not_root(&format!("{flag} {account}"), account)),
        };
    }
    let Some(account) = wanted(flag, folder)?.filter(|account| !account.is_root()) else {
        return match half {
            Half::Up(Some(account)) if !account.is_root() => Err(Failure::new(format!(
                "--cryptod-user {account}: the directory would stay root, and could read all that is \
                 cryptod's; name its user too (--user USER)"
            ))),
            _ => Ok(Entered { account: None, cryptod: None }),
        };
    };
    if !matches!(half, Half::Ldapd) {
        is_in_place(folder, &account)?;
    }
    let (account, cryptod) = match half {
        Half::Ldapd => (account, None),
        Half::Cryptod => (owner_of_cryptod(flag, folder, &account).unwrap_or(account), None),
        Half::Up(flag) => {
            let cryptod = beside(flag, folder, &account)?;
            (account, cryptod)
        }
    };
    process_hardening::lift_lock_limit();
    change_to(&account, folder, cryptod.is_some()).map_err(|why| {
        Failure::new(format!(
            "root cannot become {account}: {why}; it needs CAP_SETUID and CAP_SETGID, which a container \
             may lack: start it as {account}, or with --user root"
        ))
    })?;
    if access(folder, Access::EXEC_OK).is_err() {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "the server is to run as {account}, which cannot reach {folder}: a folder on the way there is \
             closed to that user; name another with --data DIR"
        )));
    }
    Ok(Entered { account: Some(account), cryptod })
}

/// Becomes the user whose data folder it is, for good, if root has started this and the folder is not root's: a
/// link that this user has put there leads root to no file that the user could not write. To be called before
/// a thread is started.
///
/// # Errors
/// If the system refuses.
pub fn become_owner(folder: &Path) -> Result<(), Failure> {
    // A folder that is not there is missed by what comes next.
    let owner = fs::metadata(folder).map(|it| Account::of(it.uid(), it.gid()));
    let Some(account) = owner.ok().filter(|it| geteuid().is_root() && !it.is_root()) else {
        return Ok(());
    };
    change_to(&account, folder, false).map_err(|why| {
        Failure::new(format!(
            "root cannot become {account}, whose {} is: {why}; run this as {account}",
            folder.display()
        ))
    })?;
    Entered { account: Some(account), cryptod: None }.keep_nothing()
}

/// Checks that the configuration names no other user. `flag` wins.
///
/// # Errors
/// If it does.
pub fn check(configured: Option<&Account>, flag: Option<&Account>) -> Result<(), Failure> {
    match configured {
        Some(account) if flag.is_none() && !account.is_this() => {
            Err(not_root(&format!("{}: [process] user", name::CONFIGURATION), account))
        }
        _ => Ok(()),
    }
}

fn not_root(source: &str, account: &Account) -> Failure {
    let other = if account.is_root() { String::new() } else { format!(" or as {account}") };
    Failure::new(format!(
        "{source}: this process is of {}, and only root can become another; start it as root{other}",
        Account::this()
    ))
}

/// Warns that a server runs as root and need not, unless a flag asked for it.
pub fn warn_of_root(flag: Option<&Account>) {
    if !geteuid().is_root() || flag.is_some() {
        return;
    }
    output::note(
        "warning: the server runs as root, so an attacker who finds a hole in it is root too; give it a user of \
         its own (useradd --system keyway) and start it with --user keyway, or with --user root to \
         leave it so",
    );
}

/// The user that is to serve the folder, and owns it from then on.
fn wanted(flag: Option<&Account>, folder: &Path) -> Result<Option<Account>, Failure> {
    let owner = match fs::metadata(folder) {
        Ok(metadata) => Some((metadata.uid(), metadata.gid())),
        Err(why) if why.kind() == ErrorKind::NotFound => None,
        Err(why) => return Err(Failure::system("look at the data folder", folder, &why)),
    };
    if let Some((uid, gid)) = owner.filter(|(uid, _)| *uid != 0) {
        let owner = Account::of(uid, gid);
        return match flag {
            Some(account) if account.uid != owner.uid && !account.is_root() => {
                let shown = folder.display();
                Err(Failure::new(format!(
                    "{shown} belongs to {owner}; start with --user {}, or give it away (chown -R {} \
                     {shown})",
                    owner.uid, account.uid
                )))
            }
            Some(account) => Ok(Some(account.clone())),
            None => Ok(Some(owner)),
        };
    }
    let account = match flag {
        Some(account) => Some(account.clone()),
        None => configured(folder)?,
    };
    if let Some(account) = account.as_ref().filter(|account| !account.is_root()) {
        give(folder, account)?;
    }
    Ok(account)
}

/// The user that the configuration of a folder of root's names.
fn configured(folder: &Path) -> Result<Option<Account>, Failure> {
    let file = folder.join(name::CONFIGURATION);
    if !file.exists() {
        return Ok(None);
    }
    let text = data::read(&file)?;
    // Faults of the rest are told when all of it is read.
    let Ok(table) = text.parse::<toml::Table>() else { return Ok(None) };
    let user = table.get("process").and_then(|section| section.get("user")?.as_str());
    let named = user.filter(|user| !user.is_empty()).map(Account::parse).transpose();
    named.map_err(|why| Failure::new(format!("{}: [process] user: {why}", file.display())))
}

/// Makes the folder for a user, or gives the user its contents. It is root's until the end: no other user can
/// put files into it meanwhile that would be given away.
fn give(folder: &Path, to: &Account) -> Result<(), Failure> {
    let folder =
        absolute(folder).map_err(|why| Failure::system("find the data folder", folder, &why))?;
    let given = |why| Failure::system("give the data folder away", &folder, &why);
    if !folder.exists() {
        return make(&folder, to).map_err(given);
    }
    if data::look(&folder)? == State::Ours {
        data::is_private(&folder)?;
        if let Some(user) = data::user(&folder) {
            let folder = folder.display();
            return Err(Failure::new(format!("{folder} is in use by {user}; stop it first")));
        }
    } else {
        let mode = fs::metadata(&folder).map_err(given)?.mode();
        if mode & 0o022 != 0 {
            // Files that others have put into it are not to be given away.
            data::is_private(&folder)?;
        }
        fs::set_permissions(&folder, Permissions::from_mode(FOLDER_MODE)).map_err(given)?;
    }
    give_all(&folder, to).map_err(given)
}

/// Folders on the way there are open, as they are everywhere.
fn make(folder: &Path, to: &Account) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().skip(1).take_while(|it| !it.exists()).collect();
    for above in missing.into_iter().rev() {
        DirBuilder::new().create(above)?;
        fs::set_permissions(above, Permissions::from_mode(ABOVE_MODE))?;
    }
    DirBuilder::new().mode(FOLDER_MODE).create(folder)?;
    lchown(folder, Some(to.uid.as_raw()), Some(to.gid.as_raw()))
}

fn give_all(path: &Path, to: &Account) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give_all(&entry?.path(), to)?;
        }
    }
    lchown(path, Some(to.uid.as_raw()), Some(to.gid.as_raw()))
}

/// The owner of cryptod's folder, if that is not root, nor the directory's user, and no flag named a user.
fn owner_of_cryptod(flag: Option<&Account>, folder: &Path, directory: &Account) -> Option<Account> {
    let owner = fs::symlink_metadata(folder.join(name::CRYPTOD)).ok()?;
    let owner = Account::of(owner.uid(), owner.gid());
    (flag.is_none() && !owner.is_root() && owner.uid != directory.uid).then_some(owner)
}

/// The user that a cryptod beside the directory of a user is to be, if that is another. Files of cryptod
/// in the folder are that user's from then on.
fn beside(
    flag: Option<&Account>,
    folder: &Path,
    directory: &Account,
) -> Result<Option<Account>, Failure> {
    if flag.is_some_and(Account::is_root) {
        return Err(Failure::new("--cryptod-user: cryptod needs no root; name another user"));
    }
    let place = folder.join(name::CRYPTOD);
    let owner = owner_of_cryptod(None, folder, directory);
    let named = || User::from_name(CRYPTOD_USER).ok().flatten().map(Account::from);
    let account = flag.cloned().or_else(|| owner.clone()).or_else(named);
    let account = account.filter(|it| it.uid != directory.uid);
    if account.is_none() && owner.is_none() {
        return Ok(None);
    }
    // A process that serves it, or is still dying, keeps what is its own.
    if data::user(folder).is_some() || Socket::connect(&name::socket_at(folder)).is_ok() {
        return Ok(account.filter(|it| owner.is_some_and(|owner| owner.uid == it.uid)));
    }
    let to = account.as_ref().unwrap_or(directory);
    give_cryptod(folder, directory, owner.as_ref(), to).map_err(|why| {
        Failure::system("give what is cryptod's to its user", &place, &why.into())
    })?;
    Ok(account)
}

/// That cryptod's folder has no other name by now. The directory's user may give it one, and put another
/// folder in its place, but cannot take it elsewhere, nor change its contents.
///
/// # Errors
/// If it has.
fn is_in_place(folder: &Path, directory: &Account) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, owner) = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => (entry.path(), metadata.uid()),
            _ => continue,
        };
        let is_of_another = owner != 0 && owner != directory.uid.as_raw();
        if is_of_another
            && !path.ends_with(name::CRYPTOD)
            && path.join(name::cryptod::KEYS).is_dir()
        {
            let (shown, place) = (path.display(), folder.join(name::CRYPTOD));
            return Err(Failure::new(format!(
                "{shown} has the keys of {}'s cryptod and was moved there, which {directory}, and so an \
                 intruder in the directory, could do; look at what is in {place} now, and move {shown} back \
                 there, or out of the data folder",
                Account::of(owner, owner),
                place = place.display(),
            )));
        }
    }
    Ok(())
}

/// Gives what is cryptod's in a folder from the one to the other. It is looked at by descriptors, and what is
/// neither's stays: the folder is the directory's, which may have put links there.
fn give_cryptod(
    folder: &Path,
    directory: &Account,
    owner: Option<&Account>,
    to: &Account,
) -> rustix::io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = rustix::fs::open(folder, flags, Mode::empty())?;
    match rustix::fs::mkdirat(&above, name::CRYPTOD, Mode::RWXU) {
        Err(why) if why != Errno::EXIST => return Err(why),
        _ => {}
    }
    let from = owner.unwrap_or(directory);
    let place = rustix::fs::openat(&above, name::CRYPTOD, flags | OFlags::NOFOLLOW, Mode::empty())?;
    give_below(&place, from, to)?;
    let group = Some(rustix::fs::Gid::from_raw(directory.gid.as_raw()));
    let user = Some(rustix::fs::Uid::from_raw(to.uid.as_raw()));
    rustix::fs::fchown(&place, user, group)?;
    let mode = if to.uid == directory.uid { FOLDER_MODE } else { PASSED_MODE };
    rustix::fs::fchmod(&place, Mode::from_raw_mode(mode))?;
    rustix::fs::fchown(&above, None, group)?;
    rustix::fs::fchmod(&above, Mode::from_raw_mode(mode))
}

fn give_below(folder: &OwnedFd, from: &Account, to: &Account) -> rustix::io::Result<()> {
    let (user, group) = (to.uid.as_raw(), to.gid.as_raw());
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let file_name = entry.file_name();
        if matches!(file_name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, file_name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if stat.st_uid != from.uid.as_raw() || kind != FileType::Directory && stat.st_nlink > 1 {
            continue;
        }
        let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
        rustix::fs::chownat(&file, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
        if kind == FileType::Directory {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            give_below(&rustix::fs::openat(folder, file_name, flags, Mode::empty())?, from, to)?;
        }
    }
    Ok(())
}

/// The user and the group of a data folder's directory, for a cryptod that is another.
pub fn directory_of(folder: &Path) -> Option<(u32, u32)> {
    let owner = fs::metadata(folder).ok()?;
    let own = geteuid();
    let is_another = !own.is_root() && owner.uid() != 0 && owner.uid() != own.as_raw();
    is_another.then(|| (owner.uid(), owner.gid()))
}

/// Groups, group and user, for good; the right to bind low ports stays, if root had it, and what it takes to
/// start a process as another if that is wanted. Who is not the directory's user gets its folder's group, to
/// pass through that.
fn change_to(account: &Account, folder: &Path, starts_another: bool) -> io::Result<()> {
    let Account { name, uid, gid } = account;
    let directory = fs::metadata(folder)?;
    set_keep_capabilities(true)?;
    match name.as_ref().and_then(|name| CString::new(name.as_str()).ok()) {
        Some(name) => initgroups(&name, *gid)?,
        None => setgroups(&[*gid])?,
    }
    if directory.uid() != uid.as_raw() && directory.uid() != 0 {
        setgroups(&[getgroups()?, vec![Gid::from_raw(directory.gid())]].concat())?;
    }
    setresgid(*gid, *gid, *gid)?;
    setresuid(*uid, *uid, *uid)?;
    set_keep_capabilities(false)?;
    let had = capabilities(None)?.permitted;
    let mut left = had & CapabilitySet::NET_BIND_SERVICE;
    if starts_another {
        left |= had & OVER_ANOTHER;
    }
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: left, permitted: left, inheritable })?)
}

impl Entered {
    /// The user that cryptod is to be, if that is another.
    pub fn cryptod(&self) -> Option<&Account> {
        self.cryptod.as_ref()
    }

    /// Gives up the last right, when all ports are bound, and looks whether there is a way back. A supervisor
    /// of two users keeps what that takes.
    ///
    /// # Errors
    /// If there is.
    pub fn keep_nothing(&self) -> Result<(), Failure> {
        let Some(account) = &self.account else { return Ok(()) };
        let kept_rights = match &self.cryptod {
            None => CapabilitySet::empty(),
            Some(_) => OVER_ANOTHER,
        };
        let all = CapabilitySets {
            effective: kept_rights,
            permitted: kept_rights,
            inheritable: CapabilitySet::empty(),
        };
        let kept = |why: &dyn fmt::Display| {
            Failure::new(format!("cannot give up the rights of root as {account}: {why}"))
        };
        set_capabilities(None, all).map_err(|why| kept(&why))?;
        let (users, groups) =
            (getresuid().map_err(|why| kept(&why))?, getresgid().map_err(|why| kept(&why))?);
        let Account { uid, gid, .. } = account;
        let is_his = [users.real, users.effective, users.saved] == [*uid; 3]
            && [groups.real, groups.effective, groups.saved] == [*gid; 3];
        let root = Uid::from_raw(0);
        let is_back = self.cryptod.is_none() && setresuid(root, root, root).is_ok();
        let has_more = capabilities(None).map_err(|why| kept(&why))?.permitted != kept_rights;
        if is_back || has_more || !is_his {
            return Err(kept(&"the system has left some"));
        }
        Ok(())
    }

    /// That files which root has named can be read.
    ///
    /// # Errors
    /// Which one cannot, and what to do.
    pub fn can_read(&self, files: impl IntoIterator<Item = PathBuf>) -> Result<(), Failure> {
        let Some(account) = &self.account else { return Ok(()) };
        let is_closed = |file: &PathBuf| {
            access(file.as_path(), Access::READ_OK)
                .is_err_and(|why| io::Error::from(why).kind() == ErrorKind::PermissionDenied)
        };
        match files.into_iter().find(is_closed) {
            None => Ok(()),
            Some(file) => {
                let file = file.display();
                Err(Failure::new(format!(
                    "{file} cannot be read by {account}; the server runs as that user and reads it again when \
                     it changes; give that user a copy (install -o {} -m 600 {file} PLACE, as a hook of \
                     whatever renews it), or the key to cryptod (keyway key import)",
                    account.uid
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_that_cannot_be_become_is_said_once() {
        let advice = |user: &str| not_root("--user", &Account::parse(user).unwrap()).to_string();
        assert!(advice("root").ends_with("; start it as root"), "{}", advice("root"));
        assert!(
            advice("4123456789:4123456788").ends_with("start it as root or as user 4123456789")
        );
    }

    #[test]
    fn users_and_groups_are_read() {
        let root = Account::parse("root").unwrap();
        assert!(root.is_root() && root.gid.as_raw() == 0);
        assert_eq!(Account::parse("0"), Ok(root));
        let unknown = Account::parse("4123456789:4123456788").unwrap();
        assert_eq!((unknown.uid.as_raw(), unknown.gid.as_raw()), (4_123_456_789, 4_123_456_788));
        assert_eq!((unknown.name.as_ref(), unknown.to_string()), (None, "user 4123456789".into()));
        assert_eq!(Account::parse("4123456789").unwrap().gid.as_raw(), 4_123_456_789);
        for none in ["", "no such user", "0:no such group", "-1", "root:"] {
            assert!(Account::parse(none).is_err(), "{none}");
        }
    }
}
