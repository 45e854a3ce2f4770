//! Entries into files: the entries themselves, and lists beside them.

use super::arguments::{Compression, Make};
use super::filters;
use keyway_data::{Compress, Format, Job, Part, Plan};
use keyway_host::atomic_file::Target;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::signals::Second;
use keyway_host::stop::Stop;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A file that is being written.
struct Output {
    target: Target,
    writer: Box<dyn Write>,
    format: Format,
    bytes: u64,
}

impl Output {
    fn open(path: &Path, format: Format) -> Result<Output, Failure> {
        let target = Target::open(path)?;
        let writer = target.writer()?;
        Ok(Output { target, writer, format, bytes: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.bytes += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(|why| self.target.cannot_write(&why))
    }
}

/// Writes the entries.
///
/// # Errors
/// If a file cannot be written or an entry not be made; files are not there then.
pub fn run(arguments: &Make, plan: &Arc<Plan>, range: (u64, u64)) -> Result<(), Failure> {
    let format = arguments.entry_format(&plan.attributes())?;
    let compress = compress(arguments.compress, &arguments.output);
    let mut outputs = Vec::new();
    let lists = [
        (&arguments.dns, Format::Dns),
        (&arguments.binds, Format::Binds),
        (&arguments.logins, Format::Logins(arguments.login_attribute.clone())),
    ];
    look_for_twice(arguments)?;
    let stop = Stop::watch(Second::Ends)?;
    let written = (|| {
        outputs.push(Output::open(&arguments.output, format)?);
        for (path, format) in lists {
            if let Some(path) = path {
                outputs.push(Output::open(path, format)?);
            }
        }
        let (entries, seconds) = entries(arguments, plan, range, compress, &mut outputs, &stop)?;
        let filters = filters::write(arguments, plan, range, &stop)?;
        Ok((entries, seconds, filters))
    })();
    let (entries, seconds, filters) = written.inspect_err(|_: &Failure| {
        outputs.iter().for_each(|output| output.target.discard());
    })?;
    for output in &outputs {
        output.target.finish()?;
    }
    let bytes = outputs.first().map_or(0, |output| output.bytes);
    let to_standard = arguments.output.as_os_str() == "-";
    if arguments.json {
        let line = json!({
            "event": "made", "template": arguments.entries.template,
            "seed": arguments.entries.seed, "from": range.0, "entries": entries, "bytes": bytes, "seconds": seconds,
            "filters": filters, "file": (!to_standard).then_some(&arguments.output),
        });
        return if to_standard { output::aside(&line) } else { output::json(&line) };
    }
    if to_standard {
        return Ok(());
    }
    let rate = entries as f64 / seconds.max(1e-3);
    let filters = filters.map_or(String::new(), |it| format!(", and {} filters", grouped(it)));
    output::text(format_args!(
        "made {} entries{filters} in {} ({seconds:.1} s, {} a second)",
        grouped(entries),
        arguments.output.display(),
        grouped(rate as u64)
    ))
}

/// Two outputs that are the same file would spoil each other.
fn look_for_twice(arguments: &Make) -> Result<(), Failure> {
    let Make { output, dns, binds, logins, filters, .. } = arguments;
    let all: Vec<_> = [Some(output), dns.as_ref(), binds.as_ref(), logins.as_ref()]
        .into_iter()
        .chain([filters.as_ref()])
        .flatten()
        .filter(|path| path.as_os_str() != "/dev/null")
        .collect();
    for (at, path) in all.iter().enumerate() {
        if all.iter().skip(at + 1).any(|other| other == path) {
            let path = path.display();
            return Err(Failure::usage(format!("{path} cannot be two outputs at once")));
        }
    }
    Ok(())
}

fn entries(
    arguments: &Make,
    plan: &Arc<Plan>,
    (from, count): (u64, u64),
    compress: Option<Compress>,
    outputs: &mut [Output],
    stop: &Stop,
) -> Result<(u64, f64), Failure> {
    let job = Job {
        plan: plan.clone(),
        from,
        count,
        generation: arguments.entries.generation,
        formats: outputs.iter().map(|output| output.format.clone()).collect(),
        compress,
        threads: arguments.thread_count(),
    };
    let bar = Progress::entries("making entries", count);
    let mut made = 0;
    if let Some(first) = outputs.first_mut() {
        let head = first.format.head();
        let head = match compress {
            Some(compress) => compress.part(&head).map_err(Failure::new)?,
            None => head,
        };
        first.write(&head)?;
    }
    let mut stream = job.start().map_err(Failure::new)?;
    let mut part = Part::default();
    while let Some(next) = stream.part(part).map_err(Failure::new)? {
        for (output, bytes) in outputs.iter_mut().zip(&next.outputs) {
            output.write(bytes)?;
        }
        made += next.entries;
        bar.at(made, made);
        if stop.is_asked() && made < count {
            return Err(stopped(arguments, made, count));
        }
        part = next;
    }
    for output in outputs {
        output.writer.flush().map_err(|why| output.target.cannot_write(&why))?;
    }
    Ok((made, bar.seconds()))
}

fn stopped(arguments: &Make, made: u64, count: u64) -> Failure {
    let (made, count) = (grouped(made), grouped(count));
    let file = arguments.output.display();
    Stop::failure(&match arguments.output.as_os_str() == "-" {
        true => format!("stopped after {made} of {count} entries; the output has no more of them"),
        false => format!("stopped after {made} of {count} entries; {file} was not written"),
    })
}

/// How a file is to be compressed: as the flag says, else as it is called.
pub fn compress(flag: Option<Compression>, file: &Path) -> Option<Compress> {
    let extension = file.extension().and_then(|it| it.to_str()).unwrap_or_default();
    match (flag, extension) {
        (Some(Compression::Gzip), _) | (None, "gz") => Some(Compress::Gzip),
        (Some(Compression::Zstd), _) | (None, "zst" | "zstd") => Some(Compress::Zstd),
        _ => None,
    }
}
