//! Filters match as many entries as they are said to.

use super::{compile, job, records};
use keyway_codec::filter::Filter;
use keyway_codec::ldif::RecordKind;
use keyway_data::CompileOptions;
use keyway_data::filters::{Kind, Wanted, filters};
use std::sync::Arc;

const TEMPLATE: &str = "branch: dc=x\nsubordinateTemplate: t:400\n\ntemplate: t\nrdnAttr: uid\n\
    uid: u<sequential>\ncn: <first> <last>\ncn: <first> A. <last> (*)\nl: <file:cities>\n";

/// Whether a value fits a filter that this test knows.
fn fits(filter: &Filter<'_>, attribute: &str, value: &str) -> bool {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let value = value.to_ascii_lowercase();
    match filter {
        Filter::Equality { attribute: of, value: is } => *of == attribute && text(is) == value,
        Filter::Substrings { attribute: of, initial, last, .. } => {
            *of == attribute
                && initial.as_ref().is_none_or(|it| value.starts_with(&text(it)))
                && last.as_ref().is_none_or(|it| value.ends_with(&text(it)))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn filters_match_what_they_are_said_to() {
    let plan = Arc::new(compile(TEMPLATE, &CompileOptions::default()));
    let all = records(&super::bytes(job(compile(TEMPLATE, &CompileOptions::default()))));
    let wanted = Wanted {
        attributes: vec![
            ("uid".to_owned(), Kind::Equality),
            ("cn".to_owned(), Kind::Initial),
            ("cn".to_owned(), Kind::Final),
            ("l".to_owned(), Kind::Equality),
        ],
        least: 1,
        most: 5,
    };
    let found = filters(&plan, (0, u64::MAX), &wanted, &mut |_| true).unwrap();
    assert!(found.len() > 1_000);
    for (text, count) in found.iter().step_by(7) {
        let filter = Filter::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        let attribute = text[1..].split('=').next().unwrap();
        let matches = |lines: &[(String, Vec<u8>)]| {
            lines.iter().any(|(name, value)| {
                name == attribute && fits(&filter, name, std::str::from_utf8(value).unwrap())
            })
        };
        let matched = all
            .iter()
            .filter(|it| matches!(&it.kind, RecordKind::Content(lines) if matches(lines)))
            .count();
        assert_eq!(matched as u64, *count, "{text}");
        assert!((1..=5).contains(count));
    }
}
