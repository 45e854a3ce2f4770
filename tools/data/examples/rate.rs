//! How fast one core makes entries: `cargo run --release -p keyway-data --example rate -- [ENTRIES]
//! [TEMPLATE]`. Nothing is kept, as if it were written to /dev/null.

use keyway_data::{CompileOptions, Format, Job, Part, Plan};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::sync::Arc;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(2_000_000), |it| it.parse())?;
    let (name, built_in) = keyway_data::TEMPLATES[0];
    let text = arguments.next().map_or(Ok(built_in.to_owned()), fs::read_to_string)?;
    let constants = vec![("numusers".to_owned(), entries.to_string())];
    let options = CompileOptions { constants, ..CompileOptions::default() };
    let plan = Arc::new(Plan::compile(name, &text, &options, &mut |_| Ok(None))?);
    for turn in 1..=3 {
        let begun = cpu_s();
        let job = Job {
            plan: plan.clone(),
            from: 0,
            count: u64::MAX,
            generation: 0,
            formats: vec![Format::Ldif],
            compress: None,
            threads: 1,
        };
        let (mut made, mut bytes) = (0, 0);
        let mut stream = job.start()?;
        let mut part = Part::default();
        while let Some(next) = stream.part(part)? {
            made += next.entries;
            bytes += next.outputs.iter().map(Vec::len).sum::<usize>();
            part = next;
        }
        let seconds = cpu_s() - begun;
        let rate = made as f64 / seconds;
        println!(
            "{turn}: {made} entries, {bytes} bytes in {seconds:.2} s of CPU: {rate:.0} entries a \
             second of it, {:.0} ns and {} bytes an entry",
            1e9 / rate,
            bytes as u64 / made.max(1)
        );
    }
    Ok(())
}

/// The processor time of this process, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
