//! The tags: what each is called, what it does, and an example of it.

use keyway_codec::definitions::nearest;

/// A tag of the template language.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// Its name, in small letters.
    pub name: &'static str,
    /// Its forms.
    pub forms: &'static [&'static str],
    /// The description of its value.
    pub what: &'static str,
    /// A line of a template.
    pub example: &'static str,
}

const fn tag(
    name: &'static str,
    forms: &'static [&'static str],
    what: &'static str,
    example: &'static str,
) -> Tag {
    Tag { name, forms, what, example }
}

/// All tags, by subject.
pub const TAGS: &[Tag] = &[
    tag(
        "first",
        &["<first>"],
        "a first name, of first.names; pairs with <last> are unique",
        "givenName: <first>",
    ),
    tag(
        "last",
        &["<last>"],
        "a last name, of last.names; a number is appended when all pairs are used up",
        "sn: <last>",
    ),
    tag(
        "sequential",
        &["<sequential>", "<sequential:START>", "<sequential:START:false>"],
        "numbers from START (0) on; they begin again below each parent, unless 'false' is said",
        "uid: user.<sequential:1>",
    ),
    tag(
        "random",
        &[
            "<random:alpha:N>",
            "<random:numeric:N>",
            "<random:alphanumeric:N>",
            "<random:hex:N>",
            "<random:chars:LETTERS:N>",
            "<random:base64:N>",
            "<random:numeric:MIN:MAX>",
            "<random:numeric:MIN:MAX:DIGITS>",
            "<random:numeric:MIN:MAX:#,##0>",
            "<random:month>",
            "<random:month:N>",
            "<random:telephone>",
        ],
        "N random characters (or N:M, from N to M of them), a number, a month (its first N \
        letters), a telephone number",
        "employeeNumber: <random:numeric:1:99999:5>",
    ),
    tag("guid", &["<guid>"], "a UUID, version 4, by the seed", "entryUUID: <guid>"),
    tag("uuid", &["<uuid>"], "the same", "uuid: <uuid>"),
    tag(
        "list",
        &["<list:a,b,c>", "<list:a:5,b:1>", "<list:a:b:c>", "<list:a;5:b;1>"],
        "one of these, by weight if one is given; with commas as SLAMD writes it, with colons as \
        OpenDJ does",
        "title: <list:Clerk:8,Head of Department:1>",
    ),
    tag(
        "file",
        &["<file:NAME>", "<file:NAME:sequential>", "<file:NAME:zipf>"],
        "a line of a file beside the template: any, one after the other, or the first ones most \
        often; cities, states and streets are built in",
        "l: <file:cities>",
    ),
    tag(
        "presence",
        &["<presence:PERCENT>"],
        "nothing, and the line is there in so many of 100 entries",
        "pager: <presence:20><random:telephone>",
    ),
    tag(
        "ifpresent",
        &["<ifpresent:ATTRIBUTE>", "<ifpresent:ATTRIBUTE:VALUE>"],
        "nothing, and the line is there only if the attribute is (with this value)",
        "mobile: <ifpresent:pager><random:telephone>",
    ),
    tag(
        "ifabsent",
        &["<ifabsent:ATTRIBUTE>", "<ifabsent:ATTRIBUTE:VALUE>"],
        "nothing, and the line is there only if the attribute is not (or has not this value)",
        "description: <ifabsent:pager>no pager",
    ),
    tag(
        "loop",
        &["<loop:FIRST:LAST>"],
        "a number, and the line is there once for each",
        "member: uid=user.<loop:1:100>,ou=People,[suffix]",
    ),
    tag(
        "dn",
        &["<dn>", "<dn:N>", "<dn:-N>"],
        "the entry's name, or its first or last N parts",
        "seeAlso: <dn>",
    ),
    tag(
        "rdn",
        &["<rdn>", "<rdn:N>"],
        "the name's first part, or the Nth of those it is made of",
        "description: I am <rdn>",
    ),
    tag("parentdn", &["<parentdn>"], "the name of the entry above", "manager: <parentdn>"),
    tag(
        "ancestordn",
        &["<ancestordn:N>"],
        "the name of the entry N above; 1 is the parent",
        "seeAlso: <ancestordn:2>",
    ),
    tag("_dn", &["<_dn>"], "the name with underscores for commas", "uid: <_dn>"),
    tag(
        "_parentdn",
        &["<_parentdn>"],
        "the parent's name with underscores for commas",
        "uid: <_parentdn>",
    ),
    tag(
        "_ancestordn",
        &["<_ancestordn:N>"],
        "the name of the entry N above with underscores for commas",
        "uid: <_ancestordn:2>",
    ),
    tag("underscoredn", &["<underscoredn>"], "as <_dn>", "uid: <underscoredn>"),
    tag(
        "underscoreparentdn",
        &["<underscoreparentdn>"],
        "as <_parentdn>",
        "uid: <underscoreparentdn>",
    ),
    tag(
        "parent",
        &["<parent:ATTRIBUTE>"],
        "the first value of an attribute of the entry above",
        "ou: <parent:ou>",
    ),
    tag(
        "base64",
        &["<base64:VALUE>", "<base64:CHARSET:VALUE>"],
        "a value, with tags in it, in base64: UTF-8 or as the charset (UnicodeLittleUnmarked, \
        ISO-8859-1, ..) has it",
        "unicodePwd:: <base64:UnicodeLittleUnmarked:\"<random:alphanumeric:8>\">",
    ),
    tag(
        "csvfield",
        &["<csvfield:N>"],
        "field N, from 0, of the row that has the entry's number (--csv FILE)",
        "mail: <csvfield:2>",
    ),
    tag(
        "exec",
        &["<exec:PROGRAM,ARGUMENT,..>"],
        "the output of a program, without line ends; only with --allow-exec",
        "description: <exec:date,+%F>",
    ),
    tag(
        "ref",
        &["<ref:TEMPLATE>", "<ref:TEMPLATE:MIN:MAX>", "<ref:TEMPLATE:MIN:MAX:zipf>"],
        "the name of an entry of a template; with MIN and MAX as many values, each another one, \
        few of the large numbers with 'zipf'",
        "member: <ref:person:2:50>",
    ),
    tag(
        "zipf",
        &["<zipf:N>", "<zipf:N:EXPONENT>"],
        "a number from 1 to N; 1 most often, k 1/k^EXPONENT (1) as often",
        "departmentNumber: <zipf:100>",
    ),
    tag(
        "normal",
        &["<normal:MEAN:DEVIATION>", "<normal:MEAN:DEVIATION:MIN:MAX>"],
        "a whole number of a normal distribution, no further than six deviations from the mean",
        "roomNumber: <normal:250:40:1:500>",
    ),
    tag(
        "timestamp",
        &["<timestamp>", "<timestamp:FROM:TO>"],
        "a moment (GeneralizedTime) between two days; without them, of 2020 to 2024",
        "pwdChangedTime: <timestamp:2024-01-01:2024-12-31>",
    ),
    tag(
        "bytes",
        &["<bytes:N>", "<bytes:MIN:MAX>"],
        "N random bytes",
        "jpegPhoto: <bytes:2000:9000>",
    ),
    tag(
        "unique",
        &["<unique:alpha:N>", "<unique:numeric:N>", "<unique:alphanumeric:N>", "<unique:hex:N>"],
        "N random characters that no other entry of the template has",
        "uid: <unique:alphanumeric:8>",
    ),
];

/// The tag of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tag> {
    TAGS.iter().find(|tag| tag.name.eq_ignore_ascii_case(name))
}

/// The error for a tag that does not exist.
pub(crate) fn unknown(name: &str) -> String {
    if name.eq_ignore_ascii_case("custom") {
        return "<custom> runs a class of Java, which Keyway cannot; write another tag (keyway data \
                tags lists them)"
            .to_owned();
    }
    match nearest(name, TAGS.iter().map(|tag| tag.name)) {
        Some(near) => format!("there is no tag <{name}>; did you mean <{near}>?"),
        None => format!(
            "there is no tag <{name}> (keyway data tags lists them); write \\< for the sign itself"
        ),
    }
}
