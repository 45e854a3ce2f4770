//! Compression, at the level that is the fastest: it is done for packets on their way.
//!
//! The contexts, up to some hundred KiB each, belong to the threads that have used them. They keep
//! traces of the last text until the next one or the thread's end.

use super::session::{Opened, failed, misfit, opened, put};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};
use lz4_flex::block::{self, CompressTable, DecompressError};
use std::cell::RefCell;
use zeroize::Zeroize;
use zstd_safe::{CCtx, DCtx};

pub(super) fn named(algorithm: Algorithm) -> Option<Session> {
    match algorithm {
        Algorithm::Deflate => Some(Session::Deflate),
        Algorithm::Zstd => Some(Session::Zstd),
        Algorithm::Lz4 => Some(Session::Lz4),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(session), Key::None) => opened(session),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

pub(super) enum Session {
    Deflate,
    Zstd,
    Lz4,
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match (self, request) {
            (Session::Deflate, Request::Compress { data, out }) => deflate(data, out),
            (Session::Deflate, Request::Decompress { data, out }) => inflate(data, out),
            (Session::Zstd, Request::Compress { data, out }) => zstd_compress(data, out),
            (Session::Zstd, Request::Decompress { data, out }) => zstd_decompress(data, out),
            (Session::Lz4, Request::Compress { data, out }) => lz4_compress(data, out),
            (Session::Lz4, Request::Decompress { data, out }) => lz4_decompress(data, out),
            (_, other) => misfit(other),
        }
    }
}

const TOO_SMALL: Error = Error::invalid_request("there is too little room for the result");
const MALFORMED: Error = Error::invalid_request("the compressed data is malformed");

fn deflate(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    thread_local!(static CONTEXT: RefCell<Compress> =
        RefCell::new(Compress::new(Compression::fast(), false)));
    CONTEXT.with_borrow_mut(|context| {
        context.reset();
        match context.compress(data, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => Ok(context.total_out() as usize),
            Ok(_) => Err(TOO_SMALL),
            Err(_) => Err(failed("DEFLATE failed")),
        }
    })
}

fn inflate(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    thread_local!(static CONTEXT: RefCell<Decompress> = RefCell::new(Decompress::new(false)));
    CONTEXT.with_borrow_mut(|context| {
        context.reset(false);
        let status = context.decompress(data, out, FlushDecompress::Finish);
        let all = context.total_in() as usize == data.len();
        match status {
            Ok(Status::StreamEnd) if all => Ok(context.total_out() as usize),
            // It stopped before the end: it found none, or had no room to go on.
            Ok(Status::Ok | Status::BufError) if context.total_out() as usize == out.len() => {
                Err(TOO_SMALL)
            }
            _ => Err(MALFORMED),
        }
    })
}

fn zstd_compress(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    thread_local!(static CONTEXT: RefCell<CCtx<'static>> = RefCell::new(CCtx::create()));
    CONTEXT.with_borrow_mut(|context| context.compress(out, data, 1)).map_err(zstd_error)
}

fn zstd_decompress(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    thread_local!(static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create()));
    if data.is_empty() {
        // The library takes it for no frames at all, one after the other.
        return Err(MALFORMED);
    }
    CONTEXT.with_borrow_mut(|context| context.decompress(out, data)).map_err(zstd_error)
}

fn zstd_error(code: zstd_safe::ErrorCode) -> Error {
    match zstd_safe::get_error_name(code) {
        "Destination buffer is too small" => TOO_SMALL,
        name if name.starts_with("Allocation error") => failed("there is too little memory"),
        _ => MALFORMED,
    }
}

/// Most bytes that a thread keeps between requests for those that leave LZ4 little room.
const LZ4_BYTES_KEPT: usize = 1 << 20;

fn lz4_compress(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    thread_local!(static CONTEXT: RefCell<(CompressTable, Vec<u8>)> = RefCell::default());
    CONTEXT.with_borrow_mut(|(table, buffer)| {
        let most = block::get_maximum_output_size(data.len());
        if out.len() >= most {
            return block::compress_into_with_table(data, out, table).map_err(|_| TOO_SMALL);
        }
        // The library wants room for the worst case, or does not begin.
        if buffer.len() < most {
            buffer.resize(most, 0);
        }
        let used = block::compress_into_with_table(data, buffer, table).map_err(|_| TOO_SMALL)?;
        let result = put(&buffer[..used], out).map_err(|_| TOO_SMALL);
        buffer[..used].zeroize();
        if buffer.len() > LZ4_BYTES_KEPT {
            *buffer = Vec::new();
        }
        result
    })
}

fn lz4_decompress(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    block::decompress_into(data, out).map_err(|error| match error {
        DecompressError::OutputTooSmall { .. } => TOO_SMALL,
        _ => MALFORMED,
    })
}
