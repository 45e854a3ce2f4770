//! The work that an added entry asks for.

use keyway_codec::dn::Dn;
use keyway_server::VirtualEntry;

/// The class of a task.
pub(super) const CLASS: &str = "keywayTask";
/// The attribute that says which work it is.
pub(super) const COMMAND: &str = "keywayTaskCommand";
/// The attribute of the entry from which on is exported.
pub(super) const BASE: &str = "keywayTaskBase";
/// The attribute of the file that is exported into.
pub(super) const FILE: &str = "keywayTaskFile";
/// The attribute for people.
pub(super) const DESCRIPTION: &str = "description";
/// The attribute that names it.
const NAME: &str = "cn";
/// The end of an export's name: what is in it is not compressed.
pub(super) const FILE_END: &str = ".ldif";
/// The longest name of a task or a file.
const NAME_CHARS_MAX: usize = 64;
/// Bytes of all its values.
const BYTES_MAX: usize = 4 << 10;

/// Work of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Entries are written as LDIF.
    Export {
        /// The one from which on; all without it.
        base: Option<String>,
        /// A name in the folder of exports.
        file: String,
    },
    /// A backup is put into the repository.
    Backup,
    /// The repository is read.
    Verify,
}

impl Work {
    /// Its name in an entry.
    pub fn command(&self) -> &'static str {
        match self {
            Work::Export { .. } => "export",
            Work::Backup => "backup",
            Work::Verify => "verify",
        }
    }
}

/// A task as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its name, of plain characters.
    pub name: String,
    pub work: Work,
    pub description: Vec<String>,
}

impl Wanted {
    /// Understands an entry that fits the schema.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn read(entry: &VirtualEntry) -> Result<Wanted, String> {
        let name = name(&entry.dn)?;
        fits(entry)?;
        let one = |attribute: &str| values(entry, attribute).into_iter().next();
        let (base, file) = (one(BASE), one(FILE));
        if base.as_ref().is_some_and(|base| base.trim().is_empty()) {
            return Err(format!("{BASE} is empty; leave it out to have all entries exported"));
        }
        let command = one(COMMAND).unwrap_or_default();
        let work = match command.to_ascii_lowercase().as_str() {
            "export" => {
                let file = file.unwrap_or_else(|| format!("{name}{FILE_END}"));
                let is_plain = is_plain(&file) && file.ends_with(FILE_END) && file != FILE_END;
                if !is_plain {
                    return Err(format!(
                        "{FILE}: {file:?} is not the name of a file that ends with {FILE_END}, of at most \
                         {NAME_CHARS_MAX} letters, digits, \"-\", \"_\" and \".\", the first no \".\""
                    ));
                }
                let work = Work::Export { base, file };
                return Ok(Wanted { name, work, description: values(entry, DESCRIPTION) });
            }
            "backup" => Work::Backup,
            "verify" => Work::Verify,
            _ => {
                return Err(format!("{COMMAND}: {command:?} is none of export, backup and verify"));
            }
        };
        if base.is_some() || file.is_some() {
            return Err(format!("{BASE} and {FILE} are for an export"));
        }
        Ok(Wanted { name, work, description: values(entry, DESCRIPTION) })
    }
}

/// Refuses an entry that is no task, or has more than a client says of one.
fn fits(entry: &VirtualEntry) -> Result<(), String> {
    if !values(entry, "objectClass").iter().any(|class| class.eq_ignore_ascii_case(CLASS)) {
        return Err(format!("a task has the class {CLASS}"));
    }
    let known = ["objectClass", NAME, COMMAND, BASE, FILE, DESCRIPTION];
    if let Some((set, _)) = entry.attributes.iter().find(|(set, _)| !known.contains(&set.as_str()))
    {
        return Err(format!("{set} is not for a client to set in a task"));
    }
    if values(entry, NAME).len() != 1 {
        return Err(format!("{NAME} has one value, that of the entry's name"));
    }
    let bytes: usize = entry.attributes.iter().flat_map(|(_, values)| values).map(Vec::len).sum();
    match bytes > BYTES_MAX {
        true => Err(format!("its values have {bytes} bytes, and a task has {BYTES_MAX} at most")),
        false => Ok(()),
    }
}

/// The name in `cn=NAME,cn=tasks`.
fn name(dn: &str) -> Result<String, String> {
    let rdn = Dn::parse(dn).ok().and_then(|dn| dn.rdns.into_iter().next());
    let avas = rdn.map(|rdn| rdn.avas).unwrap_or_default();
    let name = match avas.as_slice() {
        [ava] if ava.attribute.eq_ignore_ascii_case(NAME) => {
            String::from_utf8(ava.value.to_vec()).ok()
        }
        _ => None,
    };
    name.filter(|name| is_plain(name)).ok_or_else(|| {
        format!(
            "a task is named cn=NAME,cn=tasks, NAME being at most {NAME_CHARS_MAX} letters, digits, \"-\", \"_\" and \
             \".\", the first no \".\""
        )
    })
}

/// Whether a text is a name that means nothing else to anything: to a file system, in a DN, in a filter.
fn is_plain(text: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS_MAX).contains(&text.len()) && !text.starts_with('.') && text.chars().all(is_fit)
}

fn values(entry: &VirtualEntry, attribute: &str) -> Vec<String> {
    let found = entry.attributes.iter().find(|(name, _)| name == attribute);
    let values = found.map(|(_, values)| values.as_slice()).unwrap_or_default();
    values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dn: &str, attributes: &[(&str, &str)]) -> Result<Wanted, String> {
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
        let all = [vec![("cn", vec!["a".to_owned()])], attributes].concat();
        Wanted::read(&VirtualEntry::new(dn.to_owned(), CLASS, &all))
    }

    #[test]
    fn work_is_understood() {
        let export = read("cn=a,cn=tasks", &[(COMMAND, "Export"), (BASE, "dc=x")]).unwrap();
        let file = "a.ldif".to_owned();
        assert_eq!(export.work, Work::Export { base: Some("dc=x".to_owned()), file });
        assert_eq!(export.name, "a");
        assert_eq!(read("cn=a,cn=tasks", &[(COMMAND, "backup")]).unwrap().work, Work::Backup);
        let verify = [(COMMAND, "verify"), (DESCRIPTION, "now")];
        let verify = read("cn=a,cn=tasks", &verify).unwrap();
        assert_eq!((verify.work, verify.description), (Work::Verify, vec!["now".to_owned()]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for name in ["a b", "../a", ".a", "a/b", "", "ä", "a\\,b", &long] {
            let refused = read(&format!("cn={name},cn=tasks"), &[(COMMAND, "backup")]);
            assert!(refused.unwrap_err().contains("a task is named"), "{name}");
        }
        let of = |attributes: &[(&str, &str)]| read("cn=a,cn=tasks", attributes).unwrap_err();
        assert!(of(&[(COMMAND, "remove")]).contains("is none of export"));
        assert!(of(&[(COMMAND, "verify"), (FILE, "a.ldif")]).contains("for an export"));
        for file in ["a", ".ldif", "../a.ldif", "b/a.ldif", "/a.ldif", "a.ldif\0", ""] {
            assert!(of(&[(COMMAND, "export"), (FILE, file)]).contains("name of a file"), "{file}");
        }
        assert!(
            of(&[(COMMAND, "backup"), ("keywayTaskStatus", "done")]).contains("not for a client")
        );
        let other = read("description=a,cn=tasks", &[(COMMAND, "backup")]);
        assert!(other.unwrap_err().contains("a task is named"));
    }
}
