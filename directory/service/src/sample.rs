//! A directory to try things on: a company below dc=example,dc=com.
//!
//! The tree of a given size is always the same, except for the stored form of the one password
//! that all users in it have.

mod names;

use keyway_codec::ldif::Writer;
use names::{FIRST, LAST, plain};
use std::io::{self, Read};

/// The sample's naming context.
pub const SUFFIX: &str = "dc=example,dc=com";

/// People that a department has before another is opened.
const DEPARTMENT_PEOPLE: u32 = 100;
const DEPARTMENTS: [&str; 10] = [
    "Engineering",
    "Sales",
    "Customer Care",
    "Operations",
    "Research",
    "Marketing",
    "Design",
    "Accounting",
    "Human Resources",
    "Legal",
];
const TITLES: [&str; 7] = [
    "Specialist",
    "Senior Specialist",
    "Analyst",
    "Consultant",
    "Coordinator",
    "Assistant",
    "Lead",
];
const CITIES: [&str; 8] =
    ["Berlin", "Zürich", "København", "Lyon", "Kraków", "Bristol", "Porto", "Tampere"];
const LANGUAGES: [&str; 8] = ["de", "de-CH", "da", "fr", "pl", "en-GB", "pt", "fi"];
const FIRST_ID: u32 = 10_000;

/// An entry to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub dn: String,
    /// Attributes and their values.
    pub attributes: Vec<(&'static str, Vec<String>)>,
}

impl Record {
    fn new(dn: String, classes: &[&str]) -> Record {
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        Record { dn, attributes: vec![("objectClass", classes)] }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.dn(&self.dn);
        for (attribute, values) in &self.attributes {
            values.iter().for_each(|value| writer.value(attribute, value.as_bytes()));
        }
        writer.end();
    }

    fn with(mut self, attribute: &'static str, value: impl Into<String>) -> Record {
        self.attributes.push((attribute, vec![value.into()]));
        self
    }
}

/// A sample as LDIF.
pub struct Ldif<'a> {
    records: Box<dyn Iterator<Item = Record> + 'a>,
    record: Vec<u8>,
    read: usize,
}

impl Read for Ldif<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.record.len() {
            self.record.clear();
            self.read = 0;
            if let Some(record) = self.records.next() {
                record.write(&mut self.record);
            }
        }
        let mut rest = self.record.get(self.read..).unwrap_or_default();
        let read = rest.read(out)?;
        self.read += read;
        Ok(read)
    }
}

/// A sample of some size.
#[derive(Clone, Debug)]
pub struct Sample {
    people: u32,
    password: String,
}

impl Sample {
    /// A company of this many people, all with the password of this stored value.
    pub fn new(people: u32, password: String) -> Sample {
        Sample { people, password }
    }

    /// How many people it has.
    pub fn people(&self) -> u32 {
        self.people
    }

    /// How many entries it has.
    pub fn entry_count(&self) -> u64 {
        let units = if self.people == 0 { 0 } else { 1 };
        3 + u64::from(self.people) + u64::from(self.departments()) + units
    }

    /// Its entries, parents before children.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let trunk = [
            Record::new(SUFFIX.to_owned(), &["domain"])
                .with("dc", "example")
                .with("description", "Sample data, made by keyway up"),
            unit("People"),
            unit("Groups"),
        ];
        let all_users = (self.people > 0).then(all_users);
        trunk
            .into_iter()
            .chain((0..self.people).map(|index| self.person(index)))
            .chain((0..self.departments()).map(|index| self.department(index)))
            .chain(all_users)
    }

    /// Its entries as LDIF.
    pub fn ldif(&self) -> Ldif<'_> {
        Ldif { records: Box::new(self.records()), record: Vec::new(), read: 0 }
    }

    /// A user who is in every sample that has users.
    pub fn first_person() -> (String, &'static str) {
        let (_, last) = names_of(0);
        (person_dn(0), last)
    }

    fn departments(&self) -> u32 {
        let needed = self.people.div_ceil(DEPARTMENT_PEOPLE).max(DEPARTMENTS.len() as u32);
        needed.min(self.people)
    }

    fn person(&self, index: u32) -> Record {
        let (first, last) = names_of(index);
        let uid = uid(index);
        let departments = self.departments().max(1);
        let department = index % departments;
        let rank = index / departments;
        let name = department_name(department);
        let city = pick(&CITIES, index / 3);
        let title = match rank {
            0 => format!("Head of {name}"),
            rank => pick(&TITLES, rank).to_owned(),
        };
        let record = Record::new(person_dn(index), &["inetOrgPerson", "posixAccount"])
            .with("uid", uid.as_str())
            .with("cn", format!("{first} {last}"))
            .with("givenName", first)
            .with("sn", last)
            .with("displayName", format!("{first} {last}"))
            .with("mail", format!("{uid}@example.com"))
            .with("telephoneNumber", telephone(0, index))
            .with("mobile", telephone(7, index))
            .with("employeeNumber", (100_000 + u64::from(index)).to_string())
            .with("employeeType", if index % 9 == 8 { "contractor" } else { "employee" })
            .with("title", title)
            .with("ou", name)
            .with("departmentNumber", (100 + u64::from(department)).to_string())
            .with("roomNumber", format!("{}.{:03}", department % 10, rank % 1000))
            .with("l", city)
            .with("preferredLanguage", pick(&LANGUAGES, index / 3))
            .with("uidNumber", (u64::from(FIRST_ID) + u64::from(index)).to_string())
            .with("gidNumber", FIRST_ID.to_string())
            .with("homeDirectory", format!("/home/{uid}"))
            .with("loginShell", "/bin/sh")
            .with("userPassword", self.password.as_str());
        match superior(index, department) {
            Some(superior) => record.with("manager", person_dn(superior)),
            None => record,
        }
    }

    fn department(&self, department: u32) -> Record {
        let name = department_name(department);
        let step = self.departments().max(1) as usize;
        let members = (department..self.people).step_by(step).map(person_dn).collect();
        let dn = format!("cn={name},ou=Groups,{SUFFIX}");
        let mut record = Record::new(dn, &["groupOfNames"])
            .with("description", format!("All users of {name}"))
            .with("owner", person_dn(department))
            .with("cn", name);
        record.attributes.push(("member", members));
        record
    }
}

