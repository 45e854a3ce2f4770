//! The controls and extended operations that are known: those of RFCs and of OpenLDAP, 389-ds and
//! Active Directory, as far as clients use them.

use super::form::Type::{
    Boolean, Enumerated, Flags, Integer, List, One, Sequence, Text, Uuid, Wide,
};
use super::form::{Form, Type, constructed, plain, tagged};
use keyway_codec::ber::context;
use keyway_codec::extended;

/// A control or an extended operation.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) oid: &'static str,
    /// In lower case, without spaces: filters name it.
    pub(super) name: &'static str,
    pub(super) request: Form,
    pub(super) response: Form,
    /// Whether its values can hold passwords, or what is as good as one.
    pub(super) secret: bool,
}

const fn row(oid: &'static str, name: &'static str, request: Form, response: Form) -> Known {
    Known { oid, name, request, response, secret: false }
}

/// Without a value.
const fn bare(oid: &'static str, name: &'static str) -> Known {
    row(oid, name, Form::None, Form::None)
}

const fn secret(oid: &'static str, name: &'static str, request: Form, response: Form) -> Known {
    Known { oid, name, request, response, secret: true }
}

const fn element(form: Type) -> Form {
    Form::Element(form)
}

const ATTRIBUTE: Type = Sequence(&[plain("type", Text), plain("vals", List(&Text))]);

/// Simple paged results (RFC 2696).
const PAGED: Form = element(Sequence(&[plain("size", Integer), plain("cookie", Text)]));

/// Server side sorting (RFC 2891).
const SORT_KEYS: Form = element(List(&Sequence(&[
    plain("attribute", Text),
    tagged("rule", 0, Text),
    tagged("reverse", 1, Boolean),
])));
const SORT_RESULT: Form =
    element(Sequence(&[plain("result", Enumerated(RESULTS)), tagged("attribute", 0, Text)]));

/// Result codes of sorting and of lists that are scrolled (RFC 2891 § 1.2).
const RESULTS: &[(i64, &str)] = &[
    (0, "success"),
    (1, "operationsError"),
    (3, "timeLimitExceeded"),
    (8, "strongerAuthRequired"),
    (11, "adminLimitExceeded"),
    (16, "noSuchAttribute"),
    (18, "inappropriateMatching"),
    (50, "insufficientAccessRights"),
    (51, "busy"),
    (53, "unwillingToPerform"),
    (60, "sortControlMissing"),
    (61, "offsetRangeError"),
    (80, "other"),
];

/// Virtual list views (draft-ietf-ldapext-ldapv3-vlv-09).
const LIST_VIEW: Form = element(Sequence(&[
    plain("beforeCount", Integer),
    plain("afterCount", Integer),
    plain(
        "target",
        One(&[
            (
                constructed(0),
                "byOffset",
                Sequence(&[plain("offset", Integer), plain("contentCount", Integer)]),
            ),
            (context(1), "greaterThanOrEqual", Text),
        ]),
    ),
    plain("contextID", Text),
]));
const LIST_VIEW_RESULT: Form = element(Sequence(&[
    plain("targetPosition", Integer),
    plain("contentCount", Integer),
    plain("result", Enumerated(RESULTS)),
    plain("contextID", Text),
]));

/// Persistent searches (draft-ietf-ldapext-psearch-03).
const CHANGE_TYPES: &[(i64, &str)] = &[(1, "add"), (2, "delete"), (4, "modify"), (8, "modDN")];
const PERSISTENT: Form = element(Sequence(&[
    plain("changeTypes", Flags(CHANGE_TYPES)),
    plain("changesOnly", Boolean),
    plain("returnECs", Boolean),
]));
const CHANGE: Form = element(Sequence(&[
    plain("changeType", Enumerated(CHANGE_TYPES)),
    plain("previousDN", Text),
    plain("changeNumber", Integer),
]));

/// The password policy (draft-behera-ldap-password-policy-11 § 6.2).
const POLICY: Form = element(Sequence(&[
    (
        "warning",
        Some(context(0)),
        One(&[
            (context(0), "timeBeforeExpiration", Integer),
            (context(1), "graceAuthNsRemaining", Integer),
        ]),
    ),
    tagged(
        "error",
        1,
        Enumerated(&[
            (0, "passwordExpired"),
            (1, "accountLocked"),
            (2, "changeAfterReset"),
            (3, "passwordModNotAllowed"),
            (4, "mustSupplyOldPassword"),
            (5, "insufficientPasswordQuality"),
            (6, "passwordTooShort"),
            (7, "passwordTooYoung"),
            (8, "passwordInHistory"),
            (9, "passwordTooLong"),
        ]),
    ),
]));

