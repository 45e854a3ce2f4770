//! Headers of the PROXY protocol, from a proxy that may be any program that has its address.

use keyway_codec::limits::PROXY_HEADER_BYTES_MAX;
use keyway_codec::proxy::{Read, looks_like, read};

/// The result depends on the header alone, and no header is longer than its limit.
pub fn proxy(data: &[u8]) {
    match read(data) {
        Ok(Read::More(more)) => assert!(more > 0 && data.len() + more <= PROXY_HEADER_BYTES_MAX),
        Ok(header @ Read::Header { bytes, .. }) => {
            assert!(bytes <= data.len() && looks_like(data));
            assert_eq!(read(&data[..bytes]), Ok(header));
            assert!(matches!(read(&data[..bytes - 1]), Ok(Read::More(_))));
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}
