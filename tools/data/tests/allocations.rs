//! Entries are made without asking for memory, once the buffers are there.

use keyway_data::{CompileOptions, Format, Job, Part, Plan, TEMPLATES};
use keyway_test_allocator::of_all_threads;
use std::sync::Arc;

/// How many times memory is asked for until so many parts are made, beyond the first ones.
fn asked_for(text: &str, constants: &[(&str, &str)]) -> (u64, u64) {
    let constants = constants.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let options = CompileOptions { constants, ..CompileOptions::default() };
    let plan = Arc::new(Plan::compile("t", text, &options, &mut |_| Ok(None)).unwrap());
    let job = Job {
        plan,
        from: 0,
        count: u64::MAX,
        generation: 0,
        formats: vec![Format::Ldif],
        compress: None,
        threads: 1,
    };
    let mut stream = job.start().unwrap();
    let mut part = Part::default();
    for _ in 0..20 {
        part = stream.part(part).unwrap().unwrap();
    }
    let (before, mut entries) = (of_all_threads(), 0);
    while let Some(next) = stream.part(part).unwrap() {
        entries += next.entries;
        part = next;
    }
    (of_all_threads() - before, entries)
}

#[test]
fn no_entry_allocates() {
    let (asked, entries) = asked_for(TEMPLATES[0].1, &[("numusers", "60000")]);
    assert!(entries > 30_000);
    // A buffer may still grow a little; an entry does not ask.
    assert!(asked < 20, "{asked} for {entries} entries");
    let (asked, entries) = asked_for(TEMPLATES[1].1, &[("numous", "300")]);
    assert!(entries > 10_000);
    assert!(asked < 20, "{asked} for {entries} entries");
}
