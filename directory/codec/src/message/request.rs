//! The requests, RFC 4511 §§ 4.2 to 4.12.

use std::fmt;

use crate::ber::{
    self, BOOLEAN, ENUMERATED, INTEGER, OCTET_STRING, Reader, SEQUENCE, Writer, context,
    context_constructed,
};
use crate::error::DecodeError;
use crate::filter::Filter;
use crate::limits::{ATTRIBUTES_MAX, VALUES_MAX};

use super::Attribute;
use super::attribute::{Hidden, decode_strings, is_password};

const SIMPLE: u8 = context(0);
const SASL: u8 = context_constructed(3);
const NEW_SUPERIOR: u8 = context(0);
const REQUEST_NAME: u8 = context(0);
const REQUEST_VALUE: u8 = context(1);

/// BindRequest, § 4.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindRequest<'a> {
    /// The protocol version, from 1 to 127; 3 is LDAPv3.
    pub version: u8,
    /// The name to authenticate as; empty for anonymous and for most SASL mechanisms.
    pub name: &'a str,
    /// The proof.
    pub authentication: Authentication<'a>,
}

/// AuthenticationChoice, § 4.2. `Debug` does not show the secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// A password.
    Simple(&'a [u8]),
    /// A SASL mechanism's step.
    Sasl {
        /// The mechanism's name.
        mechanism: &'a str,
        /// Its initial response or the answer to a challenge.
        credentials: Option<&'a [u8]>,
    },
    /// A choice that RFC 4511 does not define, by its identifier octet; its value is dropped.
    Other(u8),
}

impl fmt::Debug for Authentication<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Authentication::Simple(password) => {
                f.debug_tuple("Simple").field(&Hidden(password.len(), "octets")).finish()
            }
            Authentication::Sasl { mechanism, credentials } => f
                .debug_struct("Sasl")
                .field("mechanism", mechanism)
                .field("credentials", &credentials.map(|secret| Hidden(secret.len(), "octets")))
                .finish(),
            Authentication::Other(tag) => f.debug_tuple("Other").field(tag).finish(),
        }
    }
}

impl<'a> BindRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let version = u8::try_from(body.natural(INTEGER)?)
            .ok()
            .filter(|version| (1..=127).contains(version))
            .ok_or(DecodeError::invalid("bind version not from 1 to 127"))?;
        let name = body.string(OCTET_STRING)?;
        let authentication = Authentication::decode(&mut body)?;
        body.finish(&[INTEGER, OCTET_STRING, SIMPLE, SASL])?;
        Ok(BindRequest { version, name, authentication })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.integer(INTEGER, i64::from(self.version));
        writer.string(OCTET_STRING, self.name);
        match self.authentication {
            Authentication::Simple(password) => writer.octets(SIMPLE, password),
            Authentication::Sasl { mechanism, credentials } => {
                let sasl = writer.begin(SASL);
                writer.string(OCTET_STRING, mechanism);
                if let Some(credentials) = credentials {
                    writer.octets(OCTET_STRING, credentials);
                }
                writer.end(sasl);
            }
            Authentication::Other(tag) => writer.octets(tag, &[]),
        }
    }
}

impl<'a> Authentication<'a> {
    fn decode(body: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (tag, contents) = body.element()?;
        match tag {
            SIMPLE => Ok(Authentication::Simple(contents)),
            SASL => {
                let mut sasl = Reader::new(contents);
                let mechanism = sasl.string(OCTET_STRING)?;
                let credentials = sasl.optional(OCTET_STRING)?;
                sasl.finish(&[OCTET_STRING])?;
                Ok(Authentication::Sasl { mechanism, credentials })
            }
            // Context-specific: a choice of a later version, or of LDAPv2.
            _ if tag & 0xc0 == 0x80 => Ok(Authentication::Other(tag)),
            _ => Err(DecodeError::invalid("unknown authentication choice")),
        }
    }
}

/// How far below the base a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The base itself.
    Base,
    /// Its children.
    One,
    /// The base and all below it.
    Subtree,
    /// All below it without the base (draft-sermersheim-ldap-subordinate-scope).
    Subordinate,
}

/// Which aliases a search dereferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deref {
    /// None.
    Never,
    /// Those found below the base.
    InSearching,
    /// Those on the way to the base.
    FindingBase,
    /// All.
    Always,
}

/// SearchRequest, § 4.5.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest<'a> {
    /// The DN of the base.
    pub base: &'a str,
    /// How far below it.
    pub scope: Scope,
    /// The treatment of aliases.
    pub deref: Deref,
    /// The most entries wanted; 0 for no limit.
    pub size_limit: u32,
    /// The most seconds to search for; 0 for no limit.
    pub time_limit_s: u32,
    /// Attribute descriptions without values wanted.
    pub types_only: bool,
    /// Which entries.
    pub filter: Filter<'a>,
    /// Which attributes, with `*`, `+` and `1.1`; empty for all user attributes.
    pub attributes: Vec<&'a str>,
}

