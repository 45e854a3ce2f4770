//! The two entries that are made up when they are asked for: the root DSE (RFC 4512 § 5.1) and the
//! subschema (RFC 4512 § 4.2).

use crate::controls;
use crate::naming::NamingContext;
use crate::settings::Announced;
use crate::state::Snapshot;
use crate::virtual_entries::VirtualTree;
use keyway_codec::syntax::{MatchingRule, Syntax};
use keyway_schema::EntryAttributes;
use keyway_schema::operational::{
    CREATE_TIMESTAMP, ENTRY_DN, MODIFY_TIMESTAMP, STRUCTURAL_OBJECT_CLASS, SUBSCHEMA_DN,
    SUBSCHEMA_SUBENTRY,
};
use std::sync::Arc;

/// All operational attributes by `+` (RFC 3673).
const ALL_OPERATIONAL_ATTRIBUTES: &str = "1.3.6.1.4.1.4203.1.5.1";
/// `(&)` and `(|)` (RFC 4526).
const TRUE_FALSE_FILTERS: &str = "1.3.6.1.4.1.4203.1.5.3";
/// All attributes of a class by `@class` (RFC 4529).
const ATTRIBUTES_BY_CLASS: &str = "1.3.6.1.4.1.4203.1.5.2";
/// Language tags (RFC 3866).
const LANGUAGE_TAGS: &str = "1.3.6.1.4.1.4203.1.5.4";
/// The increment of modify (RFC 4525).
const MODIFY_INCREMENT: &str = "1.3.6.1.1.14";

impl Snapshot {
    /// The root DSE's attributes. `changelog` has the numbers of its first and its last change, for those who may
    /// know them.
    pub fn root_dse(
        &self,
        contexts: &[Arc<NamingContext>],
        announced: Announced,
        changelog: Option<[u64; 2]>,
    ) -> EntryAttributes {
        let own = contexts.iter().filter(|context| !context.is_system);
        let contexts: Vec<&str> = own.map(|context| context.text.as_str()).collect();
        let features = [
            ALL_OPERATIONAL_ATTRIBUTES,
            ATTRIBUTES_BY_CLASS,
            TRUE_FALSE_FILTERS,
            LANGUAGE_TAGS,
            MODIFY_INCREMENT,
        ];
        let published = |tree: VirtualTree| self.shared.provider(tree).map(|_| tree.dn());
        let config: Vec<&str> = published(VirtualTree::Config).into_iter().collect();
        let monitor: Vec<&str> = published(VirtualTree::Monitor).into_iter().collect();
        let numbers = changelog.map(|numbers| numbers.map(|number| number.to_string()));
        let changelog: Vec<&str> = numbers.iter().map(|_| VirtualTree::Changelog.dn()).collect();
        let first: Vec<&str> = numbers.iter().map(|[first, _]| first.as_str()).collect();
        let last: Vec<&str> = numbers.iter().map(|[_, last]| last.as_str()).collect();
        entry(&[
            ("objectClass", &["top"]),
            ("namingContexts", &contexts),
            ("configContext", &config),
            ("monitorContext", &monitor),
            ("changeLog", &changelog),
            ("firstChangeNumber", &first),
            ("lastChangeNumber", &last),
            ("supportedLDAPVersion", &["3"]),
            ("supportedControl", controls::SUPPORTED),
            ("supportedExtension", announced.extensions),
            ("supportedFeatures", &features),
            ("supportedSASLMechanisms", announced.sasl_mechanisms),
            (SUBSCHEMA_SUBENTRY, &[SUBSCHEMA_DN]),
            ("vendorName", &["Keyway"]),
            ("vendorVersion", &[concat!("Keyway ", env!("CARGO_PKG_VERSION"))]),
        ])
    }

    /// The subschema's attributes. Clients keep what they have read of it until its time changes
    /// (RFC 4512 § 4.2).
    pub fn subschema(&self) -> EntryAttributes {
        let mut attributes = entry(&[
            ("objectClass", &["top", "subentry", "subschema", "extensibleObject"]),
            ("cn", &["schema"]),
            ("subtreeSpecification", &["{}"]),
            (STRUCTURAL_OBJECT_CLASS, &["subentry"]),
            (SUBSCHEMA_SUBENTRY, &[SUBSCHEMA_DN]),
            (ENTRY_DN, &[SUBSCHEMA_DN]),
            (CREATE_TIMESTAMP, &[&self.schema_time]),
            (MODIFY_TIMESTAMP, &[&self.schema_time]),
        ]);
        let types = self.schema.attributes().iter();
        let types = types.map(|one| one.description().to_string().into_bytes());
        attributes.push(("attributeTypes".into(), types.collect()));
        let classes = self.schema.classes().iter();
        let classes = classes.map(|one| one.description().to_string().into_bytes());
        attributes.push(("objectClasses".into(), classes.collect()));
        let rules = MatchingRule::ALL.iter().map(|rule| rule.description().into_bytes());
        attributes.push(("matchingRules".into(), rules.collect()));
        let syntaxes = Syntax::ALL.iter().map(|syntax| syntax.description().into_bytes());
        attributes.push(("ldapSyntaxes".into(), syntaxes.collect()));
        attributes
    }
}

/// An entry of these values; attributes without any are left out.
fn entry(attributes: &[(&str, &[&str])]) -> EntryAttributes {
    let bytes = |values: &[&str]| values.iter().map(|value| value.as_bytes().to_vec()).collect();
    let there = attributes.iter().filter(|(_, values)| !values.is_empty());
    there.map(|(name, values)| ((*name).to_owned(), bytes(values))).collect()
}
