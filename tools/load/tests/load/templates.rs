//! Entries of templates that runs add: each once, the same as `keyway data` makes.

use crate::agents;
use crate::stub::{Answer, FINE, Stub};
use crate::{outcome, scenario, with};
use keyway_codec::Op;
use keyway_codec::message::ResultCode;
use keyway_data::{CompileOptions, Maker, Plan, TEMPLATES};
use keyway_load::{Error, Fault, Interrupt, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A scenario of one job whose entries are the example's people, or others.
fn adding(url: &str, source: &str, settings: &str, phase: &str, steps: &str) -> String {
    let users = "user = { range = [0, 99] }";
    let text = scenario(url, settings, phase, steps);
    assert!(text.contains(users));
    text.replace(users, &format!("person = {{ {source} }}"))
}

const EXAMPLE: &str = "template = \"example\"";
const ADD: &str = "{ add = { entry = \"person\" } }";

/// Names and attributes that were added.
type Added = Arc<Mutex<Vec<(String, BTreeMap<String, Vec<Vec<u8>>>)>>>;

/// A server that keeps what is added.
fn keeping() -> (Stub, Added) {
    let added = Added::default();
    let kept = added.clone();
    let stub = Stub::new(move |op| {
        if let Op::AddRequest(add) = op {
            let values = |values: &[std::borrow::Cow<'_, [u8]>]| {
                values.iter().map(|value| value.to_vec()).collect()
            };
            let attributes = add.attributes.iter();
            let attributes =
                attributes.map(|it| (it.description.to_string(), values(&it.values))).collect();
            kept.lock().unwrap().push((add.dn.to_string(), attributes));
        }
        FINE
    });
    (stub, added)
}

#[test]
fn what_is_added_is_what_data_makes() {
    let (stub, added) = keeping();
    let source = format!("{EXAMPLE}, from = 7, seed = 42");
    let text = adding(&stub.url, &source, "threads = 2", "for = \"500ms\"\nrate = 100", ADD);
    let outcome = outcome(&text).unwrap();
    assert_eq!((outcome.recorded.done(), outcome.recorded.errors()), (50, 0));
    let options = CompileOptions { seed: 42, ..CompileOptions::default() };
    let plan = Plan::compile("t", TEMPLATES[0].1, &options, &mut |_| Ok(None)).unwrap();
    // Two branches come first.
    let mut maker = Maker::new(Arc::new(plan), 2 + 7).unwrap();
    let added: BTreeMap<_, _> = added.lock().unwrap().drain(..).collect();
    assert_eq!(added.len(), 50, "each once");
    for _ in 0..50 {
        let entry = maker.next_entry().unwrap().unwrap();
        let made: BTreeMap<String, Vec<Vec<u8>>> = entry
            .attributes()
            .map(|(name, values)| (name.to_owned(), values.map(<[u8]>::to_vec).collect()))
            .collect();
        assert_eq!(added.get(entry.dn()), Some(&made), "{}", entry.dn());
    }
}

#[test]
fn agents_and_threads_take_each_number_once() {
    let (stub, added) = keeping();
    let settings = "threads = 2\nconnections = { count = 4 }";
    let text = adding(&stub.url, EXAMPLE, settings, "for = \"1s\"\nrate = 200", ADD);
    let outcome = agents::run(&text, |_| ()).unwrap();
    assert_eq!((outcome.recorded.done(), outcome.recorded.errors()), (200, 0));
    let names: BTreeSet<String> = added.lock().unwrap().drain(..).map(|(dn, _)| dn).collect();
    // From the first on that data does not make of this template.
    let dn = |number: u32| format!("uid=user.{number},ou=People,dc=example,dc=com");
    assert_eq!(names, (10_000..10_200).map(dn).collect());
}

#[test]
fn later_steps_know_the_entry() {
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let (seen, last) = (wrong.clone(), Mutex::new(String::new()));
    let stub = Stub::new(move |op| {
        let mut last = last.lock().unwrap();
        let is_right = match op {
            Op::AddRequest(add) => {
                *last = add.dn.to_string();
                true
            }
            Op::SearchRequest(search) => {
                let uid = last.split_once(',').unwrap().0;
                let mail = format!("(mail={}@example.com)", uid.trim_start_matches("uid="));
                search.base == *last && search.filter.to_string() == mail
            }
            Op::DeleteRequest(dn) => *dn == last.as_str(),
            _ => true,
        };
        if !is_right {
            seen.lock().unwrap().push(format!("{op:?} after {last}"));
        }
        FINE
    });
    let steps = format!(
        "{ADD}, {{ search = {{ base = \"{{person}}\", filter = \"(mail={{person.mail}})\" }} }}, \
         {{ delete = {{}} }}"
    );
    let settings = "threads = 1\nconnections = { count = 1 }";
    let text = adding(&stub.url, EXAMPLE, settings, "for = \"200ms\"\nrate = 100", &steps);
    let outcome = outcome(&text).unwrap();
    assert_eq!((outcome.recorded.done(), outcome.recorded.errors()), (20, 0));
    assert!(wrong.lock().unwrap().is_empty(), "{:?}", wrong.lock().unwrap());
}

/// A server that refuses entries does so for a reason, and that is what is counted.
#[test]
fn refused_entries_are_counted_by_their_reason() {
    let stub = Stub::new(|op| match op {
        Op::AddRequest(add) => match add.dn.as_bytes()[9] % 3 {
            0 => Answer::Code(ResultCode::EntryAlreadyExists, 0),
            1 => Answer::Code(ResultCode::NoSuchObject, 0),
            _ => FINE,
        },
        _ => FINE,
    });
    let source = format!("{EXAMPLE}, from = 0");
    let text = adding(&stub.url, &source, "threads = 1", "for = \"100ms\"\nrate = 100", ADD);
    let outcome = outcome(&text).unwrap();
    let failed = outcome.recorded.jobs[0].failed.iter();
    let failed: Vec<_> = failed.map(|(key, it)| (key.1, it.count)).collect();
    // uid=user.0 to uid=user.9: the digits' bytes are 48 to 57.
    assert_eq!(failed, [(Fault::Code(32), 3), (Fault::Code(68), 4)]);
    assert_eq!(outcome.recorded.done(), 3);
}

fn refused(source: &str, steps: &str, folder: &Path) -> String {
    let text = adding("ldap://localhost", source, "", "for = \"1s\"", steps);
    match Scenario::parse(&text, "file", folder) {
        Ok(_) => panic!("it is taken: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_wrong_with_a_template_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file("wrong.template", "branch: dc=x\n\ntemplate: t\nrdnAttr: cn\ncn: <sequntial>\n");
    file(
        "two.template",
        "branch: dc=x\nsubordinateTemplate: one:1\nsubordinateTemplate: other:1\n\n\
         template: one\nrdnAttr: cn\ncn: a\n\ntemplate: other\nrdnAttr: cn\ncn: b\n",
    );
    file("none.template", "branch: dc=x\n");
    file(
        "exec.template",
        "branch: dc=x\nsubordinateTemplate: t:1\n\ntemplate: t\nrdnAttr: cn\ncn: <exec:id>\n",
    );
    for (source, steps, words) in [
        ("template = \"wrong.template\"", ADD, "wrong.template, line 5, column 5"),
        ("template = \"nowhere.template\"", ADD, "there is no file"),
        ("template = \"two.template\"", ADD, "which of its templates"),
        ("template = \"two.template\", of = \"othr\"", ADD, "did you mean 'other'?"),
        ("template = \"none.template\"", ADD, "no entries below a branch"),
        ("template = \"exec.template\"", ADD, "only keyway data make --allow-exec"),
        ("template = \"example\", pick = \"uniform\"", ADD, "there is no pick"),
        ("template = \"example\", range = [0, 1]", ADD, "exactly one of"),
        ("template = \"example\", define = { suffix = 1 }", ADD, "a text in quotes"),
        (EXAMPLE, "{ add = { entry = \"persn\" } }", "did you mean {person}?"),
        (EXAMPLE, "{ add = { entry = \"person\", dn = \"a\" } }", "either entry"),
        (EXAMPLE, "{ search = { filter = \"(a={person.mial})\" } }", "did you mean 'mail'?"),
        ("range = [0, 1]", ADD, "'person' is not from a template"),
        (
            EXAMPLE,
            "{ add = { entry = \"person\" } }, { rename = { rdn = \"a=b\" } }, { delete = {} }",
            "dn is missing",
        ),
    ] {
        let why = refused(source, steps, folder.path());
        assert!(why.contains(words), "{source} {steps}: {why}");
    }
}

/// An agent reads files below its folder only, also where a template names them.
#[test]
fn agents_read_no_templates_elsewhere() {
    let stub = Stub::new(|_| FINE);
    let settings = "connections = { count = 4 }";
    let fails = |source: &str| {
        let text = adding(&stub.url, source, settings, "for = \"100ms\"", ADD);
        agents::run(&text, |_| ()).unwrap_err().to_string()
    };
    let why = fails("template = \"../people.template\"");
    assert!(why.contains("there is no file"), "the hub has none: {why}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.template");
    fs::write(&path, "branch: dc=x\nsubordinateTemplate: t:1\n\ntemplate: t\nrdnAttr: cn\ncn: a\n")
        .unwrap();
    let why = fails(&format!("template = \"{}\"", path.display()));
    assert!(why.contains("below its folder only"), "{why}");
}

/// An entry that cannot be made is not the server's fault: the run says so, and ends.
#[test]
fn an_entry_that_cannot_be_made_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = "branch: dc=x\nsubordinateTemplate: t:1\n\ntemplate: t\nrdnAttr: cn\n\
                cn: {sn}\nsn: <presence:50>a\n";
    let path = folder.path().join("names.template");
    fs::write(&path, text).unwrap();
    let stub = Stub::new(|_| FINE);
    let source = format!("template = \"{}\"", path.display());
    let text = adding(&stub.url, &source, "threads = 1", "for = \"2s\"\nrate = 100", ADD);
    match with(&text, &Interrupt::default(), &mut |_| ()) {
        Err(Error::Server(why)) => assert!(why.contains("has no name: cn"), "{why}"),
        other => panic!("{other:?}"),
    }
}