impl<'a> SearchRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let base = body.string(OCTET_STRING)?;
        let scope = match body.natural(ENUMERATED)? {
            0 => Scope::Base,
            1 => Scope::One,
            2 => Scope::Subtree,
            3 => Scope::Subordinate,
            _ => return Err(DecodeError::invalid("unknown search scope")),
        };
        let deref = match body.natural(ENUMERATED)? {
            0 => Deref::Never,
            1 => Deref::InSearching,
            2 => Deref::FindingBase,
            3 => Deref::Always,
            _ => return Err(DecodeError::invalid("unknown alias dereferencing")),
        };
        let size_limit = body.natural(INTEGER)?;
        let time_limit_s = body.natural(INTEGER)?;
        let types_only = body.boolean(BOOLEAN)?;
        let filter = Filter::decode_from(&mut body)?;
        let selection = body.nested(SEQUENCE)?;
        let attributes = decode_strings(selection, "requested attributes", ATTRIBUTES_MAX)?;
        body.finish(&[OCTET_STRING, ENUMERATED, INTEGER, BOOLEAN, SEQUENCE])?;
        Ok(SearchRequest {
            base,
            scope,
            deref,
            size_limit,
            time_limit_s,
            types_only,
            filter,
            attributes,
        })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(OCTET_STRING, self.base);
        let scope = match self.scope {
            Scope::Base => 0,
            Scope::One => 1,
            Scope::Subtree => 2,
            Scope::Subordinate => 3,
        };
        writer.integer(ENUMERATED, scope);
        let deref = match self.deref {
            Deref::Never => 0,
            Deref::InSearching => 1,
            Deref::FindingBase => 2,
            Deref::Always => 3,
        };
        writer.integer(ENUMERATED, deref);
        writer.integer(INTEGER, i64::from(self.size_limit));
        writer.integer(INTEGER, i64::from(self.time_limit_s));
        writer.boolean(BOOLEAN, self.types_only);
        self.filter.encode_to(writer);
        let selection = writer.begin(SEQUENCE);
        for attribute in &self.attributes {
            writer.string(OCTET_STRING, attribute);
        }
        writer.end(selection);
    }
}

/// ModifyRequest, § 4.6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyRequest<'a> {
    /// The DN of the entry.
    pub dn: &'a str,
    /// The changes, done in this order, all or none.
    pub changes: Vec<Change<'a>>,
}

/// One change of a modify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'a> {
    /// The operation.
    pub operation: ChangeOperation,
    /// To which attribute, with which values.
    pub attribute: Attribute<'a>,
}

/// The operation of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeOperation {
    /// Adds the values.
    Add,
    /// Deletes the values, or without values the attribute.
    Delete,
    /// Replaces all values by these; without values deletes the attribute if it is there.
    Replace,
    /// Adds the one value to each value (RFC 4525).
    Increment,
}

impl<'a> ModifyRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let dn = body.string(OCTET_STRING)?;
        let mut list = body.nested(SEQUENCE)?;
        body.finish(&[OCTET_STRING, SEQUENCE])?;
        let mut changes = Vec::new();
        let mut values_left = VALUES_MAX;
        while !list.is_empty() {
            if changes.len() == ATTRIBUTES_MAX {
                return Err(DecodeError::TooMany { what: "changes", max: ATTRIBUTES_MAX });
            }
            changes.push(Change::decode(list.nested(SEQUENCE)?, &mut values_left)?);
        }
        Ok(ModifyRequest { dn, changes })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(OCTET_STRING, self.dn);
        let list = writer.begin(SEQUENCE);
        for change in &self.changes {
            change.encode(writer);
        }
        writer.end(list);
    }
}

impl<'a> Change<'a> {
    fn decode(mut body: Reader<'a>, values_left: &mut usize) -> Result<Self, DecodeError> {
        let operation = match body.natural(ENUMERATED)? {
            0 => ChangeOperation::Add,
            1 => ChangeOperation::Delete,
            2 => ChangeOperation::Replace,
            3 => ChangeOperation::Increment,
            _ => return Err(DecodeError::invalid("unknown modify operation")),
        };
        let attribute = Attribute::decode(&mut body, values_left)?;
        body.finish(&[ENUMERATED, SEQUENCE])?;
        Ok(Change { operation, attribute })
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        let change = writer.begin(SEQUENCE);
        let operation = match self.operation {
            ChangeOperation::Add => 0,
            ChangeOperation::Delete => 1,
            ChangeOperation::Replace => 2,
            ChangeOperation::Increment => 3,
        };
        writer.integer(ENUMERATED, operation);
        self.attribute.encode(writer);
        writer.end(change);
    }
}

