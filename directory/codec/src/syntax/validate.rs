//! Whether a value is of its syntax.

use super::{Syntax, forms, names, time};
use crate::ber::{Reader, SEQUENCE};
use crate::description::{self, AttributeTypeDescription, ObjectClassDescription, is_name};
use crate::dn::{Dn, is_numeric_oid};

/// Says whether a value is of a syntax, and if not, why.
type Check = fn(&[u8]) -> Checked;
type Checked = Result<(), &'static str>;

impl Syntax {
    /// Checks that a value is of the syntax.
    ///
    /// # Errors
    /// Why the value is not valid.
    pub fn validate(self, value: &[u8]) -> Result<(), &'static str> {
        (self.check())(value)
    }

    /// Checks a value that another server took, as [`Syntax::validate`], but a telephone or fax number
    /// may be any text. Some servers ask for no more, and an import must not lose their numbers.
    ///
    /// # Errors
    /// Why the value is not valid.
    pub fn validate_imported(self, value: &[u8]) -> Result<(), &'static str> {
        match self {
            Syntax::TelephoneNumber | Syntax::FacsimileTelephoneNumber => directory_string(value),
            _ => self.validate(value),
        }
    }

    fn check(self) -> Check {
        match self {
            Syntax::AttributeTypeDescription => attribute_type_description,
            Syntax::Audio | Syntax::Binary | Syntax::Fax | Syntax::Jpeg | Syntax::OctetString => {
                anything
            }
            Syntax::BitString => bit_string,
            Syntax::Boolean => boolean,
            Syntax::Certificate
            | Syntax::CertificateList
            | Syntax::CertificatePair
            | Syntax::SupportedAlgorithm => ber_sequence,
            Syntax::CountryString => country_string,
            Syntax::Dn => dn,
            Syntax::DeliveryMethod => delivery_method,
            Syntax::DirectoryString => directory_string,
            Syntax::DitContentRuleDescription
            | Syntax::DitStructureRuleDescription
            | Syntax::MatchingRuleDescription
            | Syntax::MatchingRuleUseDescription
            | Syntax::NameFormDescription
            | Syntax::LdapSyntaxDescription => description,
            Syntax::EnhancedGuide => enhanced_guide,
            Syntax::FacsimileTelephoneNumber => facsimile_telephone_number,
            Syntax::GeneralizedTime => generalized_time,
            Syntax::Guide => guide,
            Syntax::Ia5String => ia5_string,
            Syntax::Integer => integer,
            Syntax::NameAndOptionalUid => name_and_optional_uid,
            Syntax::NumericString => numeric_string,
            Syntax::ObjectClassDescription => object_class_description,
            Syntax::Oid => oid,
            Syntax::OtherMailbox => other_mailbox,
            Syntax::PostalAddress => postal_address,
            Syntax::PrintableString => printable_string,
            Syntax::SubtreeSpecification => subtree_specification,
            Syntax::TelephoneNumber => telephone_number,
            Syntax::TeletexTerminalIdentifier => teletex_terminal_identifier,
            Syntax::TelexNumber => telex_number,
            Syntax::UtcTime => utc_time,
            Syntax::SubstringAssertion => substring_assertion,
            Syntax::NisNetgroupTriple => nis_netgroup_triple,
            Syntax::BootParameter => boot_parameter,
            Syntax::Uuid => uuid,
        }
    }
}

fn require(fits: bool, why: &'static str) -> Checked {
    if fits { Ok(()) } else { Err(why) }
}

/// For syntaxes without a string form, whose inside is not looked at.
fn anything(_: &[u8]) -> Checked {
    Ok(())
}

fn text(value: &[u8]) -> Result<&str, &'static str> {
    str::from_utf8(value).map_err(|_| "it is not UTF-8")
}

fn is_printable(value: &[u8]) -> bool {
    let printable = |byte: &u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(byte);
    !value.is_empty() && value.iter().all(printable)
}

fn directory_string(value: &[u8]) -> Checked {
    require(!value.is_empty(), "it is empty")?;
    text(value).map(|_| ())
}

fn printable_string(value: &[u8]) -> Checked {
    require(!value.is_empty(), "it is empty")?;
    require(is_printable(value), "only letters, digits, blanks and '()+,-./:=? are allowed")
}

fn ia5_string(value: &[u8]) -> Checked {
    require(value.is_ascii(), "only ASCII characters are allowed")
}

fn country_string(value: &[u8]) -> Checked {
    require(
        value.len() == 2 && is_printable(value),
        "not a country code of two characters (for example DE)",
    )
}

