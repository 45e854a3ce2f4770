//! Output is always equal, parts are parts of the whole, and other programs read the LDIF.

use super::{bytes, compile, job, records};
use flate2::read::MultiGzDecoder;
use keyway_codec::ldif::{RecordKind, Writer};
use keyway_data::{CompileOptions, Compress, Format, Job, TEMPLATES};
use proptest::prelude::*;
use std::io::Read;
use std::sync::OnceLock;

/// A template with everything that has to be the same.
const MIXED: &str = "\
define n=40
branch: dc=x
subordinateTemplate: unit:[n]

template: unit
rdnAttr: ou
ou: ou <sequential>, \"<random:alpha:3>\"
l: <file:cities>
description: <first> <presence:50>é<last>
subordinateTemplate: person:30
subordinateTemplate: group:2

template: person
rdnAttr: uid
uid: <unique:alphanumeric:6>
cn: <first> <last>
x: <random:chars:a é:0:4> <guid> <zipf:9> <normal:5:2> <timestamp>
y: <presence:10>{cn:2}
z: <bytes:0:70>
z: <ifabsent:y><random:numeric:1:9:3> <parent:l> <parent:ou>
description: <random:alpha:1:200>

template: group
rdnAttr: cn
cn: <random:hex:12>
member: <ref:person:1:9>
owner: <ref:group>
";

/// The names of all its entries.
static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();

fn mixed(seed: u64) -> Job {
    job(compile(MIXED, &CompileOptions { seed, ..CompileOptions::default() }))
}

#[test]
fn threads_make_no_difference() {
    for (_, template) in TEMPLATES {
        let constants = vec![("numusers".to_owned(), "300".to_owned())];
        let start = || {
            job(compile(
                template,
                &CompileOptions { constants: constants.clone(), ..CompileOptions::default() },
            ))
        };
        let whole = bytes(start());
        for threads in [2, 3, 7, 300] {
            assert!(bytes(Job { threads, ..start() }) == whole, "{threads}");
        }
    }
    let whole = bytes(mixed(1));
    assert!(bytes(Job { threads: 5, ..mixed(1) }) == whole);
    assert!(bytes(mixed(1)) == whole && bytes(mixed(2)) != whole);
    for compress in [Compress::Gzip, Compress::Zstd] {
        let packed = |threads| bytes(Job { threads, compress: Some(compress), ..mixed(1) });
        assert!(packed(1) == packed(3));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_slice_is_a_part_of_the_whole(
        from in 0u64..1_400,
        count in 0u64..1_400,
        threads in 1usize..4,
    ) {
        let whole = WHOLE.get_or_init(|| bytes(Job { formats: vec![Format::Dns], ..mixed(3) }));
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let end = ((from + count) as usize).min(lines.len());
        let part = lines.get(from as usize..end).unwrap_or_default().concat();
        let job = Job { formats: vec![Format::Dns], from, count, threads, ..mixed(3) };
        prop_assert_eq!(bytes(job), part);
    }
}

#[test]
fn slices_put_together_are_the_whole() {
    let whole = bytes(mixed(4));
    let mut together = Vec::new();
    for from in (0..1_400).step_by(97) {
        together.extend(bytes(Job { from, count: 97, ..mixed(4) }));
    }
    assert!(together == whole);
}

/// The codec's reader reads all of it, and its writer writes the same.
#[test]
fn it_is_the_codecs_ldif() {
    for text in [bytes(mixed(5)), bytes(job(compile(TEMPLATES[1].1, &CompileOptions::default())))] {
        let mut again = Vec::new();
        let mut writer = Writer::new(&mut again);
        records(&text).iter().for_each(|record| writer.record(record));
        assert!(again == text);
    }
}

#[test]
fn compressed_output_is_the_output() {
    let plain = bytes(mixed(6));
    let packed = bytes(Job { compress: Some(Compress::Gzip), ..mixed(6) });
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain && packed.len() < plain.len());
    let packed = bytes(Job { compress: Some(Compress::Zstd), ..mixed(6) });
    let mut unpacked = Vec::with_capacity(plain.len() + 1);
    let mut rest = packed.as_slice();
    while !rest.is_empty() {
        let length = zstd_safe::find_frame_compressed_size(rest).unwrap();
        let (frame, after) = rest.split_at(length);
        let mut part = Vec::with_capacity(plain.len());
        zstd_safe::decompress(&mut part, frame).unwrap();
        unpacked.extend(part);
        rest = after;
    }
    assert!(unpacked == plain);
}

