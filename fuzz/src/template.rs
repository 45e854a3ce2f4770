//! Templates of entries: an accepted template makes entries that LDIF's reader takes.

use keyway_codec::ldif::Reader;
use keyway_data::{CompileOptions, Format, Job, Part, Plan};
use std::sync::Arc;

/// Entries that are made of a template.
const ENTRIES_MAX: u64 = 8;
/// More than this is nothing new.
const BYTES_MAX: usize = 1 << 20;

/// Compiles the bytes as a template. One that is refused is refused within the text; of one that is
/// not, the last entries are those that the whole has as well.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let options = CompileOptions { per_template_max: Some(3), ..CompileOptions::default() };
    let plan = match Plan::compile("t", text, &options, &mut |_| Ok(None)) {
        Ok(plan) => Arc::new(plan),
        Err(why) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines).contains(&(why.line as usize)) && why.column > 0, "{why}");
            return;
        }
    };
    let entries = plan.entries().min(ENTRIES_MAX);
    let Some(whole) = made(&plan, 0, entries) else { return };
    let last = made(&plan, entries - 1, 1).expect("an entry that could be made can be again");
    assert!(whole.ends_with(&last), "the last entry is another when it is made alone");
    let mut reader = Reader::new();
    let mut rest = whole.as_slice();
    let mut read = 0;
    while let Some(record) = reader.read(&mut rest) {
        record.expect("entries can be read");
        read += 1;
    }
    assert!(reader.finish().is_none() && read == entries);
}

fn made(plan: &Arc<Plan>, from: u64, count: u64) -> Option<Vec<u8>> {
    let job = Job {
        plan: plan.clone(),
        from,
        count,
        generation: 0,
        formats: vec![Format::Ldif],
        compress: None,
        threads: 1,
    };
    let mut stream = job.start().ok()?;
    let mut all = Vec::new();
    while let Some(part) = stream.part(Part::default()).ok()? {
        all.extend(part.outputs.concat());
        if all.len() > BYTES_MAX {
            return None;
        }
    }
    Some(all)
}
