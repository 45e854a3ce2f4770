//! Templates that are wrong: what is said, and where.

use super::files;
use keyway_data::{CompileOptions, Plan, TemplateError};

fn wrong(text: &str) -> TemplateError {
    match Plan::compile("t", text, &CompileOptions::default(), &mut files) {
        Err(why) => why,
        Ok(_) => panic!("{text:?} is not refused"),
    }
}

/// That the text is refused there, with these words.
fn at(text: &str, line: u32, column: u32, words: &str) {
    let why = wrong(text);
    assert_eq!((why.line, why.column), (line, column), "{text:?}: {why}");
    assert!(why.why.contains(words), "{why}");
}

/// Compiles a template whose eighth line is this one.
fn line(text: &str, column: u32, words: &str) {
    let text = format!(
        "branch: dc=x\nsubordinateTemplate: t:2\n\ntemplate: t\nrdnAttr: uid\nuid: u<sequential>\n\
         cn: c\n{text}\n"
    );
    at(&text, 8, column, words);
}

#[test]
fn tags() {
    line("x: a <frist>", 6, "there is no tag <frist>; did you mean <first>?");
    line("x: <nothing at all>", 4, "keyway data tags");
    line("x: <first", 4, "'>' is missing");
    line("x: <custom:com.example.A>", 4, "Java");
    line("x: <random:alpha>", 4, "<random:alpha:N>");
    line("x: <random:alpha:x>", 4, "'x' is not a number");
    line("x: <random:alpha:5:2>", 4, "5 is more than 2");
    line("x: <random:alpha:99999999>", 4, "more than");
    line("x: <random:numeric:9:1>", 4, "9 is more than 1");
    line("x: <random:chars::3>", 4, "no characters");
    line("x: <random:telefone>", 4, "did you mean <random:telephone>?");
    line("x: <random:json:5>", 4, "there is no <random:json>; there are alpha, ");
    line("x: <presence:101>", 4, "percentage");
    line("x: <loop:5:1>", 4, "<loop> goes up");
    line("x: <list:a:0,b:0>", 4, "weights");
    line("x: <file:nowhere>", 4, "there is no file nowhere");
    line("x: <file:latin1>", 4, "not UTF-8");
    line("x: <file:empty>", 4, "no lines");
    line("x: <file:secret>", 4, "no permission");
    line("x: <exec:rm,-rf>", 4, "--allow-exec");
    line("x: <csvfield:1>", 4, "--csv FILE");
    line("x: <ref:tt>", 4, "did you mean t?");
    line("x: <ref:t:9:2>", 4, "9 to 2");
    line("x: <ref:t> <ref:t>", 12, "one <ref>");
    line("x: <zipf:0>", 4, "1 to");
    line("x: <zipf:99999999>", 4, "1 to");
    line("x: <normal:a:b>", 4, "'a' is not a number");
    line("x: <timestamp:2024-02-30:2025-01-01>", 4, "2024-02-30");
    line("x: <unique:hex:0>", 4, "0 characters");
    line("x: <base64:EBCDIC:a>", 12, "not a known charset");
    line("x:: not base64!", 5, "not base64");
    line("x:< file:///etc/passwd", 3, "not fetched");
}

#[test]
fn attributes() {
    line("x: {cnn}", 4, "did you mean {cn}?");
    line("x: {SSHA}abc", 4, "\\{");
    line("x: {cn", 4, "'}' is missing");
    line("x: {cn:x}", 4, "how many characters");
    line("x: {x}", 4, "the line that it is in");
    line("x: {y}\ny: {x}", 1, "in a circle");
    line("no colon", 1, "has no ':'");
    line("a b: c", 1, "'a b' is not an attribute");
    line("DN: <dn>", 1, "another meaning in LDIF");
}

#[test]
fn columns_count_where_the_file_has_them() {
    let text = "define long=a long value that moves columns\n\nbranch: dc=x\nx: [long] <nope>\n";
    at(text, 4, 11, "<nope>");
    at("define tag=<nope>\n\nbranch: dc=x\nx: é [tag]\n", 4, 6, "<nope>");
    at("branch: dc=x\nx: one\n  <nope>\n", 3, 3, "<nope>");
    at("branch: dc=x\r\nx: <nope>\r\n", 2, 4, "<nope>");
}

#[test]
fn sections() {
    at("", 1, 1, "no branch");
    at("x: y\n", 1, 1, "belongs to no section");
    at("branch: dc=x\n\nx: y\n", 3, 1, "belongs to no section");
    at("branch: dc\n", 1, 1, "dc");
    at("branch: dc=x\nbranch: dc=y\n", 2, 1, "empty line");
    at("branch: dc=x\nrdnAttr: dc\n", 2, 10, "a branch has a whole name");
    at("branch: dc=x\nextends: y\n", 2, 10, "only a template");
    at("branch: dc=x\n\ntemplate: t\ncn: a\n", 3, 1, "rdnAttr: uid");
    at("branch: dc=x\n\ntemplate: t\nrdnAttr: uid\ncn: a\n", 4, 10, "no line of template t");
    at("branch: dc=x\n\ntemplate: t\nrdnAttr: cn\ncn: <presence:5>a\n", 4, 10, "always");
    at("branch: dc=x\n\ntemplate: t\nrdnAttr: cn\ncn: a <dn>\n", 5, 1, "cannot be made of itself");
    at("branch: dc=x\n\ntemplate: t\n\ntemplate: T\n", 5, 1, "two templates");
    at("define x\n", 1, 8, "NAME=VALUE");
    at("include com.example.Tag\n", 1, 9, "Java");
    at("include nowhere\n", 1, 9, "no file nowhere");
    at("include secret\n", 1, 9, "no permission");
    let why = wrong("include again.template\n\nbranch: dc=x\n");
    assert!(why.why.contains("is one by itself?") && why.file == "again.template", "{why}");
}

