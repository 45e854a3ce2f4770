//! Keys as objects of a token: made, found, and destroyed.

use crate::error::Error;
use crate::kind::KeyKind;
use crate::known::Known;
use crate::limits::{CALL_MAX, GENERATE_MAX, ID_BYTES_MAX};
use crate::seat::{Fault, Seated};
use crate::token::Token;
use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};

/// The uses of a key in a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// To sign.
    pub sign: bool,
    /// To decrypt.
    pub decrypt: bool,
    /// To agree on a secret.
    pub agree: bool,
}

/// A key that is in a token already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// By its `CKA_ID`.
    Id(Vec<u8>),
    /// By its `CKA_LABEL`.
    Label(String),
}

/// Makes a key that never leaves the token.
pub(crate) fn generate(
    token: &Token,
    kind: KeyKind,
    rsa_bits: u32,
    uses: Uses,
    (name, id): (&str, Vec<u8>),
) -> Result<Known, Error> {
    let named = [
        Attribute::Token(true),
        Attribute::Label(name.as_bytes().to_vec()),
        Attribute::Id(id.clone()),
    ];
    // Many tokens allow what is not forbidden.
    let private = [
        Attribute::Private(true),
        Attribute::Sensitive(true),
        Attribute::Extractable(false),
        Attribute::Sign(uses.sign),
        Attribute::Decrypt(uses.decrypt),
        Attribute::Unwrap(false),
        Attribute::Derive(uses.agree),
    ];
    let private = [&named[..], &private].concat();
    let public = [
        Attribute::Verify(uses.sign),
        Attribute::Encrypt(uses.decrypt),
        Attribute::Wrap(false),
        Attribute::Derive(false),
    ];
    let public = [&named[..], &public, &kind.parameters(rsa_bits)].concat();
    let label = token.label().to_owned();
    let made = token.call(GENERATE_MAX, move |seated| {
        let session = seated.session;
        let (half, key) = session.generate_key_pair(&kind.generation(), &public, &private)?;
        match public_half(seated, kind, half)? {
            Some(public) => Ok(Known { id: id.clone(), public }),
            None => {
                let _ = (session.destroy_object(half), session.destroy_object(key));
                let why = "it has made a key and does not show its public half".to_owned();
                Err(Fault::Token(Error::Refused { label: label.clone(), why }))
            }
        }
    });
    made.map_err(|error| match error {
        Error::Silent { label } => {
            let why = format!(
                "it has made no key within {} seconds; if it makes one yet, that is called {name:?}, and nothing uses \
                 it",
                GENERATE_MAX.as_secs()
            );
            Error::Key { label, why }
        }
        error => error,
    })
}

fn public_half(
    seated: &Seated<'_>,
    kind: KeyKind,
    object: ObjectHandle,
) -> Result<Option<Vec<u8>>, Fault> {
    Ok(kind.public_half(&seated.session.get_attributes(object, kind.shown())?))
}

/// Finds the one private key that is meant, and its public half.
pub(crate) fn find(token: &Token, kind: KeyKind, wanted: &Wanted) -> Result<Known, Error> {
    let (label, wanted) = (token.label().to_owned(), wanted.clone());
    token.call(CALL_MAX, move |seated| {
        let fault = |why: String| Fault::Token(Error::Key { label: label.clone(), why });
        let sought = match &wanted {
            Wanted::Id(id) => Attribute::Id(id.clone()),
            Wanted::Label(text) => Attribute::Label(text.clone().into_bytes()),
        };
        let private = [Attribute::Class(ObjectClass::PRIVATE_KEY), Attribute::Token(true)];
        let shown = shown(&wanted);
        let keys = seated.session.find_objects(&[&private[..], &[sought]].concat())?;
        let key = match keys[..] {
            [key] => key,
            [] => {
                let there = there(seated, &private)?;
                return Err(fault(format!("it has no private key with {shown}; it has: {there}")));
            }
            _ => return Err(fault(format!("it has several private keys with {shown}; name the one by --id"))),
        };
        let attributes = seated.session.get_attributes(key, &[AttributeType::Id, AttributeType::KeyType])?;
        let is_kind = attributes.iter().any(|it| *it == Attribute::KeyType(kind.key_type()));
        if !is_kind {
            return Err(fault(format!("the key with {shown} is of another kind than the algorithms")));
        }
        let id = attributes.into_iter().find_map(|it| match it {
            Attribute::Id(id) if !id.is_empty() && id.len() <= ID_BYTES_MAX => Some(id),
            _ => None,
        });
        let Some(id) = id else {
            let why = format!(
                "the key with {shown} has no CKA_ID, or one of more than {ID_BYTES_MAX} bytes; give it one"
            );
            return Err(fault(why));
        };
        let same = [&private[..], &[Attribute::Id(id.clone())]].concat();
        if seated.session.find_objects(&same)?.len() != 1 {
            let why = format!(
                "several private keys have the CKA_ID {} of the key with {shown}; give it one of its own",
                hex(&id)
            );
            return Err(fault(why));
        }
        let halves = [Attribute::Class(ObjectClass::PUBLIC_KEY), Attribute::Id(id.clone())];
        let mut objects = seated.session.find_objects(&halves)?;
        // Private keys of RSA have the public numbers too, and those of curves in some tokens.
        objects.push(key);
        for object in objects {
            if let Some(public) = public_half(seated, kind, object)? {
                return Ok(Known { id, public });
            }
        }
        let why = format!(
            "the key with {shown} has no public half there, or is of another curve; put the public key there with \
             its CKA_ID"
        );
        Err(fault(why))
    })
}

/// Destroys a key and its public half. A key that is not there is destroyed already. Says whether objects stay under its
/// `CKA_ID`, which are another key's or may be.
pub(crate) fn destroy(token: &Token, known: Known) -> Result<bool, Error> {
    token.call(CALL_MAX, move |seated| {
        let objects = known.find(seated)?;
        for object in objects.private.iter().chain(&objects.public) {
            seated.session.destroy_object(*object)?;
        }
        Ok(objects.has_others || objects.has_untold)
    })
}

/// How a key is asked for, in words.
fn shown(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Id(id) => format!("the CKA_ID {}", hex(id)),
        Wanted::Label(label) => format!("the label {label:?}"),
    }
}

/// The keys that a token has, in words.
fn there(seated: &Seated<'_>, private: &[Attribute]) -> Result<String, Fault> {
    const MOST: usize = 16;
    let mut all = Vec::new();
    for key in seated.session.find_objects(private)? {
        if all.len() == MOST {
            all.push("more".to_owned());
            break;
        }
        let (mut id, mut label) = (String::new(), String::new());
        for attribute in
            seated.session.get_attributes(key, &[AttributeType::Id, AttributeType::Label])?
        {
            match attribute {
                Attribute::Id(bytes) => id = hex(&bytes),
                Attribute::Label(bytes) => label = String::from_utf8_lossy(&bytes).into_owned(),
                _ => {}
            }
        }
        all.push(format!("{label:?} ({id})"));
    }
    Ok(if all.is_empty() { "none that this login sees".to_owned() } else { all.join(", ") })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
