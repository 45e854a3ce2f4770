//! Requests and answers of etcd's JSON gateway: the JSON form of its protocol buffers, in which numbers of 64 bits are
//! texts, octets are base64, and members with the usual value are left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

/// The most elements of a list in an answer; a message of a watch has up to 1,000 events.
const ELEMENTS_MAX: usize = 4096;

fn text(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Reads a key.
pub(crate) fn range(key: &str) -> Value {
    json!({ "key": text(key) })
}

/// Reads the first keys of a range.
pub(crate) fn range_to(key: &str, end: &str, limit: usize) -> Value {
    json!({ "key": text(key), "range_end": text(end), "limit": limit })
}

/// A step of a transaction that reads.
pub(crate) fn reads(range: Value) -> Value {
    json!({ "request_range": range })
}

/// A step that puts a key under a lease, or under none (0).
pub(crate) fn puts(key: &str, value: &[u8], lease: u64) -> Value {
    let put = json!({ "key": text(key), "value": text(value), "lease": lease.to_string() });
    json!({ "request_put": put })
}

/// A step that deletes a range.
pub(crate) fn deletes(key: &str, end: &str) -> Value {
    json!({ "request_delete_range": { "key": text(key), "range_end": text(end) } })
}

/// That a key was created in a revision; 0 if it must not be there.
pub(crate) fn created(key: &str, revision: u64) -> Value {
    let revision = revision.to_string();
    json!({ "key": text(key), "target": "CREATE", "result": "EQUAL", "create_revision": revision })
}

/// That a key is under a lease; 0 if it is under none, or not there.
pub(crate) fn leased(key: &str, lease: u64) -> Value {
    let lease = lease.to_string();
    json!({ "key": text(key), "target": "LEASE", "result": "EQUAL", "lease": lease })
}

/// That a key has a value.
pub(crate) fn valued(key: &str, value: &[u8]) -> Value {
    json!({ "key": text(key), "target": "VALUE", "result": "EQUAL", "value": text(value) })
}

/// A transaction.
pub(crate) fn transaction(compare: Vec<Value>, success: Vec<Value>, failure: Vec<Value>) -> Value {
    json!({ "compare": compare, "success": success, "failure": failure })
}

/// Begins a watch of what is put into a range.
pub(crate) fn watch(key: &str, end: &str, revision: u64) -> Value {
    json!({ "create_request": {
        "key": text(key), "range_end": text(end), "start_revision": revision.to_string(),
        "filters": ["NODELETE"], "fragment": true,
    } })
}

/// The header of every answer.
#[derive(Deserialize, Default)]
pub(crate) struct Header {
    #[serde(default, deserialize_with = "count")]
    pub cluster_id: u64,
    #[serde(default, deserialize_with = "count")]
    pub revision: u64,
}

#[derive(Deserialize)]
pub(crate) struct KeyValue {
    #[serde(default, deserialize_with = "octets")]
    pub key: Vec<u8>,
    #[serde(default, deserialize_with = "octets")]
    pub value: Vec<u8>,
    #[serde(default, deserialize_with = "count")]
    pub create_revision: u64,
    /// 0 if it is under none.
    #[serde(default, deserialize_with = "count")]
    pub lease: u64,
}

#[derive(Deserialize, Default)]
pub(crate) struct Ranged {
    #[serde(default, deserialize_with = "few")]
    pub kvs: Vec<KeyValue>,
}

#[derive(Deserialize, Default)]
pub(crate) struct Deleted {
    #[serde(default, deserialize_with = "count")]
    pub deleted: u64,
}

/// The answer of one step of a transaction.
#[derive(Deserialize, Default)]
pub(crate) struct Step {
    #[serde(default)]
    pub response_range: Option<Ranged>,
    #[serde(default)]
    pub response_delete_range: Option<Deleted>,
}

#[derive(Deserialize)]
pub(crate) struct Transacted {
    pub header: Header,
    #[serde(default)]
    pub succeeded: bool,
    #[serde(default, deserialize_with = "few")]
    pub responses: Vec<Step>,
}

impl Transacted {
    /// The keys that a reading step found.
    pub fn found(&mut self, step: usize) -> Vec<KeyValue> {
        let range = self.responses.get_mut(step).and_then(|step| step.response_range.take());
        range.unwrap_or_default().kvs
    }

    /// The one key that a reading step found.
    pub fn one(&mut self, step: usize) -> Option<KeyValue> {
        self.found(step).pop()
    }
}

#[derive(Deserialize)]
pub(crate) struct Leased {
    #[serde(rename = "ID", default, deserialize_with = "count")]
    pub id: u64,
    /// Seconds; 0 or less if the lease has expired.
    #[serde(rename = "TTL", default, deserialize_with = "number")]
    pub ttl_s: i64,
}

/// A message of a stream.
#[derive(Deserialize)]
pub(crate) struct Message<T> {
    #[serde(default = "Option::default")]
    pub result: Option<T>,
    #[serde(default)]
    pub error: Option<Complaint>,
}

#[derive(Deserialize)]
pub(crate) struct Watched {
    #[serde(default)]
    pub canceled: bool,
    #[serde(default, deserialize_with = "few")]
    pub events: Vec<Event>,
}

#[derive(Deserialize)]
pub(crate) struct Event {
    pub kv: KeyValue,
}

#[derive(Deserialize)]
pub(crate) struct Status {
    pub version: String,
}

/// An answer that only has to come.
#[derive(Deserialize)]
pub(crate) struct Any {}

#[derive(Deserialize)]
pub(crate) struct Alarms {
    #[serde(default, deserialize_with = "few")]
    pub alarms: Vec<Alarm>,
}

#[derive(Deserialize)]
pub(crate) struct Alarm {
    /// A number of 64 bits without a sign, as text.
    #[serde(rename = "memberID", default)]
    pub member: String,
    #[serde(default)]
    pub alarm: String,
}

/// What etcd says when it does not do something; the code is gRPC's.
#[derive(Deserialize)]
pub(crate) struct Complaint {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let number = from.deserialize_any(Number)?;
    i64::try_from(number).map_err(|_| D::Error::custom(NO_NUMBER))
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = from.deserialize_any(Number)?;
    u64::try_from(number).map_err(|_| D::Error::custom(NO_NUMBER))
}

const NO_NUMBER: &str = "no number of 64 bits";

/// A number, also as text.
struct Number;

impl Visitor<'_> for Number {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of 64 bits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<i128, E> {
        text.parse().map_err(|_| E::custom(NO_NUMBER))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<i128, E> {
        Ok(number.into())
    }
}

