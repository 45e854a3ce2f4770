//! Why something cannot be decoded, or what was decoded cannot be said.

use std::fmt;
use std::io;

/// The party at fault, and the place.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system: the capture cannot be read.
    Read(io::Error),
    /// The system, or the program that reads the output: it cannot be written.
    Write(io::Error),
    /// The file is no capture of a kind that is known.
    NotACapture {
        /// The octets it begins with, four at most.
        magic: Vec<u8>,
    },
    /// The file is empty.
    Empty,
    /// The capture is damaged: nothing after this place can be found.
    Damaged {
        /// How many bytes into it (uncompressed).
        offset: u64,
        /// The fault there.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(why) => write!(f, "the capture cannot be read: {why}"),
            Error::Write(why) => write!(f, "the output cannot be written: {why}"),
            Error::NotACapture { magic } => {
                let octets: Vec<_> = magic.iter().map(|octet| format!("{octet:02x}")).collect();
                write!(
                    f,
                    "this is neither pcap, pcapng nor snoop, also not compressed by gzip: it begins with {}",
                    octets.join(" ")
                )
            }
            Error::Empty => f.write_str("the capture is empty: there is not even a header"),
            Error::Damaged { offset, what } => {
                write!(f, "the capture is damaged at byte {offset}: {what}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read(why) | Error::Write(why) => Some(why),
            _ => None,
        }
    }
}
