//! Templates of both dialects, and what comes of them.

mod client;
mod filters;
mod language;
mod mistakes;
mod tree;
mod whole;

use keyway_codec::ldif::{Reader, Record, RecordKind};
use keyway_data::{CompileOptions, Format, Job, Plan};
use std::io::Read;
use std::sync::Arc;

/// The files beside a template in these tests.
fn files(name: &str) -> Result<Option<Vec<u8>>, String> {
    Ok(match name {
        "colours" => Some(b"red\ngreen\nblue\n".to_vec()),
        "more.template" => Some(b"template: other\nrdnAttr: cn\ncn: other <sequential>\n".to_vec()),
        "again.template" => Some(b"include again.template\n".to_vec()),
        "latin1" => Some(b"\xe9\n".to_vec()),
        "empty" => Some(b"\n\n".to_vec()),
        "secret" => return Err("secret: no permission".to_owned()),
        _ => None,
    })
}

fn compile(text: &str, options: &CompileOptions) -> Plan {
    let plan = Plan::compile("t", text, options, &mut files);
    plan.unwrap_or_else(|why| panic!("{why}"))
}

fn job(plan: Plan) -> Job {
    Job {
        plan: Arc::new(plan),
        from: 0,
        count: u64::MAX,
        generation: 0,
        formats: vec![Format::Ldif],
        compress: None,
        threads: 1,
    }
}

fn bytes(job: Job) -> Vec<u8> {
    let mut bytes = Vec::new();
    job.start().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn ldif(text: &str) -> String {
    String::from_utf8(bytes(job(compile(text, &CompileOptions::default())))).unwrap()
}

fn records(mut text: &[u8]) -> Vec<Record> {
    let mut reader = Reader::new();
    let mut records = Vec::new();
    while let Some(record) = reader.read(&mut text) {
        records.push(record.unwrap_or_else(|why| panic!("{why}")));
    }
    records.extend(reader.finish().transpose().unwrap());
    records
}

/// Entries by the codec's reader: names, and attributes with values.
fn entries(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let lines = |record: Record| match record.kind {
        RecordKind::Content(lines) | RecordKind::Add(lines) => {
            let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
            (record.dn, lines.into_iter().map(|(name, value)| (name, text(value))).collect())
        }
        other => panic!("{other:?}"),
    };
    records(ldif(text).as_bytes()).into_iter().map(lines).collect()
}

/// The values of an attribute of all entries of a template that is tried out: a line of it.
fn values(count: u64, lines: &str) -> Vec<Vec<String>> {
    let text = format!(
        "branch: dc=x\nsubordinateTemplate: t:{count}\n\ntemplate: t\nrdnAttr: uid\n\
         uid: u<sequential>\n{lines}\n"
    );
    let of_x = |lines: Vec<(String, String)>| {
        lines.into_iter().filter(|(name, _)| name == "x").map(|(_, value)| value).collect()
    };
    entries(&text).into_iter().skip(1).map(|(_, lines)| of_x(lines)).collect()
}

/// The only value.
fn value(count: u64, lines: &str) -> Vec<String> {
    values(count, lines).into_iter().map(|mut it| it.pop().unwrap_or_default()).collect()
}
