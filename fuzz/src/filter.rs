//! Filters as BER and as text.

use keyway_codec::Filter;

/// Reads the bytes as BER and as text.
pub fn filter(data: &[u8]) {
    if let Ok(filter) = Filter::decode(data) {
        survives_ber(&filter);
        let text = filter.to_string();
        assert!(!text.contains(char::is_control), "{text:?} would spoil a log line");
        let _ = Filter::parse(&text);
    }
    let Ok(text) = str::from_utf8(data) else { return };
    match Filter::parse(text) {
        Ok(filter) => {
            let written = filter.to_string();
            assert_eq!(Filter::parse(&written).as_ref(), Ok(&filter), "{written:?}");
            survives_ber(&filter);
        }
        Err(error) => assert!(error.at <= text.len(), "{error} is beyond the text"),
    }
}

fn survives_ber(filter: &Filter<'_>) {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    assert_eq!(Filter::decode(&bytes).as_ref(), Ok(filter));
    assert_eq!(&filter.clone().into_owned(), filter);
}