fn numeric_string(value: &[u8]) -> Checked {
    require(!value.is_empty(), "it is empty")?;
    let allowed = value.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ');
    require(allowed, "only digits and blanks are allowed")
}

/// A number is a PrintableString (RFC 4517 § 3.3.31).
fn telephone_number(value: &[u8]) -> Checked {
    printable_string(value)
}

fn facsimile_telephone_number(value: &[u8]) -> Checked {
    let mut parts = value.split(|byte| *byte == b'$');
    telephone_number(parts.next().unwrap_or_default())?;
    let parameters: [&[u8]; 7] = [
        b"twoDimensional",
        b"fineResolution",
        b"unlimitedLength",
        b"b4Length",
        b"a3Width",
        b"b4Width",
        b"uncompressed",
    ];
    let known = |part: &[u8]| parameters.iter().any(|known| known.eq_ignore_ascii_case(part));
    require(parts.all(known), "the text after '$' is not a fax parameter")
}

fn telex_number(value: &[u8]) -> Checked {
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'$').collect();
    let well_formed = parts.len() == 3 && parts.iter().all(|part| is_printable(part));
    require(well_formed, "it is not a number, a country code and an answerback between '$'")
}

fn teletex_terminal_identifier(value: &[u8]) -> Checked {
    let mut parts = value.split(|byte| *byte == b'$');
    printable_string(parts.next().unwrap_or_default())?;
    let keys: [&[u8]; 5] = [b"graphic:", b"control:", b"misc:", b"page:", b"private:"];
    let known = |part: &[u8]| {
        keys.iter()
            .any(|key| part.get(..key.len()).is_some_and(|head| head.eq_ignore_ascii_case(key)))
    };
    require(parts.all(known), "the text after '$' is not a teletex parameter")
}

fn delivery_method(value: &[u8]) -> Checked {
    let methods: [&[u8]; 10] = [
        b"any",
        b"mhs",
        b"physical",
        b"telex",
        b"teletex",
        b"g3fax",
        b"g4fax",
        b"ia5",
        b"videotex",
        b"telephone",
    ];
    let known = |part: &[u8]| methods.iter().any(|method| method.eq_ignore_ascii_case(part));
    let mut parts = value.split(|byte| *byte == b'$').map(<[u8]>::trim_ascii);
    require(parts.all(known), "not a list of delivery methods with '$' between them")
}

fn other_mailbox(value: &[u8]) -> Checked {
    let dollar = value.iter().position(|byte| *byte == b'$').unwrap_or(value.len());
    let (kind, mailbox) = value.split_at_checked(dollar).unwrap_or_default();
    let well_formed = is_printable(kind) && !mailbox.is_empty() && mailbox.is_ascii();
    require(well_formed, "it is not a mailbox type, '$' and a mailbox")
}

fn postal_address(value: &[u8]) -> Checked {
    text(value)?;
    let mut lines = value.split(|byte| *byte == b'$');
    require(!value.is_empty(), "it is empty")?;
    let well_formed = lines.all(|line| forms::unescaped(line, b'$').is_some());
    require(well_formed, "'\\' is written \\5C, and '$' within a line \\24")
}

fn boolean(value: &[u8]) -> Checked {
    require(forms::boolean(value).is_some(), "it is neither TRUE nor FALSE")
}

fn integer(value: &[u8]) -> Checked {
    require(forms::integer(value).is_some(), "not an integer (digits without a leading zero)")
}

fn bit_string(value: &[u8]) -> Checked {
    require(forms::bit_string(value).is_some(), "not a bit string (for example '0101'B)")
}

fn uuid(value: &[u8]) -> Checked {
    require(forms::uuid(value).is_some(), "not a UUID (8-4-4-4-12 hexadecimal digits)")
}

fn generalized_time(value: &[u8]) -> Checked {
    let why = "not a date and time with zone (for example 20041231235960Z)";
    require(time::generalized(value).is_some(), why)
}

fn utc_time(value: &[u8]) -> Checked {
    require(time::is_utc_time(value), "not a date and time (for example 0412312359Z)")
}

fn dn(value: &[u8]) -> Checked {
    Dn::parse(text(value)?).map(|_| ()).map_err(|error| error.why)
}

fn name_and_optional_uid(value: &[u8]) -> Checked {
    dn(names::split_uid(value).0)
}

fn oid(value: &[u8]) -> Checked {
    let well_formed = str::from_utf8(value).is_ok_and(|text| is_numeric_oid(text) || is_name(text));
    require(well_formed, "it is neither an OID nor a name")
}

fn attribute_type_description(value: &[u8]) -> Checked {
    AttributeTypeDescription::parse(text(value)?).map(|_| ()).map_err(|error| error.why)
}

