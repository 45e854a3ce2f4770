//! Attribute syntaxes: RFC 4517 § 3.3, and those of other RFCs that the standard schema uses.

use super::validate as check;

/// Says whether a value is of a syntax, and if not, why.
type Check = fn(&[u8]) -> Result<(), &'static str>;

macro_rules! syntaxes {
    ($($syntax:ident: $oid:literal $description:literal $check:expr;)*) => {
        /// An attribute syntax.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Syntax {
            $(#[doc = concat!($description, ", ", $oid, ".")] $syntax,)*
        }

        impl Syntax {
            /// Every syntax.
            pub const ALL: &[Syntax] = &[$(Syntax::$syntax,)*];

            fn facts(self) -> Facts {
                match self {
                    $(Syntax::$syntax => Facts { oid: $oid, name: $description, check: $check },)*
                }
            }
        }
    };
}

struct Facts {
    oid: &'static str,
    name: &'static str,
    check: Check,
}

syntaxes! {
    AttributeTypeDescription: "1.3.6.1.4.1.1466.115.121.1.3" "Attribute Type Description" check::attribute_type_description;
    Audio: "1.3.6.1.4.1.1466.115.121.1.4" "Audio" check::anything;
    Binary: "1.3.6.1.4.1.1466.115.121.1.5" "Binary" check::anything;
    BitString: "1.3.6.1.4.1.1466.115.121.1.6" "Bit String" check::bit_string;
    Boolean: "1.3.6.1.4.1.1466.115.121.1.7" "Boolean" check::boolean;
    Certificate: "1.3.6.1.4.1.1466.115.121.1.8" "X.509 Certificate" check::ber_sequence;
    CertificateList: "1.3.6.1.4.1.1466.115.121.1.9" "X.509 Certificate List" check::ber_sequence;
    CertificatePair: "1.3.6.1.4.1.1466.115.121.1.10" "X.509 Certificate Pair" check::ber_sequence;
    CountryString: "1.3.6.1.4.1.1466.115.121.1.11" "Country String" check::country_string;
    Dn: "1.3.6.1.4.1.1466.115.121.1.12" "DN" check::dn;
    DeliveryMethod: "1.3.6.1.4.1.1466.115.121.1.14" "Delivery Method" check::delivery_method;
    DirectoryString: "1.3.6.1.4.1.1466.115.121.1.15" "Directory String" check::directory_string;
    DitContentRuleDescription: "1.3.6.1.4.1.1466.115.121.1.16" "DIT Content Rule Description" check::description;
    DitStructureRuleDescription: "1.3.6.1.4.1.1466.115.121.1.17" "DIT Structure Rule Description" check::description;
    EnhancedGuide: "1.3.6.1.4.1.1466.115.121.1.21" "Enhanced Guide" check::enhanced_guide;
    FacsimileTelephoneNumber: "1.3.6.1.4.1.1466.115.121.1.22" "Facsimile Telephone Number" check::facsimile_telephone_number;
    Fax: "1.3.6.1.4.1.1466.115.121.1.23" "Fax" check::anything;
    GeneralizedTime: "1.3.6.1.4.1.1466.115.121.1.24" "Generalized Time" check::generalized_time;
    Guide: "1.3.6.1.4.1.1466.115.121.1.25" "Guide" check::guide;
    Ia5String: "1.3.6.1.4.1.1466.115.121.1.26" "IA5 String" check::ia5_string;
    Integer: "1.3.6.1.4.1.1466.115.121.1.27" "INTEGER" check::integer;
    Jpeg: "1.3.6.1.4.1.1466.115.121.1.28" "JPEG" check::anything;
    MatchingRuleDescription: "1.3.6.1.4.1.1466.115.121.1.30" "Matching Rule Description" check::description;
    MatchingRuleUseDescription: "1.3.6.1.4.1.1466.115.121.1.31" "Matching Rule Use Description" check::description;
    NameAndOptionalUid: "1.3.6.1.4.1.1466.115.121.1.34" "Name And Optional UID" check::name_and_optional_uid;
    NameFormDescription: "1.3.6.1.4.1.1466.115.121.1.35" "Name Form Description" check::description;
    NumericString: "1.3.6.1.4.1.1466.115.121.1.36" "Numeric String" check::numeric_string;
    ObjectClassDescription: "1.3.6.1.4.1.1466.115.121.1.37" "Object Class Description" check::object_class_description;
    Oid: "1.3.6.1.4.1.1466.115.121.1.38" "OID" check::oid;
    OtherMailbox: "1.3.6.1.4.1.1466.115.121.1.39" "Other Mailbox" check::other_mailbox;
    OctetString: "1.3.6.1.4.1.1466.115.121.1.40" "Octet String" check::anything;
    PostalAddress: "1.3.6.1.4.1.1466.115.121.1.41" "Postal Address" check::postal_address;
    PrintableString: "1.3.6.1.4.1.1466.115.121.1.44" "Printable String" check::printable_string;
    SubtreeSpecification: "1.3.6.1.4.1.1466.115.121.1.45" "Subtree Specification" check::subtree_specification;
    SupportedAlgorithm: "1.3.6.1.4.1.1466.115.121.1.49" "X.509 Supported Algorithm" check::ber_sequence;
    TelephoneNumber: "1.3.6.1.4.1.1466.115.121.1.50" "Telephone Number" check::telephone_number;
    TeletexTerminalIdentifier: "1.3.6.1.4.1.1466.115.121.1.51" "Teletex Terminal Identifier" check::teletex_terminal_identifier;
    TelexNumber: "1.3.6.1.4.1.1466.115.121.1.52" "Telex Number" check::telex_number;
    UtcTime: "1.3.6.1.4.1.1466.115.121.1.53" "UTC Time" check::utc_time;
    LdapSyntaxDescription: "1.3.6.1.4.1.1466.115.121.1.54" "LDAP Syntax Description" check::description;
    SubstringAssertion: "1.3.6.1.4.1.1466.115.121.1.58" "Substring Assertion" check::substring_assertion;
    NisNetgroupTriple: "1.3.6.1.1.1.0.0" "RFC2307 NIS netgroup triple" check::nis_netgroup_triple;
    BootParameter: "1.3.6.1.1.1.0.1" "RFC2307 boot parameter" check::boot_parameter;
    Uuid: "1.3.6.1.1.16.1" "UUID" check::uuid;
}

