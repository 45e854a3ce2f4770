//! Files in each of the forms, and those that are none.

use super::*;

fn read_one(text: &str) -> Result<Definitions, DefinitionError> {
    read(&[File { name: "a.schema", bytes: text.as_bytes() }])
}

fn names(definitions: &Definitions) -> (Vec<&str>, Vec<&str>) {
    let attributes = definitions.attribute_types.iter();
    let classes = definitions.object_classes.iter();
    (
        attributes.map(|one| one.definition.names[0].as_str()).collect(),
        classes.map(|one| one.definition.names[0].as_str()).collect(),
    )
}

const CONFIGURATION: &str = "\
# A schema of our own
objectidentifier Own 1.3.6.1.4.1.99999
objectIdentifier OwnAttributes Own:1
objectIdentifier Str 1.3.6.1.4.1.1466.115.121.1.15

attributetype ( OwnAttributes:1.2 NAME 'shoeSize'
\tDESC 'The size of one's shoes
\t\tare like' SUP name
# in between
    SYNTAX Str{64} SINGLE-VALUE X-ORIGIN 'us')
ATTRIBUTETYPE ( OwnAttributes:2 NAME ( shoeColour 'shoeColor' ) SUP 'name' )

objectclass (Own:2.1 NAME 'shoeOwner' SUP top AUXILIARY
MUST cn
MAY ( shoeSize $ 'shoeColour' description ) )
ditcontentrule ( Own:2.1 NAME 'rule' NOT x121Address )
";

#[test]
fn the_form_of_openldaps_configuration() {
    let definitions = read_one(CONFIGURATION).unwrap();
    assert_eq!(names(&definitions), (vec!["shoeSize", "shoeColour"], vec!["shoeOwner"]));
    assert_eq!(definitions.left_out, 1);
    let [size, colour] = &definitions.attribute_types[..] else { panic!() };
    assert_eq!((size.line, size.definition.oid.as_str()), (6, "1.3.6.1.4.1.99999.1.1.2"));
    let text = size.definition.to_string();
    assert!(text.contains("DESC 'The size of one\\27s shoes are like'"), "{text}");
    assert!(text.contains("SYNTAX 1.3.6.1.4.1.1466.115.121.1.15{64} SINGLE-VALUE"), "{text}");
    assert_eq!((colour.line, colour.definition.names.len()), (11, 2));
    let class = &definitions.object_classes[0].definition;
    assert_eq!(class.may, ["shoeSize", "shoeColour", "description"]);
    assert_eq!(class.must, ["cn"]);
}

#[test]
fn the_forms_of_ldif() {
    let config = "dn: cn=own,cn=schema,cn=config\nobjectClass: olcSchemaConfig\ncn: own\n\
        olcObjectIdentifier: {0}Own 1.2.3\n\
        olcAttributeTypes: {0}( Own:1 NAME 'shoeSize' SY\n NTAX 1.3.6.1.4.1.1466.115.121.1.15 )\n\
        olcObjectClasses:: KCBPd246MiBOQU1FICdzaG9lT3duZXInIE1BWSBzaG9lU2l6ZSAp\n\
        olcDitContentRules: ( 1.2 )\n";
    let definitions = read_one(config).unwrap();
    assert_eq!(names(&definitions), (vec!["shoeSize"], vec!["shoeOwner"]));
    assert_eq!(definitions.attribute_types[0].definition.equality, None);
    assert_eq!(definitions.object_classes[0].definition.oid, "1.2.3.2");

    let subschema = "version: 1\r\ndn: cn=schema\r\nchangetype: modify\r\nadd: attributeTypes\r\n\
        attributeTypes: ( shoeSize-oid NAME 'shoeSize' SYNTAX DirectoryString X-ORIGIN ( 'a' 'user \
        defined' ) )\r\n-\r\nadd: objectClasses\r\n\
        objectclasses: ( shoeOwner-oid NAME 'shoeOwner' MAY ( shoeSize ) )\r\n-\r\n";
    let definitions = read_one(subschema).unwrap();
    assert_eq!(names(&definitions), (vec!["shoeSize"], vec!["shoeOwner"]));
    let size = &definitions.attribute_types[0];
    // 389 Directory Server compares by the syntax where no rule is given.
    assert_eq!(size.definition.equality.as_deref(), Some("caseIgnoreMatch"));
    assert_eq!(size.line, 5);
}