#[test]
fn changes_change_what_chance_made() {
    let start = |generation, format| Job { generation, formats: vec![format], ..mixed(7) };
    let entries = records(&bytes(start(0, Format::Ldif)));
    let added = records(&bytes(start(0, Format::Add)));
    for (entry, added) in entries.iter().zip(&added) {
        let (RecordKind::Content(is), RecordKind::Add(add)) = (&entry.kind, &added.kind) else {
            panic!()
        };
        assert_eq!((is, &entry.dn), (add, &added.dn));
    }
    let later = records(&bytes(start(1, Format::Ldif)));
    let names = |all: &[keyway_codec::ldif::Record]| -> Vec<String> {
        all.iter().map(|record| record.dn.clone()).collect()
    };
    assert_eq!(names(&entries), names(&later));
    let changes = records(&bytes(start(1, Format::Modify(None))));
    assert_eq!(changes.len(), entries.len() - 1);
    for (change, later) in changes.iter().zip(&later[1..]) {
        let (RecordKind::Modify(all), RecordKind::Content(lines)) = (&change.kind, &later.kind)
        else {
            panic!()
        };
        assert_eq!(change.dn, later.dn);
        for one in all {
            assert!(
                !["ou", "uid", "cn"].contains(&one.attribute.as_str()) || one.attribute == "cn"
            );
            let now: Vec<_> =
                lines.iter().filter(|(it, _)| *it == one.attribute).map(|(_, it)| it).collect();
            assert_eq!(one.values.iter().collect::<Vec<_>>(), now);
        }
    }
    let only = Format::Modify(Some(vec!["DESCRIPTION".to_owned()]));
    let text = String::from_utf8(bytes(start(2, only))).unwrap();
    assert!(text.contains("replace: description") && !text.contains("replace: x"));
}

#[test]
fn other_outputs() {
    let start = |format| Job {
        count: 4,
        formats: vec![format],
        ..job(compile(TEMPLATES[0].1, &CompileOptions::default()))
    };
    let text = |format| String::from_utf8(bytes(start(format))).unwrap();
    assert_eq!(
        text(Format::Dns),
        "dc=example,dc=com\nou=People,dc=example,dc=com\n\
         uid=user.0,ou=People,dc=example,dc=com\nuid=user.1,ou=People,dc=example,dc=com\n"
    );
    assert_eq!(
        text(Format::Binds),
        "uid=user.0,ou=People,dc=example,dc=com\tpassword\n\
         uid=user.1,ou=People,dc=example,dc=com\tpassword\n"
    );
    assert_eq!(text(Format::Logins("UID".to_owned())), "user.0\tpassword\nuser.1\tpassword\n");
    let csv = Format::Csv(vec!["uid".to_owned(), "objectClass".to_owned(), "l".to_owned()]);
    assert_eq!(csv.head(), b"dn,uid,objectClass,l\n");
    let first = text(csv);
    assert!(first.starts_with("\"dc=example,dc=com\",,top|domain,\n"), "{first}");
}

#[test]
fn several_outputs_at_once_are_each_alone() {
    let formats = vec![Format::Ldif, Format::Dns, Format::Binds];
    let start = |threads| Job {
        formats: formats.clone(),
        threads,
        ..job(compile(TEMPLATES[1].1, &CompileOptions::default()))
    };
    for threads in [1, 3] {
        let mut stream = start(threads).start().unwrap();
        let mut all = vec![Vec::<u8>::new(); 3];
        let mut entries = 0;
        while let Some(part) = stream.part(keyway_data::Part::default()).unwrap() {
            entries += part.entries;
            all.iter_mut().zip(&part.outputs).for_each(|(all, part)| all.extend(part));
        }
        assert_eq!(entries, start(1).entries());
        for (format, all) in formats.iter().zip(&all) {
            let alone = Job { formats: vec![format.clone()], ..start(1) };
            assert!(bytes(alone) == *all, "{format:?}");
        }
    }
}
