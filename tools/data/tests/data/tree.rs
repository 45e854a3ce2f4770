//! Where entries are, and what refers to them.

use super::{compile, job};
use keyway_data::{CompileOptions, Format, Job, Maker};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const GROUPS: &str = keyway_data::TEMPLATES[1].1;

#[test]
fn members_exist_and_are_there_once() {
    let plan = compile(GROUPS, &CompileOptions::default());
    let all = super::records(&super::bytes(job(plan)));
    let names: BTreeSet<&str> = all.iter().map(|record| record.dn.as_str()).collect();
    assert_eq!(names.len(), all.len());
    let mut groups = 0;
    for record in &all {
        let keyway_codec::ldif::RecordKind::Content(lines) = &record.kind else { panic!() };
        let members: Vec<&str> = lines
            .iter()
            .filter(|(name, _)| name == "member")
            .map(|(_, value)| std::str::from_utf8(value).unwrap())
            .collect();
        groups += usize::from(!members.is_empty());
        assert_eq!(members.iter().collect::<BTreeSet<_>>().len(), members.len());
        assert!(members.iter().all(|member| names.contains(member)), "{members:?}");
        let parent = record.dn.split_once(',').unwrap().1;
        assert!(record.dn == "dc=example,dc=com" || names.contains(parent));
    }
    assert_eq!(groups, 100);
}

/// A plain model: the entries of a tree of two templates below two branches, one after the other.
fn names(counts: [u64; 5]) -> (String, Vec<String>) {
    let [a, b, c, d, e] = counts;
    let text = format!(
        "branch: dc=x\nsubordinateTemplate: t:{a}\nsubordinateTemplate: u:{b}\n\
         subordinateTemplate: t:{c}\n\nbranch: ou=o,dc=x\nsubordinateTemplate: u:{d}\n\n\
         template: t\nrdnAttr: cn\ncn: t<sequential> <sequential:0:false>\n\
         subordinateTemplate: u:{e}\n\n\
         template: u\nrdnAttr: cn\ncn: u<sequential> <sequential:0:false>\n"
    );
    let (mut names, mut ts, mut us) = (vec!["dc=x".to_owned()], 0, 0);
    let mut u = |names: &mut Vec<String>, at: u64, above: &str| {
        names.push(format!("cn=u{at} {us},{above}"));
        us += 1;
    };
    let mut t =
        |names: &mut Vec<String>, at: u64, u: &mut dyn FnMut(&mut Vec<String>, u64, &str)| {
            let name = format!("cn=t{at} {ts},dc=x");
            names.push(name.clone());
            ts += 1;
            (0..e).for_each(|at| u(names, at, &name));
        };
    (0..a).for_each(|at| t(&mut names, at, &mut u));
    (0..b).for_each(|at| u(&mut names, at, "dc=x"));
    (0..c).for_each(|at| t(&mut names, a + at, &mut u));
    names.push("ou=o,dc=x".to_owned());
    (0..d).for_each(|at| u(&mut names, at, "ou=o,dc=x"));
    (text, names)
}

proptest! {
    #[test]
    fn any_entry_can_be_gone_to(counts in proptest::array::uniform5(0u64..5)) {
        let (text, names) = names(counts);
        let plan = Arc::new(compile(&text, &CompileOptions::default()));
        prop_assert_eq!(plan.entries(), names.len() as u64);
        let mut maker = Maker::new(plan.clone(), 0).unwrap();
        for (index, name) in names.iter().enumerate() {
            let view = maker.next_entry().unwrap().unwrap();
            prop_assert_eq!((view.dn(), view.index()), (name.as_str(), index as u64));
            let parent = view.parent().map(|at| names[at as usize].as_str());
            let above = name.split_once(',').map(|it| it.1);
            prop_assert_eq!(parent, above.filter(|_| parent.is_some()));
            let mut alone = Maker::new(plan.clone(), index as u64).unwrap();
            prop_assert_eq!(alone.next_entry().unwrap().unwrap().dn(), name.as_str());
        }
        prop_assert!(maker.next_entry().unwrap().is_none());
        let backwards = job(compile(&text, &CompileOptions::default()));
        let deleted = super::bytes(Job { formats: vec![Format::Delete], ..backwards });
        let deleted: Vec<String> = super::records(&deleted).into_iter().map(|it| it.dn).collect();
        prop_assert_eq!(deleted, names.into_iter().rev().collect::<Vec<_>>());
    }
}

#[test]
fn a_far_entry_takes_no_longer() {
    let constants = vec![("numusers".to_owned(), "4000000000000".to_owned())];
    let options = CompileOptions { constants, ..CompileOptions::default() };
    let plan = Arc::new(compile(keyway_data::TEMPLATES[0].1, &options));
    let mut maker = Maker::new(plan, 3_999_999_999_000).unwrap();
    let view = maker.next_entry().unwrap().unwrap();
    assert_eq!(view.dn(), "uid=user.3999999998998,ou=People,dc=example,dc=com");
}

#[test]
fn entries_of_a_template_go_on_after_the_last() {
    let text = "branch: dc=x\nsubordinateTemplate: unit:2\nsubordinateTemplate: robot\n\n\
                template: unit\nrdnAttr: ou\nou: u<sequential>\nsubordinateTemplate: person:3\n\n\
                template: person\nrdnAttr: uid\nuid: p<sequential>\nsn: <random:alpha:8>\n\n\
                template: robot\nrdnAttr: cn\ncn: r<sequential>\n";
    let plan = Arc::new(compile(text, &CompileOptions::default()));
    let templates: Vec<_> = plan.templates().collect();
    let named = |name: &str| *templates.iter().find(|it| it.name == name).unwrap();
    let (unit, person, robot) = (named("unit"), named("person"), named("robot"));
    assert_eq!((unit.entries, unit.has_below), (2, true));
    assert_eq!((person.entries, person.has_below), (6, false));
    assert_eq!(robot.entries, keyway_data::limits::ENDLESS);
    let mut maker = Maker::new(plan.clone(), 0).unwrap();
    let mut whole = Maker::new(plan.clone(), 0).unwrap();
    // As far as the template counts they are those that come one after the other.
    let mut counted = Vec::new();
    while counted.len() < 6 {
        let view = whole.next_entry().unwrap().unwrap();
        let surname = view.values("sn").next().map(<[u8]>::to_vec);
        counted.extend(surname.map(|surname| (view.dn().to_owned(), surname)));
    }
    for (number, (dn, surname)) in counted.iter().enumerate().rev() {
        let view = maker.entry_of(person.number, number as u64).unwrap().unwrap();
        assert_eq!((view.dn(), view.values("sn").next()), (dn.as_str(), Some(surname.as_slice())));
    }
    let mut dn = |template: keyway_data::Template<'_>, number| {
        maker.entry_of(template.number, number).unwrap().unwrap().dn().to_owned()
    };
    assert_eq!(dn(person, 6), "uid=p3,ou=u1,dc=x");
    assert_eq!(dn(person, 1 << 50), "uid=p1125899906842621,ou=u1,dc=x");
    assert_eq!(dn(unit, 5), "ou=u5,dc=x");
    assert_eq!(dn(robot, 7), "cn=r7,dc=x");
    // Where there are to be none at first, there is still a place for them.
    let text = text.replace("person:3", "person:0");
    let plan = Arc::new(compile(&text, &CompileOptions::default()));
    let mut maker = Maker::new(plan, 0).unwrap();
    assert_eq!(maker.entry_of(person.number, 2).unwrap().unwrap().dn(), "uid=p2,ou=u1,dc=x");
}