fn object_class_description(value: &[u8]) -> Checked {
    ObjectClassDescription::parse(text(value)?).map(|_| ()).map_err(|error| error.why)
}

/// For descriptions that nothing here reads: that they are words and quotes in parentheses.
fn description(value: &[u8]) -> Checked {
    description::check_form(text(value)?).map_err(|error| error.why)
}

fn substring_assertion(value: &[u8]) -> Checked {
    let why = "not a substring assertion (for example initial*any*final), with \\2A for '*' and \\5C for '\\'";
    require(super::substring_assertion(value).is_some(), why)
}

/// For what nothing here evaluates (RFC 3672 § 2.1): that it is text in braces.
fn subtree_specification(value: &[u8]) -> Checked {
    let inner = text(value)?.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    require(inner.is_some(), "not a subtree specification (for example { base \"ou=People\" })")
}

/// `[object-class#]criteria`
fn guide(value: &[u8]) -> Checked {
    let criteria = match value.iter().position(|byte| *byte == b'#') {
        Some(at) => {
            oid(value.get(..at).unwrap_or_default().trim_ascii())?;
            value.get(at + 1..).unwrap_or_default()
        }
        None => value,
    };
    require(is_criteria(criteria), "not a guide (for example person#sn$EQ)")
}

/// `object-class#criteria#subset`
fn enhanced_guide(value: &[u8]) -> Checked {
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'#').map(<[u8]>::trim_ascii).collect();
    let subsets: [&[u8]; 3] = [b"baseobject", b"oneLevel", b"wholeSubtree"];
    let well_formed = match parts.as_slice() {
        [class, criteria, subset] => {
            oid(class).is_ok()
                && is_criteria(criteria)
                && subsets.iter().any(|known| known.eq_ignore_ascii_case(subset))
        }
        _ => false,
    };
    require(well_formed, "not an enhanced guide (for example person#(sn$EQ)#oneLevel)")
}

/// Terms between `|` and `&`. Their content is not looked at, only that parentheses match.
fn is_criteria(criteria: &[u8]) -> bool {
    let mut depth = 0_usize;
    for byte in criteria {
        match byte {
            b'(' => depth += 1,
            b')' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => {}
        }
    }
    depth == 0 && criteria.split(|byte| matches!(byte, b'|' | b'&')).all(is_term)
}

fn is_term(term: &[u8]) -> bool {
    let grouping = |byte: &u8| matches!(byte, b'!' | b'(' | b')' | b' ');
    let start = term.iter().position(|byte| !grouping(byte)).unwrap_or(term.len());
    let end = term.iter().rposition(|byte| !grouping(byte)).map_or(start, |last| last + 1);
    let term = term.get(start..end).unwrap_or_default();
    if term.eq_ignore_ascii_case(b"?true") || term.eq_ignore_ascii_case(b"?false") {
        return true;
    }
    let kinds: [&[u8]; 5] = [b"EQ", b"SUBSTR", b"GE", b"LE", b"APPROX"];
    let Some(dollar) = term.iter().position(|byte| *byte == b'$') else { return false };
    let (attribute, kind) = term.split_at_checked(dollar).unwrap_or_default();
    let kind = kind.get(1..).unwrap_or_default();
    oid(attribute).is_ok() && kinds.iter().any(|known| known.eq_ignore_ascii_case(kind))
}

/// `(host,user,domain)`, each of which may be empty or `-` (RFC 2307 § 2.4).
fn nis_netgroup_triple(value: &[u8]) -> Checked {
    let inner = value.strip_prefix(b"(").and_then(|value| value.strip_suffix(b")"));
    let well_formed = inner.is_some_and(|inner| {
        inner.is_ascii() && inner.iter().filter(|byte| **byte == b',').count() == 2
    });
    require(well_formed, "not a netgroup triple (for example (host,user,domain))")
}

/// `key=server:path` (RFC 2307 § 2.4).
fn boot_parameter(value: &[u8]) -> Checked {
    let equals = value.iter().position(|byte| *byte == b'=');
    let colon = value.iter().position(|byte| *byte == b':');
    let ordered = equals.zip(colon).is_some_and(|(equals, colon)| 0 < equals && equals < colon);
    require(value.is_ascii() && ordered, "not a boot parameter (for example root=server:/path)")
}

/// For what X.509 defines: that it is one BER SEQUENCE.
fn ber_sequence(value: &[u8]) -> Checked {
    let mut reader = Reader::new(value);
    let whole = reader.expect(SEQUENCE).is_ok() && reader.is_empty();
    require(whole, "not a BER SEQUENCE")
}
