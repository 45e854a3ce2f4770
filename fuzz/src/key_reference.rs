//! Files and URIs that name a key of cryptod.

use keyway_client::KeyReference;

/// A reference that was read from a file, a PEM file's body or a URI is the same after it was written and read.
pub fn key_reference(data: &[u8]) {
    let text = std::str::from_utf8(data).ok();
    let read = [
        KeyReference::from_der(data),
        text.and_then(KeyReference::from_pem_body),
        text.and_then(KeyReference::from_uri),
    ];
    for reference in read.into_iter().flatten() {
        assert_eq!(KeyReference::from_der(&reference.to_der()), Some(reference.clone()));
        let pem = reference.to_pem();
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        assert_eq!(KeyReference::from_pem_body(&body), Some(reference));
    }
}