impl Syntax {
    /// The syntax of this numeric OID. Of values of another one nothing is known: they are octets,
    /// as those of [`Syntax::OctetString`] are.
    #[must_use]
    pub fn from_oid(oid: &str) -> Option<Syntax> {
        Self::ALL.iter().find(|syntax| syntax.oid() == oid).copied()
    }

    /// The syntax of a name: its description in any case and spacing (`DirectoryString`), or what
    /// Netscape's servers and their heirs call it in old files.
    #[must_use]
    pub fn from_description(name: &str) -> Option<Syntax> {
        let key = |text: &str| text.replace([' ', '-', '_'], "").to_ascii_lowercase();
        let name = key(name);
        Some(match name.as_str() {
            "cis" | "ces" | "caseignorestring" | "caseexactstring" => Syntax::DirectoryString,
            "bin" => Syntax::Binary,
            "tel" => Syntax::TelephoneNumber,
            "int" => Syntax::Integer,
            "distinguishedname" => Syntax::Dn,
            "nameandoptionaluid" => Syntax::NameAndOptionalUid,
            _ => *Self::ALL.iter().find(|syntax| key(syntax.facts().name) == name)?,
        })
    }

    /// Its numeric OID.
    #[must_use]
    pub fn oid(self) -> &'static str {
        self.facts().oid
    }

    /// What it is called, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Checks that a value is of the syntax.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(self, value: &[u8]) -> Result<(), &'static str> {
        (self.facts().check)(value)
    }

    /// Checks a value that another server took: the same, but that a telephone or fax number may be
    /// any text. Some servers ask for no more, and nobody's numbers are to be lost on the way here.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate_imported(self, value: &[u8]) -> Result<(), &'static str> {
        match self {
            Syntax::TelephoneNumber | Syntax::FacsimileTelephoneNumber => {
                check::directory_string(value)
            }
            _ => self.validate(value),
        }
    }

    /// Its description for the subschema (RFC 4512 § 4.1.5).
    #[must_use]
    pub fn description(self) -> String {
        format!("( {} DESC '{}' )", self.oid(), self.facts().name)
    }
}

#[cfg(test)]
mod tests;
