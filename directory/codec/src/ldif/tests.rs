//! The examples of RFC 2849, what is refused and where, and that writing and reading are inverse.

use super::{LdifError, Lines, Modification, Reader, Record, RecordKind, Writer};
use crate::message::ChangeOperation;
use proptest::prelude::*;

type Read = Vec<Result<Record, LdifError>>;

/// Reads a text in pieces of this many bytes.
fn in_pieces(text: &[u8], bytes: usize) -> Read {
    let mut reader = Reader::new();
    let mut found = Vec::new();
    for mut piece in text.chunks(bytes) {
        while let Some(record) = reader.read(&mut piece) {
            found.push(record);
        }
    }
    found.extend(reader.finish());
    found
}

/// Reads a text at once, and sees that cutting it up makes no difference.
fn read(text: impl AsRef<[u8]>) -> Read {
    let text = text.as_ref();
    let whole = in_pieces(text, text.len().max(1));
    for bytes in [1, 2, 3, 7] {
        assert_eq!(in_pieces(text, bytes), whole, "in pieces of {bytes}");
    }
    whole
}

fn records(text: impl AsRef<[u8]>) -> Vec<Record> {
    read(text).into_iter().map(|record| record.unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn lines(lines: &[(&str, &str)]) -> Lines {
    lines.iter().map(|(key, value)| ((*key).into(), value.as_bytes().to_vec())).collect()
}

fn content(line: u64, dn: &str, found: &[(&str, &str)]) -> Record {
    Record { line, dn: dn.into(), kind: RecordKind::Content(lines(found)) }
}

fn modification(operation: ChangeOperation, attribute: &str, values: &[&str]) -> Modification {
    let values = values.iter().map(|value| value.as_bytes().to_vec()).collect();
    Modification { operation, attribute: attribute.into(), values }
}

/// The failure of the only record: line, name and reason.
fn wrong(text: &str) -> (u64, Option<String>, &'static str) {
    match read(text).as_slice() {
        [Err(error)] => (error.line, error.dn.clone(), error.why),
        other => panic!("{text:?} gave {other:?}"),
    }
}

#[test]
fn example_1_two_entries() {
    let text = "version: 1\n\
        dn: cn=Barbara Jensen, ou=Product Development, dc=airius, dc=com\n\
        objectclass: top\nobjectclass: person\nobjectclass: organizationalPerson\n\
        cn: Barbara Jensen\ncn: Barbara J Jensen\ncn: Babs Jensen\nsn: Jensen\nuid: bjensen\n\
        telephonenumber: +1 408 555 1212\ndescription: A big sailing fan.\n\n\
        dn: cn=Bjorn Jensen, ou=Accounting, dc=airius, dc=com\n\
        objectclass: top\nobjectclass: person\nobjectclass: organizationalPerson\n\
        cn: Bjorn Jensen\nsn: Jensen\ntelephonenumber: +1 408 555 1212\n";
    let classes = [
        ("objectclass", "top"),
        ("objectclass", "person"),
        ("objectclass", "organizationalPerson"),
    ];
    let barbara = [
        &classes[..],
        &[
            ("cn", "Barbara Jensen"),
            ("cn", "Barbara J Jensen"),
            ("cn", "Babs Jensen"),
            ("sn", "Jensen"),
            ("uid", "bjensen"),
            ("telephonenumber", "+1 408 555 1212"),
            ("description", "A big sailing fan."),
        ],
    ]
    .concat();
    let bjorn = [
        &classes[..],
        &[("cn", "Bjorn Jensen"), ("sn", "Jensen"), ("telephonenumber", "+1 408 555 1212")],
    ]
    .concat();
    let expected = [
        content(2, "cn=Barbara Jensen, ou=Product Development, dc=airius, dc=com", &barbara),
        content(14, "cn=Bjorn Jensen, ou=Accounting, dc=airius, dc=com", &bjorn),
    ];
    assert_eq!(records(text), expected);
    assert_eq!(records(text.replace('\n', "\r\n")), expected);
}

#[test]
fn example_2_a_folded_value() {
    let text = "version: 1\n\
        dn:cn=Barbara Jensen, ou=Product Development, dc=airius, dc=com\n\
        objectclass:top\ntelephonenumber:+1 408 555 1212\n\
        description:Babs is a big sailing fan, and travels extensively in sea\n \
        rch of perfect sailing conditions.\n\
        title:Product Manager, Rod and Reel Division\n";
    let expected = content(
        2,
        "cn=Barbara Jensen, ou=Product Development, dc=airius, dc=com",
        &[
            ("objectclass", "top"),
            ("telephonenumber", "+1 408 555 1212"),
            (
                "description",
                "Babs is a big sailing fan, and travels extensively in search of perfect sailing \
                 conditions.",
            ),
            ("title", "Product Manager, Rod and Reel Division"),
        ],
    );
    assert_eq!(records(text), std::slice::from_ref(&expected));
    assert_eq!(records(text.replace('\n', "\r\n")), [expected]);
}

/// With the blanks at the start of the folded lines that the RFC's text lacks.
#[test]
fn example_3_a_value_in_base64() {
    let text = "version: 1\n\
        dn: cn=Gern Jensen, ou=Product Testing, dc=airius, dc=com\n\
        description:: V2hhdCBhIGNhcmVmdWwgcmVhZGVyIHlvdSBhcmUhICBUaGlzIHZhbHVl\n \
        IGlzIGJhc2UtNjQtZW5jb2RlZCBiZWNhdXNlIGl0IGhhcyBhIGNvbnRyb2wgY2hhcmFjdG\n \
        VyIGluIGl0IChhIENSKS4NICBCeSB0aGUgd2F5LCB5b3Ugc2hvdWxkIHJlYWxseSBnZXQg\n \
        b3V0IG1vcmUu\n";
    let value = "What a careful reader you are!  This value is base-64-encoded because it has a \
        control character in it (a CR).\r  By the way, you should really get out more.";
    let dn = "cn=Gern Jensen, ou=Product Testing, dc=airius, dc=com";
    assert_eq!(records(text), [content(2, dn, &[("description", value)])]);
}

/// Without the comment that goes over two lines in the RFC's text, where nothing marks the second.
#[test]
fn example_4_languages() {
    let text = "version: 1\n\
        dn:: b3U95Za25qWt6YOoLG89QWlyaXVz\n# dn:: ou=<JapaneseOU>,o=Airius\n\
        objectclass: top\nobjectclass: organizationalUnit\nou:: 5Za25qWt6YOo\n\
        # ou:: <JapaneseOU>\nou;lang-ja:: 5Za25qWt6YOo\n# ou;lang-ja:: <JapaneseOU>\n\
        ou;lang-ja;phonetic:: 44GI44GE44GO44KH44GG44G2\n\
        # ou;lang-ja:: <JapaneseOU_in_phonetic_representation>\nou;lang-en: Sales\n\
        description: Japanese office\n\n\
        dn:: dWlkPXJvZ2FzYXdhcmEsb3U95Za25qWt6YOoLG89QWlyaXVz\n\
        # dn:: uid=<uid>,ou=<JapaneseOU>,o=Airius\n\
        userpassword: {SHA}O3HSv1MusyL4kTjP+HKI5uxuNoM=\n\
        cn;lang-ja:: 5bCP56yg5Y6fIOODreODieODi+ODvA==\n";
    let expected = [
        content(
            2,
            "ou=営業部,o=Airius",
            &[
                ("objectclass", "top"),
                ("objectclass", "organizationalUnit"),
                ("ou", "営業部"),
                ("ou;lang-ja", "営業部"),
                ("ou;lang-ja;phonetic", "えいぎょうぶ"),
                ("ou;lang-en", "Sales"),
                ("description", "Japanese office"),
            ],
        ),
        content(
            15,
            "uid=rogasawara,ou=営業部,o=Airius",
            &[
                ("userpassword", "{SHA}O3HSv1MusyL4kTjP+HKI5uxuNoM="),
                ("cn;lang-ja", "小笠原 ロドニー"),
            ],
        ),
    ];
    assert_eq!(records(text), expected);
}

#[test]
fn example_5_a_url_is_refused() {
    let text = "version: 1\n\
        dn: cn=Horatio Jensen, ou=Product Testing, dc=airius, dc=com\n\
        cn: Horatio Jensen\njpegphoto:< file:///usr/local/directory/photos/hjensen.jpg\n\n\
        dn: o=next\no: next\n";
    let found = read(text);
    let [Err(error), Ok(next)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(error.line, 4);
    assert_eq!(
        error.to_string(),
        "line 4 (entry \"cn=Horatio Jensen, ou=Product Testing, dc=airius, dc=com\"): values are \
         not fetched from URLs: write the value itself, in base64 after '::'"
    );
    assert_eq!(*next, content(6, "o=next", &[("o", "next")]));
}

/// Without the empty line within the second modify record, which ends it.
#[test]
fn example_6_changes() {
    let text = "version: 1\n# Add a new entry\n\
        dn: cn=Fiona Jensen, ou=Marketing, dc=airius, dc=com\nchangetype: add\n\
        objectclass: top\ncn: Fiona Jensen\n\n\
        # Delete an existing entry\n\
        dn: cn=Robert Jensen, ou=Marketing, dc=airius, dc=com\nchangetype: delete\n\n\
        # Modify an entry's relative distinguished name\n\
        dn: cn=Paul Jensen, ou=Product Development, dc=airius, dc=com\nchangetype: modrdn\n\
        newrdn: cn=Paula Jensen\ndeleteoldrdn: 1\n\n\
        dn: ou=PD Accountants, ou=Product Development, dc=airius, dc=com\nchangetype: modrdn\n\
        newrdn: ou=Product Development Accountants\ndeleteoldrdn: 0\n\
        newsuperior: ou=Accounting, dc=airius, dc=com\n\n\
        dn: cn=Paula Jensen, ou=Product Development, dc=airius, dc=com\nchangetype: modify\n\
        add: postaladdress\npostaladdress: 123 Anystreet $ Sunnyvale, CA $ 94086\n-\n\
        delete: description\n-\nreplace: telephonenumber\ntelephonenumber: +1 408 555 1234\n\
        telephonenumber: +1 408 555 5678\n-\ndelete: facsimiletelephonenumber\n\
        facsimiletelephonenumber: +1 408 555 9876\n-\n\n\
        dn: cn=Ingrid Jensen, ou=Product Support, dc=airius, dc=com\nchangetype: modify\n\
        replace: postaladdress\n-\ndelete: description\n-\n\n";
    let kinds: Vec<RecordKind> = records(text).into_iter().map(|record| record.kind).collect();
    let rename = |new_rdn: &str, delete_old_rdn, new_superior: Option<&str>| RecordKind::ModRdn {
        new_rdn: new_rdn.into(),
        delete_old_rdn,
        new_superior: new_superior.map(str::to_owned),
    };
    let expected = [
        RecordKind::Add(lines(&[("objectclass", "top"), ("cn", "Fiona Jensen")])),
        RecordKind::Delete,
        rename("cn=Paula Jensen", true, None),
        rename(
            "ou=Product Development Accountants",
            false,
            Some("ou=Accounting, dc=airius, dc=com"),
        ),
        RecordKind::Modify(vec![
            modification(
                ChangeOperation::Add,
                "postaladdress",
                &["123 Anystreet $ Sunnyvale, CA $ 94086"],
            ),
            modification(ChangeOperation::Delete, "description", &[]),
            modification(
                ChangeOperation::Replace,
                "telephonenumber",
                &["+1 408 555 1234", "+1 408 555 5678"],
            ),
            modification(ChangeOperation::Delete, "facsimiletelephonenumber", &["+1 408 555 9876"]),
        ]),
        RecordKind::Modify(vec![
            modification(ChangeOperation::Replace, "postaladdress", &[]),
            modification(ChangeOperation::Delete, "description", &[]),
        ]),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn example_7_controls() {
    let text = "version: 1\ndn: ou=Product Development, dc=airius, dc=com\n\
        control: 1.2.840.113556.1.4.805 true\nchangetype: delete\n";
    assert_eq!(wrong(text).0, 3);
    for ignored in ["1.2.3", "1.2.3 false", "1.2.3 false: true", "1.2.3: true", "1.2.3:: dHJ1ZQ=="]
    {
        let text = format!("dn: o=x\ncontrol: {ignored}\nchangetype: delete\n");
        let kinds: Vec<_> = records(text).into_iter().map(|record| record.kind).collect();
        assert_eq!(kinds, [RecordKind::Delete], "{ignored}");
    }
}

#[test]
fn what_others_write_is_read() {
    let x = content(1, "o=x", &[("o", "x")]);
    let texts = [
        "dn: o=x\no: x",
        "dn: o=x\no: x\n\n\n\n",
        "DN: o=x\no:x\n",
        "dn::bz14\no:: eA\n",
        "dn:: bz14 \no:: eA==  \n",
        "dn: o\n =x\no: x\n",
        "dn: o=x\n# a comment\n that is folded\no: x\n",
        "\u{feff}dn: o=x\no: x\n",
        "dn: o=x\no: x\n \n",
        "dn: o=x\r\no: x\r\n\r\n",
    ];
    for text in texts {
        assert_eq!(records(text), std::slice::from_ref(&x), "{text:?}");
    }
    let bytes = content(1, "o=Çéliné", &[("o", "Çéliné ")]);
    assert_eq!(records("dn: o=Çéliné\no: Çéliné \n"), [bytes]);
    let latin1 = records(b"dn: o=x\no: \xe7\n\n");
    assert_eq!(latin1[0].kind, RecordKind::Content(vec![("o".into(), vec![0xe7])]));
    assert_eq!(records("dn:\nvendorName:\n"), [content(1, "", &[("vendorName", "")])]);
    assert_eq!(records("  \n\n \ndn: o=x\no: x\n")[0].line, 4);
    for empty in ["", "\n", "version: 1\n", "# nothing\n", "# nothing", "version: 1", "\r\n\r\n"] {
        assert_eq!(records(empty), [], "{empty:?}");
    }
    let unended = "dn: o=x\nchangetype: modify\nincrement: n\nn: 1\n";
    let expected = vec![modification(ChangeOperation::Increment, "n", &["1"])];
    assert_eq!(records(unended)[0].kind, RecordKind::Modify(expected));
}

#[test]
fn errors_name_line_and_entry() {
    let of_x = |line, text: &str| {
        let (at, dn, why) = wrong(text);
        assert_eq!((at, dn.as_deref()), (line, Some("o=x")), "{text:?}: {why}");
    };
    let of_none = |line, text: &str| {
        let (at, dn, why) = wrong(text);
        assert_eq!((at, dn), (line, None), "{text:?}: {why}");
    };
    of_none(1, "o: x\n");
    of_none(1, "dn\n");
    of_none(2, "\n o=x\n");
    of_none(1, "version: 2\ndn: o=x\no: x\n");
    of_none(3, "version: 1\n\nversion: 1\n");
    of_none(1, "dn:: /w==\no: x\n");
    of_none(1, "dn:: !\no: x\n");
    of_none(1, "dn:< file:///dn\no: x\n");
    of_none(1, "\u{fc}: x\n");
    of_x(1, "dn: o=x\n");
    of_x(2, "dn: o=x\no\n");
    of_x(3, "dn: o=x\no: x\n-\n");
    of_x(2, "dn: o=x\no:: x\n");
    of_x(3, "dn: o=x\no: x\ndn: o=y\no: y\n");
    of_x(3, "dn: o=x\no: x\n?: y\n");
    of_x(4, "dn: o=x\no: x\n y\n z: y\n=\n".replace(" z: y\n", "z y\n").as_str());
    of_x(2, "dn: o=x\nchangetype: rename\n");
    of_x(1, "dn: o=x\nchangetype: add\n");
    of_x(3, "dn: o=x\nchangetype: delete\no: x\n");
    of_x(3, "dn: o=x\ncontrol: 1.2.3\no: x\n");
    of_x(1, "dn: o=x\ncontrol: 1.2.3\n");
    of_x(3, "dn: o=x\nchangetype: modify\no: x\n");
    of_x(3, "dn: o=x\nchangetype: modify\nadd: ?\n");
    of_x(4, "dn: o=x\nchangetype: modify\nadd: o\nou: x\n-\n");
    of_x(4, "dn: o=x\nchangetype: modify\nadd: o\n-\n");
    of_x(1, "dn: o=x\nchangetype: modify\nincrement: o\n");
    of_x(3, "dn: o=x\nchangetype: modify\n-\n");
    of_x(3, "dn: o=x\nchangetype: modrdn\ndeleteoldrdn: 1\n");
    of_x(4, "dn: o=x\nchangetype: modrdn\nnewrdn: o=y\nnewsuperior: o=z\n");
    of_x(4, "dn: o=x\nchangetype: modrdn\nnewrdn: o=y\ndeleteoldrdn: yes\n");
    of_x(5, "dn: o=x\nchangetype: moddn\nnewrdn: o=y\ndeleteoldrdn: 0\nnewrdn: o=y\n");
    of_x(1, "dn: o=x\nchangetype: moddn\nnewrdn: o=y\n");
}

#[test]
fn reading_goes_on_after_an_error() {
    let text =
        "dn: o=a\no: a\n\nnonsense\nmore: nonsense\n\ndn: o=b\no: b\n\ndn: o=c\n\ndn: o=d\no: d\n";
    let found = read(text);
    let summary: Vec<_> = found
        .iter()
        .map(|found| match found {
            Ok(record) => (record.line, Ok(record.dn.as_str())),
            Err(error) => (error.line, Err(error.dn.as_deref())),
        })
        .collect();
    let expected =
        [(1, Ok("o=a")), (4, Err(None)), (7, Ok("o=b")), (10, Err(Some("o=c"))), (12, Ok("o=d"))];
    assert_eq!(summary, expected);
}

/// A file that never ends its line, and one that never ends its record.
#[test]
fn an_endless_record_is_not_kept() {
    for piece in [&b"aaaaaaa"[..], b"o: x\n", b"o: x\r\n", b"\r"] {
        let mut reader = Reader::new();
        reader.record_bytes_max = 10_000;
        assert!(reader.read(&mut &b"dn: o=x\no: "[..]).is_none());
        for _ in 0..20_000 {
            assert!(reader.read(&mut &piece[..]).is_none());
        }
        assert!(reader.line.capacity() < 100, "the rest is not kept");
        let mut end = &b"ou: y\n\ndn: o=next\no: next\n\n"[..];
        let error = reader.read(&mut end).unwrap().unwrap_err();
        assert_eq!(error.dn.as_deref(), Some("o=x"));
        assert_eq!(reader.read(&mut end).unwrap().unwrap().dn, "o=next");
    }
}

fn written(record: &Record) -> String {
    let mut out = Vec::new();
    Writer::new(&mut out).record(record);
    String::from_utf8(out).expect("what is written is ASCII")
}

#[test]
fn base64_where_it_is_needed() {
    let line = |value: &[u8]| {
        let mut out = Vec::new();
        Writer::new(&mut out).value("x", value);
        String::from_utf8(out).unwrap()
    };
    for safe in ["a", "a b", "a:b", "a<", "{SSHA}x=", "a#"] {
        assert_eq!(line(safe.as_bytes()), format!("x: {safe}\n"));
    }
    assert_eq!(line(b""), "x:\n");
    assert_eq!(line(b"#"), "x: #\n");
    for unsafe_value in
        [" a", "a ", ":a", "<a", "a\n", "a\r", "a\0", "ü", " ", "\u{1}", "\u{1b}[31m", "a\tb"]
    {
        assert!(line(unsafe_value.as_bytes()).starts_with("x:: "), "{unsafe_value:?}");
    }
}

#[test]
fn lines_are_folded_at_76() {
    for length in 60..400 {
        let value = "a".repeat(length);
        let record = content(1, "o=x", &[("description", &value)]);
        let text = written(&record);
        assert!(text.lines().all(|line| line.len() <= 76), "{text}");
        assert!(text.lines().rev().skip(2).all(|line| line.len() == 76 || line.starts_with("dn:")));
        assert_eq!(records(text), [record]);
    }
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..100),
        "[ :<a#\\r\\nü-]{0,5}".prop_map(String::into_bytes),
        "[ -~]{0,200}".prop_map(String::into_bytes),
    ]
}

fn any_description() -> impl Strategy<Value = String> {
    // Words of the format are no attributes of a record without changetype.
    "([a-z][a-zA-Z0-9-]{0,20}|[0-2](\\.[0-9]{1,4}){1,6})(;[a-z-]{1,8}){0,2}"
        .prop_filter("a word", |name| !["dn", "control", "changetype"].contains(&name.as_str()))
}

fn any_lines() -> impl Strategy<Value = Lines> {
    prop::collection::vec((any_description(), any_value()), 1..6)
}

fn any_modification() -> impl Strategy<Value = Modification> {
    let operation = prop::sample::select(vec![
        ChangeOperation::Add,
        ChangeOperation::Delete,
        ChangeOperation::Replace,
        ChangeOperation::Increment,
    ]);
    (operation, any_description(), prop::collection::vec(any_value(), 1..4))
        .prop_map(|(operation, attribute, values)| Modification { operation, attribute, values })
}

fn any_kind() -> impl Strategy<Value = RecordKind> {
    let text = "[ -~ü\\n]{0,90}";
    prop_oneof![
        any_lines().prop_map(RecordKind::Content),
        any_lines().prop_map(RecordKind::Add),
        Just(RecordKind::Delete),
        prop::collection::vec(any_modification(), 0..4).prop_map(RecordKind::Modify),
        (text, any::<bool>(), prop::option::of(text)).prop_map(
            |(new_rdn, delete_old_rdn, new_superior)| RecordKind::ModRdn {
                new_rdn,
                delete_old_rdn,
                new_superior
            }
        ),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    ("[ -~ü\\n\\r]{0,90}", any_kind()).prop_map(|(dn, kind)| Record { line: 0, dn, kind })
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(all in prop::collection::vec(any_record(), 0..5)) {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.version();
        all.iter().for_each(|record| writer.record(record));
        let mut found = records(&out);
        found.iter_mut().for_each(|record| record.line = 0);
        prop_assert_eq!(found, all);
    }

    #[test]
    fn any_text_is_read(text in "(dn: o=x\n|o: x\n|o:: eA==\n|changetype: modify\n|add: o\n|-\n|\n| |x|\r\n|#)*") {
        read(text);
    }
}
