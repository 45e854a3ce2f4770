//! Compressed input, told by its first bytes, not by its name.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// Formats that are not read, by their first bytes: the name, and what unpacks it.
const OTHERS: [(&[u8], &str, &str); 3] = [
    (&[0xFD, b'7', b'z', b'X', b'Z', 0], "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];
/// Bytes of the longest of these.
const FIRST_BYTES: usize = 6;
/// Packed bytes that are read at once.
const PIECE_BYTES: usize = 128 << 10;

type Packed<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// Reads files of gzip and zstd, and what is not compressed as it is. Memory: some hundred KiB, and a zstd frame's window, of 128 MiB at most.
pub struct Decompress<R: Read> {
    form: Form<R>,
}

enum Form<R: Read> {
    Plain(Packed<R>),
    Gzip(MultiGzDecoder<Packed<R>>),
    Zstd(Zstd<Packed<R>>),
}

impl<R: Read> Decompress<R> {
    /// Reads the first bytes.
    ///
    /// # Errors
    /// The input's; [`ErrorKind::Unsupported`] for a form that is not read.
    pub fn open(mut input: R) -> io::Result<Self> {
        let mut first = Vec::with_capacity(FIRST_BYTES);
        (&mut input).take(FIRST_BYTES as u64).read_to_end(&mut first)?;
        let begins = |magic: &[u8]| first.starts_with(magic);
        if let Some((_, name, unpack)) = OTHERS.iter().find(|(magic, ..)| begins(magic)) {
            return Err(io::Error::new(
                ErrorKind::Unsupported,
                format!(
                    "it is compressed with {name}; unpack it first ({unpack} FILE | keyway ... -)"
                ),
            ));
        }
        // A file of zstd may begin with a frame that is to be skipped.
        let skipped = matches!(first[..], [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..]);
        let (is_gzip, is_zstd) = (begins(GZIP), begins(ZSTD) || skipped);
        let packed = BufReader::with_capacity(PIECE_BYTES, Cursor::new(first).chain(input));
        let form = match () {
            () if is_gzip => Form::Gzip(MultiGzDecoder::new(packed)),
            () if is_zstd => Form::Zstd(Zstd::new(packed)?),
            () => Form::Plain(packed),
        };
        Ok(Decompress { form })
    }
}

impl<R: Read> Read for Decompress<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.form {
            Form::Plain(plain) => plain.read(out),
            Form::Gzip(gzip) => gzip.read(out).map_err(|why| match why.kind() {
                ErrorKind::UnexpectedEof => cut_off("gzip"),
                ErrorKind::InvalidInput | ErrorKind::InvalidData => damaged("gzip", &why),
                _ => why,
            }),
            Form::Zstd(zstd) => zstd.read(out),
        }
    }
}

fn cut_off(name: &str) -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, format!("the {name} file was cut off"))
}

fn damaged(name: &str, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("the {name} file is damaged: {why}"))
}

struct Zstd<R> {
    packed: R,
    context: DCtx<'static>,
    /// Whether a frame has begun and not ended.
    is_within: bool,
    /// Whether the context may have more to give without being given more.
    is_full: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(packed: R) -> io::Result<Self> {
        let context = DCtx::try_create().ok_or(ErrorKind::OutOfMemory)?;
        Ok(Zstd { packed, context, is_within: false, is_full: false })
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let packed = match self.is_full {
                true => &[],
                false => self.packed.fill_buf()?,
            };
            if packed.is_empty() && !self.is_full {
                return if self.is_within { Err(cut_off("zstd")) } else { Ok(0) };
            }
            let mut input = InBuffer::around(packed);
            let mut output = OutBuffer::around(&mut *out);
            let left = self.context.decompress_stream(&mut output, &mut input);
            let left = left.map_err(|code| damaged("zstd", &zstd_safe::get_error_name(code)))?;
            let (taken, given) = (input.pos(), output.pos());
            self.packed.consume(taken);
            self.is_within = left != 0;
            self.is_full = self.is_within && given == out.len();
            if given > 0 || out.is_empty() {
                return Ok(given);
            }
        }
    }
}