/// A department's head is led by the first person of all, the others by their department's head.
fn superior(index: u32, department: u32) -> Option<u32> {
    match index {
        0 => None,
        head if head == department => Some(0),
        _ => Some(department),
    }
}

fn unit(name: &str) -> Record {
    Record::new(format!("ou={name},{SUFFIX}"), &["organizationalUnit"]).with("ou", name)
}

fn all_users() -> Record {
    Record::new(format!("cn=people,ou=Groups,{SUFFIX}"), &["posixGroup"])
        .with("cn", "people")
        .with("gidNumber", FIRST_ID.to_string())
        .with("description", "The primary group of all users")
}

fn person_dn(index: u32) -> String {
    format!("uid={},ou=People,{SUFFIX}", uid(index))
}

fn department_name(index: u32) -> String {
    let name = pick(&DEPARTMENTS, index);
    match index / DEPARTMENTS.len() as u32 {
        0 => name.to_owned(),
        more => format!("{name} {}", more + 1),
    }
}

/// Pairs repeat only after every first name has met every last name.
fn names_of(index: u32) -> (&'static str, &'static str) {
    let firsts = FIRST.len() as u32;
    let (round, first) = (index / firsts, index % firsts);
    // The numbers of names are prime, so that this walk visits every last name.
    (pick(&FIRST, first), pick(&LAST, round.wrapping_add(first.wrapping_mul(7))))
}

fn uid(index: u32) -> String {
    let (first, last) = names_of(index);
    let pair = format!("{}.{}", plain(first), plain(last));
    match index / (FIRST.len() * LAST.len()) as u32 {
        0 => pair,
        more => format!("{pair}{}", more + 1),
    }
}

/// Numbers of a range that is kept free for fiction.
fn telephone(kind: u32, index: u32) -> String {
    format!("+1 555 {kind}{:03} {:04}", index / 10_000 % 1000, index % 10_000)
}

fn pick(list: &[&'static str], index: u32) -> &'static str {
    let index = index as usize % list.len().max(1);
    list.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn sample(people: u32) -> Sample {
        Sample::new(people, "{X}".to_owned())
    }

    #[test]
    fn a_sample_is_always_the_same_and_counted_right() {
        for people in [0, 1, 3, 10, 20, 99, 1_000, 1_001, 20_000] {
            let records: Vec<_> = sample(people).records().collect();
            assert_eq!(records.len() as u64, sample(people).entry_count(), "{people}");
            assert_eq!(records, sample(people).records().collect::<Vec<_>>());
            let persons = records.iter().filter(|record| record.dn.starts_with("uid=")).count();
            assert_eq!(persons as u32, people);
        }
    }

    #[test]
    fn names_are_unique_and_refer_to_what_is_there() {
        let records: Vec<_> = sample(20_000).records().collect();
        let names: HashSet<&str> = records.iter().map(|record| record.dn.as_str()).collect();
        assert_eq!(names.len(), records.len());
        for record in &records {
            let parent = record.dn.split_once(',').unwrap().1;
            assert!(record.dn == SUFFIX || names.contains(parent), "{}", record.dn);
            for (attribute, values) in &record.attributes {
                assert!(!values.is_empty(), "{attribute} of {}", record.dn);
                let refers = ["manager", "member", "owner"].contains(attribute);
                assert!(!refers || values.iter().all(|value| names.contains(value.as_str())));
            }
        }
    }

    #[test]
    fn every_user_is_in_one_department() {
        let sample = sample(1_234);
        let mut members = HashSet::new();
        for record in sample.records().filter(|record| record.attributes[0].1 == ["groupOfNames"]) {
            let (_, values) = record.attributes.last().unwrap();
            assert!(values.iter().all(|member| members.insert(member.clone())));
        }
        assert_eq!(members.len(), 1_234);
    }

    #[test]
    fn its_ldif_has_all_of_it() {
        let sample = sample(50);
        let mut text = String::new();
        sample.ldif().read_to_string(&mut text).unwrap();
        let names = text.lines().filter(|line| line.starts_with("dn:")).count();
        assert_eq!(names as u64, sample.entry_count());
    }

    #[test]
    fn first_person_is_in_every_sample() {
        let (dn, last) = Sample::first_person();
        let sample = sample(1);
        let person = sample.records().find(|record| record.dn == dn).unwrap();
        assert!(person.attributes.contains(&("sn", vec![last.to_owned()])));
    }
}
