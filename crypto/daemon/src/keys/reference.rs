//! Where a key that lives in tokens is: all that a store keeps of it beside its public half.

use super::error::Error;
use serde::{Deserialize, Serialize};

/// Where a key in tokens lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenReference {
    /// The label of each token, and the key's `CKA_ID` there.
    pub places: Vec<(String, Vec<u8>)>,
    /// Whether the daemon made it, and so destroys it when it is deleted.
    pub made_here: bool,
}

impl TokenReference {
    /// The labels of the tokens.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        self.places.iter().map(|(label, _)| label.clone())
    }

    /// Its saved form.
    ///
    /// # Errors
    /// [`Error::Unwritten`], which does not happen.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        postcard::to_allocvec(self).map_err(|_| Error::Unwritten)
    }

    /// `None` if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<TokenReference> {
        let (reference, rest) = postcard::take_from_bytes::<TokenReference>(bytes).ok()?;
        (rest.is_empty() && !reference.places.is_empty()).then_some(reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_tokens_are_read_as_they_were_written() {
        let places = vec![("office".to_owned(), vec![7; 16]), ("cellar".to_owned(), vec![1])];
        let reference = TokenReference { places, made_here: true };
        let bytes = reference.encode().unwrap();
        assert_eq!(TokenReference::decode(&bytes), Some(reference.clone()));
        assert_eq!(TokenReference::decode(&[&bytes[..], &[0]].concat()), None);
        for cut in 0..bytes.len() {
            assert_eq!(TokenReference::decode(&bytes[..cut]), None);
        }
        let nowhere = TokenReference { places: Vec::new(), made_here: true };
        assert_eq!(TokenReference::decode(&nowhere.encode().unwrap()), None);
    }
}
