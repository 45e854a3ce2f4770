//! Attribute syntaxes: RFC 4517 § 3.3, and those of other RFCs that the standard schema uses.

macro_rules! syntaxes {
    ($($syntax:ident: $oid:literal $description:literal;)*) => {
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
                    $(Syntax::$syntax => Facts { oid: $oid, name: $description },)*
                }
            }
        }
    };
}

struct Facts {
    oid: &'static str,
    name: &'static str,
}

syntaxes! {
    AttributeTypeDescription: "1.3.6.1.4.1.1466.115.121.1.3" "Attribute Type Description";
    Audio: "1.3.6.1.4.1.1466.115.121.1.4" "Audio";
    Binary: "1.3.6.1.4.1.1466.115.121.1.5" "Binary";
    BitString: "1.3.6.1.4.1.1466.115.121.1.6" "Bit String";
    Boolean: "1.3.6.1.4.1.1466.115.121.1.7" "Boolean";
    Certificate: "1.3.6.1.4.1.1466.115.121.1.8" "X.509 Certificate";
    CertificateList: "1.3.6.1.4.1.1466.115.121.1.9" "X.509 Certificate List";
    CertificatePair: "1.3.6.1.4.1.1466.115.121.1.10" "X.509 Certificate Pair";
    CountryString: "1.3.6.1.4.1.1466.115.121.1.11" "Country String";
    Dn: "1.3.6.1.4.1.1466.115.121.1.12" "DN";
    DeliveryMethod: "1.3.6.1.4.1.1466.115.121.1.14" "Delivery Method";
    DirectoryString: "1.3.6.1.4.1.1466.115.121.1.15" "Directory String";
    DitContentRuleDescription: "1.3.6.1.4.1.1466.115.121.1.16" "DIT Content Rule Description";
    DitStructureRuleDescription: "1.3.6.1.4.1.1466.115.121.1.17" "DIT Structure Rule Description";
    EnhancedGuide: "1.3.6.1.4.1.1466.115.121.1.21" "Enhanced Guide";
    FacsimileTelephoneNumber: "1.3.6.1.4.1.1466.115.121.1.22" "Facsimile Telephone Number";
    Fax: "1.3.6.1.4.1.1466.115.121.1.23" "Fax";
    GeneralizedTime: "1.3.6.1.4.1.1466.115.121.1.24" "Generalized Time";
    Guide: "1.3.6.1.4.1.1466.115.121.1.25" "Guide";
    Ia5String: "1.3.6.1.4.1.1466.115.121.1.26" "IA5 String";
    Integer: "1.3.6.1.4.1.1466.115.121.1.27" "INTEGER";
    Jpeg: "1.3.6.1.4.1.1466.115.121.1.28" "JPEG";
    MatchingRuleDescription: "1.3.6.1.4.1.1466.115.121.1.30" "Matching Rule Description";
    MatchingRuleUseDescription: "1.3.6.1.4.1.1466.115.121.1.31" "Matching Rule Use Description";
    NameAndOptionalUid: "1.3.6.1.4.1.1466.115.121.1.34" "Name And Optional UID";
    NameFormDescription: "1.3.6.1.4.1.1466.115.121.1.35" "Name Form Description";
    NumericString: "1.3.6.1.4.1.1466.115.121.1.36" "Numeric String";
    ObjectClassDescription: "1.3.6.1.4.1.1466.115.121.1.37" "Object Class Description";
    Oid: "1.3.6.1.4.1.1466.115.121.1.38" "OID";
    OtherMailbox: "1.3.6.1.4.1.1466.115.121.1.39" "Other Mailbox";
    OctetString: "1.3.6.1.4.1.1466.115.121.1.40" "Octet String";
    PostalAddress: "1.3.6.1.4.1.1466.115.121.1.41" "Postal Address";
    PrintableString: "1.3.6.1.4.1.1466.115.121.1.44" "Printable String";
    SubtreeSpecification: "1.3.6.1.4.1.1466.115.121.1.45" "Subtree Specification";
    SupportedAlgorithm: "1.3.6.1.4.1.1466.115.121.1.49" "X.509 Supported Algorithm";
    TelephoneNumber: "1.3.6.1.4.1.1466.115.121.1.50" "Telephone Number";
    TeletexTerminalIdentifier: "1.3.6.1.4.1.1466.115.121.1.51" "Teletex Terminal Identifier";
    TelexNumber: "1.3.6.1.4.1.1466.115.121.1.52" "Telex Number";
    UtcTime: "1.3.6.1.4.1.1466.115.121.1.53" "UTC Time";
    LdapSyntaxDescription: "1.3.6.1.4.1.1466.115.121.1.54" "LDAP Syntax Description";
    SubstringAssertion: "1.3.6.1.4.1.1466.115.121.1.58" "Substring Assertion";
    NisNetgroupTriple: "1.3.6.1.1.1.0.0" "RFC2307 NIS netgroup triple";
    BootParameter: "1.3.6.1.1.1.0.1" "RFC2307 boot parameter";
    Uuid: "1.3.6.1.1.16.1" "UUID";
}

impl Syntax {
    /// The syntax of this numeric OID. Values of an unknown syntax are octets, as those of
    /// [`Syntax::OctetString`].
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

    /// Its name, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Its description for the subschema (RFC 4512 § 4.1.5).
    #[must_use]
    pub fn description(self) -> String {
        format!("( {} DESC '{}' )", self.oid(), self.facts().name)
    }
}

#[cfg(test)]
mod tests;