/// Content synchronization (RFC 4533).
const SYNC: Form = element(Sequence(&[
    plain("mode", Enumerated(&[(1, "refreshOnly"), (3, "refreshAndPersist")])),
    plain("cookie", Text),
    plain("reloadHint", Boolean),
]));
const SYNC_STATE: Form = element(Sequence(&[
    plain("state", Enumerated(&[(0, "present"), (1, "add"), (2, "modify"), (3, "delete")])),
    plain("entryUUID", Uuid),
    plain("cookie", Text),
]));
const SYNC_DONE: Form =
    element(Sequence(&[plain("cookie", Text), plain("refreshDeletes", Boolean)]));
const REFRESH: Type = Sequence(&[plain("cookie", Text), plain("refreshDone", Boolean)]);
const SYNC_INFO: Form = Form::Choice(&[
    (context(0), "newcookie", Text),
    (constructed(1), "refreshDelete", REFRESH),
    (constructed(2), "refreshPresent", REFRESH),
    (
        constructed(3),
        "syncIdSet",
        Sequence(&[
            plain("cookie", Text),
            plain("refreshDeletes", Boolean),
            plain("syncUUIDs", List(&Uuid)),
        ]),
    ),
]);

const READ: Form = element(List(&Text));
const READ_RESULT: Form = Form::Choice(&[(
    0x64,
    "entry",
    Sequence(&[plain("objectName", Text), plain("attributes", List(&ATTRIBUTE))]),
)]);

/// Dereference (draft-masarati-ldap-deref-00).
const DEREFERENCE: Form =
    element(List(&Sequence(&[plain("derefAttr", Text), plain("attributes", List(&Text))])));
const DEREFERENCED: Form = element(List(&Sequence(&[
    plain("derefAttr", Text),
    plain("derefVal", Text),
    ("attrVals", Some(context(0)), List(&ATTRIBUTE)),
])));

/// Session tracking (draft-wahl-ldap-session-03).
const TRACKING: Form = element(Sequence(&[
    plain("sessionSourceIp", Text),
    plain("sessionSourceName", Text),
    plain("formatOID", Text),
    plain("sessionTrackingIdentifier", Text),
]));

/// Chaining (draft-sermersheim-ldap-chaining-02).
const CHAINING: &[(i64, &str)] = &[
    (0, "chainingPreferred"),
    (1, "chainingRequired"),
    (2, "referralsPreferred"),
    (3, "referralsRequired"),
];

const FLAGS: Form = element(Sequence(&[plain("flags", Integer)]));

/// Active Directory ([MS-ADTS] § 3.1.1.3.4.1).
const SECURITY: Form = element(Sequence(&[plain(
    "flags",
    Flags(&[(1, "owner"), (2, "group"), (4, "dacl"), (8, "sacl")]),
)]));
const DIR_SYNC: Form = element(Sequence(&[
    plain(
        "flags",
        Flags(&[
            (0x1, "objectSecurity"),
            (0x800, "ancestorsFirstOrder"),
            (0x2000, "publicDataOnly"),
            (0x8000_0000, "incrementalValues"),
        ]),
    ),
    plain("maxBytes", Integer),
    plain("cookie", Text),
]));
const DIR_SYNC_RESULT: Form = element(Sequence(&[
    plain("moreResults", Integer),
    plain("unused", Integer),
    plain("cookie", Text),
]));
const EXTENDED_DN: Form = element(Sequence(&[plain("option", Integer)]));

