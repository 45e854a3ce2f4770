//! The bound of this processor: the throughput of its instructions, measured, and its meaning for a
//! packet (AES-128-GCM, one core).

use super::program;
use super::sample::Algorithm;
use crate::report::Table;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = include_str!("instructions.c");

pub struct Bound {
    /// GHz.
    pub clock: f64,
    widths: Vec<Width>,
}

/// Cycles of registers of so many bits.
struct Width {
    bits: usize,
    vaesenc: f64,
    vpclmulqdq: f64,
    /// 10 vaesenc and 4 vpclmulqdq.
    schoolbook: f64,
    /// 10 vaesenc, 3 vpclmulqdq and what is cheap.
    karatsuba: f64,
    /// 10 vaesenc and 5 vpclmulqdq: the end of as many packets as a register has blocks, that is
    /// the mask, the length block and the reduction.
    end: f64,
    /// 8 additions, 8 xors and 8 rotations of words.
    chacha: f64,
}

impl Width {
    fn block(&self) -> f64 {
        self.schoolbook.min(self.karatsuba) * 512.0 / self.bits as f64
    }
}

impl Bound {
    pub fn measure(folder: &Path) -> Result<Self, String> {
        let program = program::compile(folder, "instructions", SOURCE, "")?;
        let output = Command::new(program).output().map_err(|why| why.to_string())?;
        Self::parse(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "no figures".into())
    }

    fn parse(said: &str) -> Option<Self> {
        let (first, rest) = said.split_once('\n')?;
        let clock = first.strip_prefix("clock ")?.parse().ok()?;
        let width = |line: &str| {
            let fields: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
            let [bits, vaesenc, vpclmulqdq, schoolbook, karatsuba, end, chacha] = fields.ok()?[..]
            else {
                return None;
            };
            let bits = bits as usize;
            Some(Width { bits, vaesenc, vpclmulqdq, schoolbook, karatsuba, end, chacha })
        };
        let widths: Vec<_> = rest.lines().map(width).collect::<Option<_>>()?;
        (!widths.is_empty()).then_some(Bound { clock, widths })
    }

    /// Cycles of 64 bytes, by the width that does them best.
    pub fn cycles_of_64_bytes(&self) -> f64 {
        self.widths.iter().map(Width::block).fold(f64::MAX, f64::min)
    }

    /// Nanoseconds of a packet with header protection: its payload and one block (the tag's key
    /// stream; in GHASH, the header) in steps of 64 bytes, and its part of what packets share.
    pub fn packet(&self, bytes: usize) -> f64 {
        let end = |width: &Width| width.end * 128.0 / width.bits as f64;
        let end = self.widths.iter().map(end).fold(f64::MAX, f64::min);
        (Self::steps(bytes) * self.cycles_of_64_bytes() + end) / self.clock
    }

    /// Nanoseconds of a header mask, one of many: 10 rounds of AES for a block, or 40 times what
    /// [`Width::chacha`] is for a block in each lane of 32 bits.
    pub fn mask(&self, algorithm: Algorithm) -> f64 {
        let mask = |width: &Width| match algorithm {
            Algorithm::Aes128Gcm => 10.0 * width.vaesenc * 128.0 / width.bits as f64,
            Algorithm::ChaCha20Poly1305 => 40.0 * width.chacha * 32.0 / width.bits as f64,
        };
        self.widths.iter().map(mask).fold(f64::MAX, f64::min) / self.clock
    }

    /// Steps of 64 bytes.
    pub fn steps(bytes: usize) -> f64 {
        (bytes + 16).div_ceil(64) as f64
    }

    /// GB/s of a large buffer.
    pub fn bulk(&self) -> f64 {
        64.0 / self.cycles_of_64_bytes() * self.clock
    }

    pub fn table(&self) -> Table {
        let title = format!(
            "the processor's bound: cycles, measured at {:.2} GHz (schoolbook: 10 vaesenc and 4 \
             vpclmulqdq; Karatsuba: 10, 3 and 6 cheap ones; end: 10 and 5; ChaCha20: 8 additions, \
             8 xors and 8 rotations)",
            self.clock
        );
        let header =
            ["bits", "vaesenc", "vpclmulqdq", "schoolbook", "Karatsuba", "end", "ChaCha20", "64 B"];
        let mut table = Table::new(&title, &header);
        for width in &self.widths {
            let Width { vaesenc, vpclmulqdq, schoolbook, karatsuba, end, chacha, .. } = *width;
            let figures = [vaesenc, vpclmulqdq, schoolbook, karatsuba, end, chacha, width.block()];
            let mut row = vec![width.bits.to_string()];
            row.extend(figures.map(|figure| format!("{figure:.2}")));
            table.rows.push(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of a processor on which 512 bits take as long as 128.
    #[test]
    fn a_packets_bound_is_its_steps_and_its_end() {
        let said =
            "clock 3.7\n128 0.5 2 8 6.25 10 8\n256 0.5 2 8 6.25 10 8\n512 0.5 2 8 6.25 10 6\n";
        let bound = Bound::parse(said).expect("all figures are there");
        let rounded = |ns: f64| (ns * 10.0).round() / 10.0;
        let packets = [16, 64, 256, 600, 1280].map(|bytes| rounded(bound.packet(bytes)));
        assert_eq!(packets, [2.4, 4.1, 9.1, 17.6, 36.1]);
        assert_eq!(rounded(bound.bulk()), 37.9);
        let masks = [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305];
        assert_eq!(masks.map(|algorithm| rounded(bound.mask(algorithm))), [0.3, 4.1]);
        assert!(Bound::parse("clock 3.7\n").is_none());
        assert!(Bound::parse("").is_none());
    }
}
