//! Compare.

use super::*;
use keyway_codec::message::CompareRequest;

#[test]
fn every_answer() {
    let fixture = filled();
    let ada = &format!("uid=ada,{PEOPLE}");
    let compare = |dn: &str, attribute: &str, value: &str| {
        let request = CompareRequest { dn, attribute, value: value.as_bytes() };
        let controls = RequestControls::default();
        fixture.directory.compare(&fixture.administrator(), &request, &controls, ANNOUNCED)
    };
    let truth = |dn, attribute, value| compare(dn, attribute, value).unwrap();
    assert!(truth(ada, "cn", "ADA lovelace"));
    assert!(truth(ada, "commonName", "Ada  Lovelace"));
    assert!(truth(ada, "name", "lovelace"));
    assert!(truth(ada, "objectClass", "PERSON"));
    assert!(truth(ada, "objectClass", "2.5.6.6"));
    assert!(!truth(ada, "cn", "Alan Turing"));
    assert!(truth(ada, "hasSubordinates", "FALSE"));
    assert!(!truth(ada, "numSubordinates", "3"));
    assert!(truth("", "vendorName", "Keyway"));
    assert!(truth("cn=schema", "cn", "Schema"));
    use ResultCode::*;
    for (dn, attribute, value, expected) in [
        (ada.as_str(), "description", "x", NoSuchAttribute),
        (ada, "unheard-of", "x", UndefinedAttributeType),
        (ada, "cn;lang-de", "x", NoSuchAttribute),
        (ada, "uidNumber", "abc", InvalidAttributeSyntax),
        (ada, "jpegPhoto", "x", InappropriateMatching),
        ("uid=absent,ou=people,dc=example,dc=com", "cn", "x", NoSuchObject),
        ("dc=elsewhere", "cn", "x", NoSuchObject),
        ("nonsense", "cn", "x", InvalidDnSyntax),
    ] {
        assert_eq!(code(compare(dn, attribute, value)), expected, "{dn} {attribute}={value}");
    }
    let missing = compare("uid=x,ou=people,dc=example,dc=com", "cn", "x").unwrap_err();
    assert_eq!(missing.matched_dn, PEOPLE);
}
