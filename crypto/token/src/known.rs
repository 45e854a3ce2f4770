//! A key that the daemon knows, in a token: found by its `CKA_ID`, and compared with the public half that the daemon
//! has. Another key may have been put there in its place since.

use crate::kind::{CURVES, KeyKind};
use crate::seat::{Fault, Seated};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};

/// A key as the daemon knows it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its `CKA_ID` in the token.
    pub id: Vec<u8>,
    /// Its public half, as the engine has it.
    pub public: Vec<u8>,
}

/// The objects of a token under the `CKA_ID` of a key.
pub(crate) struct Objects {
    /// Private halves of this key.
    pub private: Vec<ObjectHandle>,
    /// Public halves of this key.
    pub public: Vec<ObjectHandle>,
    /// Whether there are objects of another key.
    pub has_others: bool,
    /// Whether there are private keys that nothing tells the public half of.
    pub has_untold: bool,
}

/// What an object shows of its public half.
enum Half {
    Its,
    Other,
    /// Many private keys of curves have none.
    Untold,
}

impl Known {
    /// Looks for the key.
    pub fn find(&self, seated: &Seated<'_>) -> Result<Objects, Fault> {
        let id = Attribute::Id(self.id.clone());
        let halves = [Attribute::Class(ObjectClass::PUBLIC_KEY), id.clone()];
        let keys = [Attribute::Class(ObjectClass::PRIVATE_KEY), Attribute::Token(true), id];
        let (mut public, mut private, mut untold) = (Vec::new(), Vec::new(), Vec::new());
        let mut has_others = false;
        for object in seated.session.find_objects(&halves)? {
            match self.half(seated, object)? {
                Half::Its => public.push(object),
                Half::Other => has_others = true,
                Half::Untold => {}
            }
        }
        for object in seated.session.find_objects(&keys)? {
            match self.half(seated, object)? {
                Half::Its => private.push(object),
                Half::Other => has_others = true,
                Half::Untold => untold.push(object),
            }
        }
        // The public keys beside it tell, unless they could be another one's.
        let is_told = private.is_empty() && !public.is_empty() && !has_others;
        if is_told && let [object] = untold[..] {
            private.push(object);
            untold.clear();
        }
        Ok(Objects { private, public, has_others, has_untold: !untold.is_empty() })
    }

    /// The handle of the private key, as this session has found it.
    pub fn private_key(&self, seated: &mut Seated<'_>) -> Result<ObjectHandle, Fault> {
        if let Some(handle) = seated.handles.get(&self.id) {
            return Ok(*handle);
        }
        let found = self.find(seated)?;
        match found.private.first() {
            Some(handle) => {
                seated.handles.insert(self.id.clone(), *handle);
                Ok(*handle)
            }
            None if found.has_others => Err(Fault::OtherKey),
            None if found.has_untold => Err(Fault::NoHalf),
            None => Err(Fault::NoKey),
        }
    }

    fn half(&self, seated: &Seated<'_>, object: ObjectHandle) -> Result<Half, Fault> {
        let kind = seated.session.get_attributes(object, &[AttributeType::KeyType])?;
        let (kinds, wanted) = match kind.first() {
            Some(Attribute::KeyType(KeyType::RSA)) => (&[KeyKind::Rsa][..], KeyKind::Rsa.shown()),
            Some(Attribute::KeyType(KeyType::EC | KeyType::EC_EDWARDS)) => {
                (CURVES, KeyKind::P256.shown())
            }
            _ => return Ok(Half::Other),
        };
        let shown = seated.session.get_attributes(object, wanted)?;
        let is_its = |kind: &KeyKind| kind.public_half(&shown).as_ref() == Some(&self.public);
        // Only the parameters of a curve say nothing of the key.
        let says = |it: &Attribute| match it {
            Attribute::Modulus(bytes) | Attribute::EcPoint(bytes) => !bytes.is_empty(),
            _ => false,
        };
        Ok(match kinds.iter().any(is_its) {
            true => Half::Its,
            false if shown.iter().any(says) => Half::Other,
            false => Half::Untold,
        })
    }
}