fn octets<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    struct Octets;
    impl Visitor<'_> for Octets {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("base64")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
            STANDARD.decode(text).map_err(|_| E::custom("no base64"))
        }
    }
    from.deserialize_str(Octets)
}

/// A list, which is refused before it grows long.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {ELEMENTS_MAX}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(element) = from.next_element()? {
                if list.len() == ELEMENTS_MAX {
                    return Err(A::Error::custom("a list is too long"));
                }
                list.push(element);
            }
            Ok(list)
        }
    }
    from.deserialize_seq(Few(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Transacted, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn an_answer_of_etcd_is_read() {
        let text = r#"{"header":{"cluster_id":"12992211472013813104","revision":"2","raft_term":"2"},
            "responses":[{"response_range":{"header":{"revision":"2"},"kvs":[{"key":"L2svdw==",
            "create_revision":"2","mod_revision":"2","version":"1","value":"dmFs"}],"count":"1"}},
            {"response_range":{"header":{"revision":"2"}}}]}"#;
        let mut answer = read(text).unwrap();
        assert!(!answer.succeeded && answer.header.revision == 2);
        let found = answer.one(0).unwrap();
        assert_eq!((&*found.key, &*found.value), (&b"/k/w"[..], &b"val"[..]));
        assert_eq!(found.create_revision, 2);
        assert!(answer.one(1).is_none() && answer.one(2).is_none());
    }

    #[test]
    fn answers_that_are_none_are_errors() {
        let key = |key: &str| {
            format!(r#"{{"header":{{}},"responses":[{{"response_range":{{"kvs":[{key}]}}}}]}}"#)
        };
        read(&key(r#"{"key":"AAAA"}"#)).unwrap();
        for bad in [
            key(r#"{"key":"AAA"}"#),
            key(r#"{"key":"!!!!"}"#),
            key(r#"{"key":7}"#),
            key(r#"{"create_revision":"18446744073709551616"}"#),
            key(r#"{"create_revision":"-1"}"#),
            key(r#"{"create_revision":-1}"#),
            key(r#"{"create_revision":1.5}"#),
            key(r#"{"create_revision":null}"#),
            key("7"),
            key(&vec!["{}"; ELEMENTS_MAX + 1].join(",")),
            r#"{"header":{}"#.into(),
            "{}".into(),
            String::new(),
            "[".repeat(100_000),
        ] {
            assert!(read(&bad).is_err(), "{}", &bad[..bad.len().min(200)]);
        }
    }
}
