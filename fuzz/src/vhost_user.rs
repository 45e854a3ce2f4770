//! Messages of a vhost-user front end, and the headers of a guest's requests.

use keyway_vhost_user::{
    HEADER_BYTES, Header, Message, REQUEST_HEADER_BYTES, RequestHeader, SessionRequest,
};

/// Reads the bytes as a message and as a request. An answer has the message's number and its own length; what a message
/// says is no more than it has.
pub fn vhost_user(data: &[u8]) {
    if let Some((header, payload)) = data.split_first_chunk::<HEADER_BYTES>()
        && let Ok(header) = Header::decode(header)
    {
        let answer = header.answer(payload);
        assert_eq!(answer[..4], data[..4]);
        assert_eq!(answer[8..HEADER_BYTES], (payload.len() as u32).to_le_bytes());
        assert_eq!(&answer[HEADER_BYTES..], payload);
        match Message::decode(header.request, payload) {
            Ok(Message::SetMemTable(regions)) => assert!(8 + 32 * regions.len() <= payload.len()),
            Ok(Message::CreateCryptoSession { layout, session }) => {
                assert_eq!(layout.answer(-1).len(), payload.len());
                if let Ok(session) = session {
                    assert!(!key(&session).is_empty() && key(&session).len() < payload.len());
                }
            }
            _ => {}
        }
    }
    if let Some((header, rest)) = data.split_first_chunk::<REQUEST_HEADER_BYTES>()
        && let RequestHeader::Create(Ok(parameters)) = RequestHeader::decode(header)
    {
        match parameters.with_key(rest) {
            Ok(session) => assert_eq!(key(&session), &rest[..parameters.key_bytes]),
            Err(_) => assert!(rest.len() < parameters.key_bytes),
        }
    }
}

fn key<'a>(session: &SessionRequest<'a>) -> &'a [u8] {
    match session {
        SessionRequest::AesCbc { key, .. } | SessionRequest::Rsa { key, .. } => key,
    }
}