#[test]
fn order_makes_no_difference_and_macros_are_shared() {
    let use_it = File { name: "use", bytes: b"attributetype ( Own:1 NAME 'a' SUP name )" };
    let define =
        File { name: "define", bytes: b"objectidentifier Own Up:3\nobjectidentifier Up 1.2" };
    for files in [[use_it, define], [define, use_it]] {
        let definitions = read(&files).unwrap();
        assert_eq!(definitions.attribute_types[0].definition.oid, "1.2.3.1");
    }
}

#[test]
fn syntaxes_have_slapds_names_and_a_schema_may_be_empty() {
    let text = b"attributetype ( 1.2.3 NAME 'status' SYNTAX OMsDirectoryString{32} )";
    let definitions = read(&[File { name: "a", bytes: text }]).unwrap();
    let syntax = definitions.attribute_types[0].definition.syntax.clone().unwrap();
    assert_eq!(syntax.oid, "1.3.6.1.4.1.1466.115.121.1.15");
    let empty = b"#\n# User-defined schema\n#\ndn: CN=schema\r\n";
    assert_eq!(read(&[File { name: "99user.ldif", bytes: empty }]).unwrap().count(), 0);
}

#[test]
fn an_error_says_where_and_why() {
    let cases = [
        ("", "a.schema: it defines no attribute type"),
        ("dn: dc=example\ndc: example\n", "a.schema: it defines no attribute type"),
        (
            "# one\natributetype ( 1.2 NAME 'a' SUP name )",
            "a.schema, line 2, definition atributetype ( 1.2 NAME 'a' SUP name ): \"atributetype\" \
             is not a directive of a schema file; did you mean attributetype?",
        ),
        (
            "attributetype ( Own:1 NAME 'a' SUP name )",
            "a.schema, line 1, definition ( Own:1 NAME 'a' SUP name ): a numeric OID is due, or a",
        ),
        (
            "attributetype ( 1.2\n  NAME 'a'\n  SUPP name )",
            "a.schema, line 3, definition ( 1.2 NAME 'a' SUPP name ): this part is not one",
        ),
        (
            "attributetype ( 1.2 NAME 'a' SUP name\nobjectclass ( 1.3 NAME 'b' )",
            "a.schema, line 1, definition ( 1.2 NAME 'a' SUP name: the closing ')' is missing",
        ),
        ("dn: cn=schema\ndelete: attributeTypes\n", "a.schema, line 2, definition delete: attr"),
        ("objectidentifier A B\nobjectidentifier B A", "a.schema, line 1, definition A B: a name"),
        ("attributetype ( 1.2 NAME '\u{e4}' SUP name )", "a.schema, line 1, definition ( 1.2 NAME"),
    ];
    for (text, expected) in cases {
        // Where in the line, another test says.
        let error = DefinitionError { column: 0, ..read_one(text).unwrap_err() }.to_string();
        assert!(error.starts_with(expected), "{text}\n  {error}\n  {expected}");
    }
    let error = read(&[File { name: "x", bytes: b"# a\n\xff" }]).unwrap_err();
    assert_eq!((error.line, error.why.as_str()), (2, "it is not UTF-8 text"));
}

/// slapd ignores what is behind a definition's end. An error before it is said with its place.
#[test]
fn a_parenthesis_too_many() {
    let shoe = "attributetype ( 1.2.3 NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )";
    for text in
        [format!("{shoe} )\n"), format!("{shoe}\n  ) )\n"), format!("{shoe}))\n{}\n", "# end")]
    {
        assert_eq!(names(&read_one(&text).unwrap()).0, ["shoeSize"], "{text}");
    }
    let place = |text: &str| {
        let why = read_one(text).unwrap_err();
        (why.line, why.column, why.to_string())
    };
    let (line, column, why) = place("# a\nattributetype ( 1.2.3 NAME 'a' ) DESC 'x' )\n");
    assert_eq!((line, column), (2, 34), "{why}");
    assert!(why.contains("a.schema, line 2, column 34"), "{why}");
    let (line, column, why) =
        place("  attributetype ( 1.2.3 NAME 'a'\n  SUP ) name )\n".trim_start());
    assert_eq!((line, column), (2, 7), "{why}");
    let (line, column, why) = place("attributetype ( 1.2.3 NAME 'a' ( SUP name )\n");
    assert_eq!((line, column), (1, 32), "{why}");
    let (line, _, why) = place(&format!("{shoe}\n)\n"));
    assert_eq!(line, 2);
    assert!(why.contains("a parenthesis closed too early"), "{why}");
    let ldif = "dn: cn=schema\nattributeTypes: ( 1.2.3 NAME 'a' ) SUP name )\n";
    let (line, column, why) = place(ldif);
    assert_eq!((line, column), (2, 0));
    assert!(why.contains("(character 20 of the definition)"), "{why}");
}
