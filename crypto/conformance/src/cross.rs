//! Every operation against the reference, on random input of awkward lengths.

use crate::bench::{Bench, Checked, Stop};
use crate::jobs::jobs;
use crate::work::{Work, bytes};
use keyway_engine::{Algorithm, Kind, Request, Session};

/// Around the ends of blocks, lanes and buffers.
const SIZES: [usize; 32] = [
    0, 1, 8, 15, 16, 17, 31, 32, 33, 48, 55, 56, 63, 64, 65, 111, 112, 127, 128, 129, 135, 136,
    137, 255, 256, 257, 1023, 1024, 1500, 4097, 16_384, 65_537,
];
const LARGE: usize = 1 << 18;
const FEW: [usize; 4] = [0, 1, 32, 200];

pub(crate) fn check(bench: &Bench, work: &Work) -> Checked {
    let mut rng = bench.rng(work);
    let heavy = work.is_heavy();
    let sizes = if heavy { &FEW[..] } else { &SIZES };
    let mut cases = 0;
    for round in 0..bench.plan.rounds.max(1) {
        let large = (round == 0 && !heavy).then_some(&LARGE);
        for size in sizes.iter().chain(large) {
            let pair = bench.pair(work, &mut rng)?;
            for job in jobs(bench, &pair, work, &mut rng, *size)? {
                let mut operation = job.operation.clone();
                let result = operation.with(|request| pair.subject.run(request));
                job.judge(&operation, result)?;
                cases += 1;
            }
            if let [algorithm] = *work.steps {
                let text = bytes(&mut rng, *size);
                cases += in_parts(&pair.subject, &pair.reference, algorithm, &text)?;
            }
        }
    }
    if let [algorithm] = *work.steps
        && algorithm.kind() == Kind::Hash
    {
        cases += streamed(bench, algorithm, &bytes(&mut rng, 5_000))?;
    }
    Ok(cases)
}

/// A message in three parts, one of them empty, is the message.
fn in_parts(subject: &Session, reference: &Session, algorithm: Algorithm, text: &[u8]) -> Checked {
    let (front, back) = text.split_at(text.len() / 3);
    let mut outs = [vec![0; algorithm.output_bytes().unwrap_or(0)], Vec::new()];
    outs[1] = outs[0].clone();
    for (session, parts, out) in
        [(subject, &[front, &[], back][..], 0), (reference, &[text][..], 1)]
    {
        let (data, info, out) = (parts, parts, &mut outs[out][..]);
        let result = match algorithm.kind() {
            Kind::Hash => session.run(&mut Request::Digest { data, out }),
            Kind::Mac => session.run(&mut Request::Mac { data, out }),
            Kind::Hkdf => session.run(&mut Request::Expand { info, out }),
            _ => return Ok(0),
        };
        result.map_err(|error| Stop::fail("a message in parts", error.to_string()))?;
    }
    if outs[0] != outs[1] {
        let case = format!("{} bytes in three parts", text.len());
        return Err(Stop::fail(case, "the bytes are wrong"));
    }
    Ok(1)
}

/// A hash fed in pieces, and forked on the way.
fn streamed(bench: &Bench, algorithm: Algorithm, text: &[u8]) -> Checked {
    let fed = || {
        let mut stream = bench.driver.stream(algorithm)?;
        let mut fork = None;
        for (index, piece) in text.chunks(777).enumerate() {
            stream.update(piece)?;
            if index == 2 {
                fork = Some(stream.fork()?);
            }
        }
        let mut outs = [(); 2].map(|()| vec![0; algorithm.output_bytes().unwrap_or(0)]);
        stream.finish(&mut outs[0])?;
        fork.map_or(Ok(()), |fork| fork.finish(&mut outs[1]))?;
        Ok(outs)
    };
    let outs = match fed() {
        Ok(outs) => outs,
        Err(keyway_engine::Error::Unsupported(_)) => return Ok(0),
        Err(error) => return Err(Stop::fail("a stream", error.to_string())),
    };
    for (out, text) in outs.iter().zip([text, &text[..3 * 777]]) {
        let mut expected = out.clone();
        let digest = bench.reference_engine.digest(algorithm, &[text], &mut expected);
        digest.map_err(|error| Stop::fail("the reference's digest", error.to_string()))?;
        if *out != expected {
            return Err(Stop::fail("a stream in pieces of 777 bytes", "the digest is wrong"));
        }
    }
    Ok(2)
}