#[test]
fn templates() {
    let start = "branch: dc=x\nsubordinateTemplate: a:1\n\n";
    at("branch: dc=x\nsubordinateTemplate: usr:1\n\ntemplate: user\n", 2, 22, "did you mean user?");
    at("branch: dc=x\nsubordinateTemplate: a:many\n", 2, 22, "'many'");
    at("branch: dc=x\nsubordinateTemplate: a:[m]\n", 2, 22, "'[m]'");
    let circle = format!(
        "{start}template: a\nrdnAttr: cn\ncn: a\nsubordinateTemplate: b:1\n\n\
         template: b\nrdnAttr: cn\ncn: b\nsubordinateTemplate: a:1\n"
    );
    at(&circle, 12, 22, "in a circle: a > b > a");
    let extends = format!("{start}template: a\nextends: b\n\ntemplate: b\nextends: a\n");
    at(&extends, 8, 10, "extends itself");
    at(&format!("{start}template: a\nextends: c\n"), 5, 10, "no template c");
    let many = "branch: dc=x\nsubordinateTemplate: a:99999999999\n\ntemplate: a\nrdnAttr: cn\n\
        cn: a\nsubordinateTemplate: b:99999999999\n\ntemplate: b\nrdnAttr: cn\ncn: b\n";
    at(many, 2, 22, "more than 9007199254740992 entries");
    let deep: String = (0..40)
        .map(|at| {
            let next = at + 1;
            format!("template: t{at}\nrdnAttr: cn\ncn: a\nsubordinateTemplate: t{next}:1\n\n")
        })
        .collect();
    let deep = format!("branch: dc=x\n\n{deep}template: t40\nrdnAttr: cn\ncn: a\n");
    assert!(wrong(&deep).why.contains("deep"));
}

#[test]
fn names_of_others_are_not_in_names() {
    let text = "branch: dc=x\nsubordinateTemplate: t:2\n\ntemplate: t\nrdnAttr: cn\ncn: <ref:t>\n";
    at(text, 6, 1, "other entries' names");
}

#[test]
fn what_may_be_a_slip_is_said() {
    let text = "branch: dc=x\nx: [maildomin] [a b] \\[c]\n";
    let plan = Plan::compile("t", text, &CompileOptions::default(), &mut files).unwrap();
    let [warning] = plan.warnings() else { panic!("{:?}", plan.warnings()) };
    assert!(warning.starts_with("t, line 2, column 4: "), "{warning}");
}

/// A value that doubles with each line does not fill the memory.
#[test]
fn entries_do_not_grow_without_bound() {
    let lines: String =
        (1..60).map(|at| format!("x{at}: {{x{}}}{{x{}}}\n", at - 1, at - 1)).collect();
    let text = format!("branch: dc=x\nx0: abcdefgh\n{lines}");
    let job = super::job(super::compile(&text, &CompileOptions::default()));
    let why = std::io::read_to_string(job.start().unwrap()).unwrap_err().to_string();
    assert!(why.contains("entry 0 has more than"), "{why}");
}

/// Nor does a constant, or a chain of lines that take values of each other.
#[test]
fn templates_do_not_grow_without_bound() {
    let doubled: String =
        (1..40).map(|at| format!("define a{at}=[a{}][a{}]\n", at - 1, at - 1)).collect();
    let text = format!("define a0=abcdefgh\n{doubled}branch: dc=x\n");
    assert!(wrong(&text).why.contains("constants"), "{}", wrong(&text));
    let long = format!("branch: dc=x\nx: {}\n", "a".repeat(70_000));
    at(&long, 2, 1, "a line may have");
    let zipfs = format!("branch: dc=x\n{}", "x: <zipf:1000000>\n".repeat(9));
    at(&zipfs, 10, 4, "all of a template");
    let chain = |lines: u32| -> String {
        let each = (0..lines).map(|at| format!("x{at}: {{x{}}}\n", at + 1));
        format!("branch: dc=x\n{}x{lines}: end\n", each.collect::<String>())
    };
    assert!(super::ldif(&chain(200)).ends_with("x199: end\nx200: end\n\n"));
    at(&chain(4_000), 258, 1, "more than 256 lines");
    let much: String = (0..5_000).map(|at| format!("x{at}: a\n")).collect();
    at(&format!("branch: dc=x\n{much}"), 4_098, 1, "no more");
}

/// A slip in a name that is given would leave the template's own value.
#[test]
fn constants_that_are_given_and_are_none() {
    let text = "define numusers=3\ndefine suffix=dc=x\n\nbranch: [suffix]\ndescription: [other]\n";
    let given = |name: &str| {
        let constants = vec![(name.to_owned(), "1".to_owned())];
        Plan::compile(
            "t",
            text,
            &CompileOptions { constants, ..CompileOptions::default() },
            &mut files,
        )
    };
    for name in ["numusers", "NumUsers", "other"] {
        assert!(given(name).is_ok(), "{name}");
    }
    let why = |name: &str| given(name).err().map(|why| why.to_string()).unwrap_or_default();
    assert!(
        why("numuser").contains("no constant numuser; did you mean numusers?"),
        "{}",
        why("numuser")
    );
    assert!(why("zzzzzzzz").contains("it has numusers, suffix"), "{}", why("zzzzzzzz"));
}

#[test]
fn a_branch_that_is_there_twice() {
    at("branch: dc=x\n\nbranch: ou=a,dc=x\n\nbranch: OU = A , dc=X\n", 5, 1, "already, in line 3");
    at("branch: dc=x\n\nbranch: dc=x\nsubordinateTemplate: t:1\n", 3, 1, "already, in line 1");
}