/// AddRequest, § 4.7.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddRequest<'a> {
    /// The DN of the new entry.
    pub dn: &'a str,
    /// Its attributes, each with at least one value.
    pub attributes: Vec<Attribute<'a>>,
}

impl<'a> AddRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let dn = body.string(OCTET_STRING)?;
        let attributes = Attribute::decode_all(body.nested(SEQUENCE)?)?;
        body.finish(&[OCTET_STRING, SEQUENCE])?;
        if attributes.iter().any(|attribute| attribute.values.is_empty()) {
            return Err(DecodeError::invalid("attribute without values in an add"));
        }
        Ok(AddRequest { dn, attributes })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(OCTET_STRING, self.dn);
        Attribute::encode_all(&self.attributes, writer);
    }
}

/// ModifyDNRequest, § 4.9.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyDnRequest<'a> {
    /// The DN of the entry.
    pub dn: &'a str,
    /// The RDN it shall have.
    pub new_rdn: &'a str,
    /// Whether the values of the old RDN go from the entry's attributes.
    pub delete_old_rdn: bool,
    /// The DN of the parent it shall have, if that changes.
    pub new_superior: Option<&'a str>,
}

impl<'a> ModifyDnRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let dn = body.string(OCTET_STRING)?;
        let new_rdn = body.string(OCTET_STRING)?;
        let delete_old_rdn = body.boolean(BOOLEAN)?;
        let new_superior = body.optional(NEW_SUPERIOR)?.map(ber::string).transpose()?;
        body.finish(&[OCTET_STRING, BOOLEAN, NEW_SUPERIOR])?;
        Ok(ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(OCTET_STRING, self.dn);
        writer.string(OCTET_STRING, self.new_rdn);
        writer.boolean(BOOLEAN, self.delete_old_rdn);
        if let Some(superior) = self.new_superior {
            writer.string(NEW_SUPERIOR, superior);
        }
    }
}

/// CompareRequest, § 4.10. `Debug` does not show the value of a password attribute.
#[derive(Clone, PartialEq, Eq)]
pub struct CompareRequest<'a> {
    /// The DN of the entry.
    pub dn: &'a str,
    /// The attribute description.
    pub attribute: &'a str,
    /// The assertion value.
    pub value: &'a [u8],
}

impl fmt::Debug for CompareRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CompareRequest");
        shown.field("dn", &self.dn).field("attribute", &self.attribute);
        if is_password(self.attribute) {
            shown.field("value", &Hidden(self.value.len(), "octets"));
        } else {
            shown.field("value", &self.value);
        }
        shown.finish()
    }
}

impl<'a> CompareRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let dn = body.string(OCTET_STRING)?;
        let mut assertion = body.nested(SEQUENCE)?;
        body.finish(&[OCTET_STRING, SEQUENCE])?;
        let attribute = assertion.string(OCTET_STRING)?;
        let value = assertion.expect(OCTET_STRING)?;
        assertion.finish(&[OCTET_STRING])?;
        Ok(CompareRequest { dn, attribute, value })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(OCTET_STRING, self.dn);
        let assertion = writer.begin(SEQUENCE);
        writer.string(OCTET_STRING, self.attribute);
        writer.octets(OCTET_STRING, self.value);
        writer.end(assertion);
    }
}

/// ExtendedRequest, § 4.12. `Debug` does not show the value, which may hold a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtendedRequest<'a> {
    /// Which operation.
    pub oid: &'a str,
    /// Its parameters; [`crate::extended`] has the meanings of some.
    pub value: Option<&'a [u8]>,
}

impl fmt::Debug for ExtendedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtendedRequest")
            .field("oid", &self.oid)
            .field("value", &self.value.map(|value| Hidden(value.len(), "octets")))
            .finish()
    }
}

impl<'a> ExtendedRequest<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let oid = body.string(REQUEST_NAME)?;
        let value = body.optional(REQUEST_VALUE)?;
        // Ignored as a component of a later version (§ 4), it could be a mistyped value: a Password Modify
        // would change another password than the one that it names.
        if value.is_none() && !body.is_empty() {
            return Err(DecodeError::invalid("value of an extended request that is none"));
        }
        body.finish(&[REQUEST_NAME, REQUEST_VALUE])?;
        Ok(ExtendedRequest { oid, value })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(REQUEST_NAME, self.oid);
        if let Some(value) = self.value {
            writer.octets(REQUEST_VALUE, value);
        }
    }
}