pub(super) const CONTROLS: [Known; 75] = [
    // RFCs and drafts
    row("1.2.840.113556.1.4.319", "paged-results", PAGED, PAGED),
    row("1.2.840.113556.1.4.473", "sort", SORT_KEYS, SORT_RESULT),
    row("1.2.840.113556.1.4.474", "sort-result", SORT_KEYS, SORT_RESULT),
    row("2.16.840.1.113730.3.4.9", "list-view", LIST_VIEW, LIST_VIEW_RESULT),
    row("2.16.840.1.113730.3.4.10", "list-view-result", LIST_VIEW, LIST_VIEW_RESULT),
    row("1.3.6.1.1.12", "assertion", element(Type::Filter), Form::Octets),
    row("1.3.6.1.1.13.1", "pre-read", READ, READ_RESULT),
    row("1.3.6.1.1.13.2", "post-read", READ, READ_RESULT),
    bare("1.3.6.1.1.22", "dont-use-copy"),
    row("1.3.6.1.1.21.2", "transaction", Form::Raw, Form::Raw),
    row("1.2.826.0.1.3344810.2.3", "matched-values", element(List(&Type::Filter)), Form::Octets),
    bare("2.16.840.1.113730.3.4.2", "manage-dsa-it"),
    row("2.16.840.1.113730.3.4.3", "persistent-search", PERSISTENT, Form::Octets),
    row("2.16.840.1.113730.3.4.7", "entry-change", CHANGE, CHANGE),
    row("2.16.840.1.113730.3.4.4", "password-expired", Form::Raw, Form::Raw),
    row("2.16.840.1.113730.3.4.5", "password-expiring", Form::Raw, Form::Raw),
    row(
        "2.16.840.1.113730.3.4.12",
        "proxied-dn",
        element(Sequence(&[plain("dn", Text)])),
        Form::Octets,
    ),
    row("2.16.840.1.113730.3.4.18", "proxied-authorization", Form::Raw, Form::Octets),
    bare("2.16.840.1.113730.3.4.16", "identity-wanted"),
    row("2.16.840.1.113730.3.4.15", "identity", Form::Raw, Form::Raw),
    row("1.3.6.1.4.1.42.2.27.8.5.1", "password-policy", Form::None, POLICY),
    row("1.3.6.1.4.1.4203.1.9.1.1", "sync", SYNC, Form::Octets),
    row("1.3.6.1.4.1.4203.1.9.1.2", "sync-state", SYNC_STATE, SYNC_STATE),
    row("1.3.6.1.4.1.4203.1.9.1.3", "sync-done", SYNC_DONE, SYNC_DONE),
    row("1.3.6.1.4.1.4203.1.10.1", "subentries", element(Boolean), Form::Octets),
    bare("1.3.6.1.4.1.4203.1.10.2", "no-op"),
    row("1.3.6.1.4.1.21008.108.63.1", "session-tracking", TRACKING, TRACKING),
    // OpenLDAP
    bare("1.3.6.1.4.1.4203.666.5.2", "no-op-openldap"),
    bare("1.3.6.1.4.1.4203.666.5.12", "relax"),
    row(
        "1.3.6.1.4.1.4203.666.5.14",
        "value-sort",
        element(Sequence(&[plain("sort", Boolean)])),
        Form::Octets,
    ),
    bare("1.3.6.1.4.1.4203.666.5.15", "dont-use-copy-openldap"),
    row("1.3.6.1.4.1.4203.666.5.16", "dereference", DEREFERENCE, DEREFERENCED),
    row("1.3.6.1.4.1.4203.666.5.17", "what-failed", Form::None, Form::Octets),
    row(
        "1.3.6.1.4.1.4203.666.11.3",
        "chaining",
        element(Sequence(&[
            plain("resolveBehavior", Enumerated(CHAINING)),
            plain("continuationBehavior", Enumerated(CHAINING)),
        ])),
        Form::Octets,
    ),
    // 389-ds
    row("2.16.840.1.113730.3.4.13", "replication-update", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.4.14", "on-backend", element(Text), Form::Octets),
    bare("2.16.840.1.113730.3.4.17", "real-attributes-only"),
    bare("2.16.840.1.113730.3.4.19", "virtual-attributes-only"),
    bare("2.16.840.1.113730.3.4.20", "one-backend"),
    row("1.3.6.1.4.1.42.2.27.9.5.2", "effective-rights", Form::Raw, Form::Octets),
    row(
        "1.3.6.1.4.1.42.2.27.9.5.8",
        "account-usable",
        Form::None,
        Form::Choice(&[
            (context(0), "secondsBeforeExpiration", Integer),
            (
                constructed(1),
                "notUsable",
                Sequence(&[
                    tagged("inactive", 0, Boolean),
                    tagged("reset", 1, Boolean),
                    tagged("expired", 2, Boolean),
                    tagged("remainingGrace", 3, Integer),
                    tagged("secondsBeforeUnlock", 4, Integer),
                ]),
            ),
        ]),
    ),
    // Its octets are one-time codes.
    secret("2.16.840.1.113730.3.8.10.6", "ipa-otp-sync", Form::Octets, Form::Octets),
    // Active Directory
    row("1.2.840.113556.1.4.841", "dir-sync", DIR_SYNC, DIR_SYNC_RESULT),
    row("1.2.840.113556.1.4.801", "security-descriptor", SECURITY, Form::Octets),
    row("1.2.840.113556.1.4.529", "extended-dn", EXTENDED_DN, Form::Octets),
    bare("1.2.840.113556.1.4.417", "show-deleted"),
    bare("1.2.840.113556.1.4.2064", "show-recycled"),
    bare("1.2.840.113556.1.4.2065", "show-deactivated-link"),
    bare("1.2.840.113556.1.4.528", "notification"),
    bare("1.2.840.113556.1.4.619", "lazy-commit"),
    bare("1.2.840.113556.1.4.805", "tree-delete"),
    bare("1.2.840.113556.1.4.1339", "domain-scope"),
    row(
        "1.2.840.113556.1.4.1340",
        "search-options",
        element(Sequence(&[plain("flags", Flags(&[(1, "domainScope"), (2, "phantomRoot")]))])),
        Form::Octets,
    ),
    bare("1.2.840.113556.1.4.1413", "permissive-modify"),
    row(
        "1.2.840.113556.1.4.1338",
        "verify-name",
        element(Sequence(&[plain("flags", Integer), plain("serverName", Wide)])),
        Form::Octets,
    ),
    row(
        "1.2.840.113556.1.4.1504",
        "attribute-scoped-query",
        element(Sequence(&[plain("sourceAttribute", Text)])),
        element(Sequence(&[plain("searchResult", Enumerated(RESULTS))])),
    ),
    row("1.2.840.113556.1.4.521", "cross-domain-move", Form::Raw, Form::Octets),
    row("1.2.840.113556.1.4.970", "search-statistics", FLAGS, Form::Octets),
    row(
        "1.2.840.113556.1.4.1852",
        "quota",
        element(Sequence(&[plain("querySID", Text)])),
        Form::Octets,
    ),
    bare("1.2.840.113556.1.4.1907", "shutdown-notify"),
    bare("1.2.840.113556.1.4.1948", "range-retrieval-no-error"),
    bare("1.2.840.113556.1.4.1974", "force-update"),
    bare("1.2.840.113556.1.4.1341", "rodc-promotion"),
    row(
        "1.2.840.113556.1.4.2026",
        "input-dn",
        element(Sequence(&[plain("inputDN", Text)])),
        Form::Octets,
    ),
    row("1.2.840.113556.1.4.2066", "policy-hints-former", FLAGS, Form::Octets),
    row("1.2.840.113556.1.4.2239", "policy-hints", FLAGS, Form::Octets),
    row(
        "1.2.840.113556.1.4.2204",
        "tree-delete-counted",
        element(Sequence(&[plain("count", Integer)])),
        Form::Octets,
    ),
    row("1.2.840.113556.1.4.2205", "update-statistics", Form::Octets, Form::Octets),
    row(
        "1.2.840.113556.1.4.2211",
        "expected-entries",
        element(Sequence(&[
            plain("searchEntriesMin", Integer),
            plain("searchEntriesMax", Integer),
        ])),
        Form::Octets,
    ),
    row("1.2.840.113556.1.4.2206", "search-hints", Form::Octets, Form::Octets),
    row("1.2.840.113556.1.4.2255", "set-owner", Form::Octets, Form::Octets),
    bare("1.2.840.113556.1.4.2256", "bypass-quota"),
    bare("1.2.840.113556.1.4.2309", "link-ttl"),
    row(
        "1.2.840.113556.1.4.2330",
        "correlation-id",
        element(Sequence(&[plain("id", Text)])),
        Form::Octets,
    ),
    bare("1.2.840.113556.1.4.802", "range-option"),
];

const PASSWORD: Form = element(Sequence(&[
    tagged("userIdentity", 0, Text),
    tagged("oldPasswd", 1, Text),
    tagged("newPasswd", 2, Text),
]));
const PASSWORD_RESULT: Form = element(Sequence(&[tagged("genPasswd", 0, Text)]));

/// Dynamic entries (RFC 2589 § 4).
const REFRESH_TTL: Form =
    element(Sequence(&[tagged("entryName", 0, Text), tagged("requestTtl", 1, Integer)]));
const REFRESHED_TTL: Form = element(Sequence(&[tagged("responseTtl", 1, Integer)]));

/// Transactions (RFC 5805).
const END_TRANSACTION: Form =
    element(Sequence(&[plain("commit", Boolean), plain("identifier", Text)]));
const ENDED_TRANSACTION: Form =
    element(Sequence(&[plain("messageID", Integer), plain("updatesControls", List(&Text))]));

pub(super) const OPERATIONS: [Known; 35] = [
    // RFCs
    bare(extended::START_TLS, "starttls"),
    row(extended::WHO_AM_I, "whoami", Form::None, Form::Raw),
    secret(extended::PASSWORD_MODIFY, "passwd", PASSWORD, PASSWORD_RESULT),
    row(extended::CANCEL, "cancel", element(Sequence(&[plain("cancelID", Integer)])), Form::None),
    bare(extended::NOTICE_OF_DISCONNECTION, "disconnection"),
    row("1.3.6.1.1.21.1", "txn-start", Form::None, Form::Raw),
    row("1.3.6.1.1.21.3", "txn-end", END_TRANSACTION, ENDED_TRANSACTION),
    row("1.3.6.1.1.21.4", "txn-aborted", Form::Raw, Form::Raw),
    row("1.3.6.1.4.1.1466.101.119.1", "refresh", REFRESH_TTL, REFRESHED_TTL),
    row(
        "1.3.6.1.1.19",
        "turn",
        element(Sequence(&[plain("mutual", Boolean), plain("identifier", Text)])),
        Form::None,
    ),
    row(
        "1.3.6.1.1.17.1",
        "lburp-start",
        element(Sequence(&[plain("updateStyleOID", Text)])),
        element(Sequence(&[plain("maxOperations", Integer)])),
    ),
    row(
        "1.3.6.1.1.17.3",
        "lburp-end",
        element(Sequence(&[plain("sequenceNumber", Integer)])),
        Form::Octets,
    ),
    secret("1.3.6.1.1.17.5", "lburp-update", Form::Octets, Form::Octets),
    row("1.3.6.1.4.1.4203.1.9.1.4", "sync-info", SYNC_INFO, SYNC_INFO),
    // OpenLDAP
    secret(
        "1.3.6.1.4.1.4203.666.6.5",
        "verify-credentials",
        element(Sequence(&[
            tagged("cookie", 0, Text),
            plain("name", Text),
            plain("authentication", One(&[(context(0), "simple", Text)])),
        ])),
        Form::Octets,
    ),
    // 389-ds and FreeIPA
    row("2.16.840.1.113730.3.5.3", "replication-start-former", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.5.4", "replication-answer", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.5.5", "replication-end", Form::Octets, Form::Octets),
    secret("2.16.840.1.113730.3.5.6", "replication-entry", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.5.7", "bulk-import-start", Form::Raw, Form::Octets),
    bare("2.16.840.1.113730.3.5.8", "bulk-import-done"),
    row(
        "2.16.840.1.113730.3.5.12",
        "replication-start",
        element(Sequence(&[plain("protocolOID", Text), plain("replicatedTree", Text)])),
        Form::Octets,
    ),
    row("2.16.840.1.113730.3.6.5", "clean-ruv", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.6.6", "clean-ruv-abort", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.6.7", "clean-ruv-maximum", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.6.8", "clean-ruv-status", Form::Octets, Form::Octets),
    secret("2.16.840.1.113730.3.8.10.1", "ipa-set-keytab", Form::Octets, Form::Octets),
    secret("2.16.840.1.113730.3.8.10.3", "ipa-enroll", Form::Octets, Form::Octets),
    row("2.16.840.1.113730.3.8.10.4", "ipa-trusted-names", Form::Octets, Form::Octets),
    secret("2.16.840.1.113730.3.8.10.5", "ipa-get-keytab", Form::Octets, Form::Octets),
    // Active Directory
    bare("1.2.840.113556.1.4.1781", "fast-bind"),
    secret("1.2.840.113556.1.4.2212", "batch", Form::Octets, Form::Octets),
    // Others
    row("1.3.6.1.4.1.26027.1.6.2", "connection-id", Form::None, element(Integer)),
    row(
        "1.3.6.1.4.1.26027.1.6.1",
        "password-policy-state",
        element(Sequence(&[plain("targetUser", Text)])),
        Form::Octets,
    ),
    secret("1.3.6.1.4.1.26027.1.6.3", "symmetric-key", Form::Octets, Form::Octets),
];
