//! The list of samples. The words between @ are filled in.

use super::{Job, Sample};

const USUAL: Sample = Sample {
    name: "",
    slamd: "",
    about: "",
    connections: 8,
    in_flight: 1,
    needs_admin: false,
    data: "",
    pick: "",
    jobs: &[],
    phases: "",
};

const JOB: Job = Job { name: "", about: "", weight: 0, connections: "", steps: &[] };

/// A step or two that several samples have.
mod step {
    pub const SEARCH: &str = r#"{ search = { filter = "@FILTER@", attributes = ["cn", "mail"], expect = { @EXPECT@ } } }"#;
    pub const EQUALITY: &str = r#"{ search = { filter = "@FILTER@", expect = { @EXPECT@ } } }"#;
    pub const FIND_NAME: &str = r#"{ search = { filter = "@FILTER@", attributes = ["1.1"], expect = { entries = 1 }, take = "dn" } }"#;
    pub const BIND_FOUND: &str = r#"{ bind = { dn = "{dn}", @CREDENTIAL@ }, on = "second" }"#;
    pub const BIND: &str = r#"{ bind = { dn = "@USER_DN@", @CREDENTIAL@ } }"#;
    pub const READ: &str =
        r#"{ search = { base = "@USER_DN@", scope = "base", expect = { entries = 1 } } }"#;
    pub const SUBSTRING: &str = r#"{ search = { filter = "(cn={random:alpha:2}*)", size_limit = 50, attributes = ["cn"], expect = { code = [0, 4] } } }"#;
    pub const PRESENCE: &str = r#"{ search = { filter = "(mail=*)", size_limit = 10, attributes = ["mail"], expect = { code = [0, 4] } } }"#;
    pub const COMPARE: &str = r#"{ compare = { dn = "@USER_DN@", attribute = "objectClass", value = "person", expect = { code = 6 } } }"#;
    pub const MODIFY: &str =
        r#"{ modify = { dn = "@USER_DN@", replace = { description = "{random:alpha:32}" } } }"#;
    pub const MODIFY_FOUND: &str =
        r#"{ modify = { dn = "{dn}", replace = { description = "{random:alpha:32}" } } }"#;
    /// The entry of a template, if there is one.
    pub const ADD: &str = "@ADD@";
    pub const RENAME: &str = r#"{ rename = { rdn = "uid=moved.{fresh}" } }"#;
    /// Without a dn: the entry that was added.
    pub const DELETE: &str = "{ delete = {} }";
}

use step::*;

/// Each value once, for entries that are added.
const FRESH: &str = "@FRESH_DATA@";

const NAMES: &str = "\
# A line each; what tabs part are {name.1}, {name.2}.
name = { file = \"names.txt\" }
";

const SEARCHES: &[Job] = &[Job { name: "search", steps: &[SEARCH], ..JOB }];
const MODIFIES: &[Job] = &[Job { name: "modify", steps: &[MODIFY], ..JOB }];

const AUTH: &[Job] = &[Job {
    name: "auth",
    about: "\
# What an application does at a login: it finds the entry, and binds as it. The bind goes over a second
# connection, so that the first keeps who it is.
",
    steps: &[FIND_NAME, BIND_FOUND],
    ..JOB
}];

const SITEMINDER: &[Job] = &[Job {
    name: "siteminder",
    about: "# What an access manager does for a login: several searches, a bind, and a note of the time.\n",
    steps: &[
        FIND_NAME,
        BIND_FOUND,
        r#"{ search = { base = "{dn}", scope = "base", attributes = ["cn", "sn", "mail"], expect = { entries = 1 } } }"#,
        r#"{ search = { filter = "(&(objectClass=groupOfNames)(member={dn}))", attributes = ["cn"] } }"#,
        r#"{ modify = { dn = "{dn}", replace = { description = "last seen {random:numeric:14}" } } }"#,
    ],
    ..JOB
}];

/// Some users more often than others.
const HOT: &str = ", pick = { hot = 0.2, share = 0.8 }";

/// All of them.
pub const SAMPLES: &[Sample] = &[
    Sample {
        name: "search",
        slamd: "SearchRate (BasicSearch)",
        about: "searches for one user by name",
        jobs: SEARCHES,
        ..USUAL
    },
    Sample {
        name: "bind",
        slamd: "BindRate (BasicBind)",
        about: "binds as a user, whose name is known",
        jobs: &[Job { name: "bind", steps: &[BIND], ..JOB }],
        ..USUAL
    },
    Sample {
        name: "auth",
        slamd: "AuthRate (BasicSearchAndBind)",
        about: "logins: a search for the user, and a bind as it",
        jobs: AUTH,
        ..USUAL
    },
    Sample {
        name: "auth-weighted",
        slamd: "Weighted AuthRate",
        about: "logins of which 80 % are of a fifth of the users",
        pick: HOT,
        jobs: AUTH,
        ..USUAL
    },
    Sample {
        name: "modify",
        slamd: "ModRate (BasicModify)",
        about: "replaces the description of a user",
        needs_admin: true,
        jobs: MODIFIES,
        ..USUAL
    },
    Sample {
        name: "search-and-modify",
        slamd: "BasicSearchAndModify",
        about: "a search for a user, and a change of what was found",
        needs_admin: true,
        jobs: &[Job { name: "search-and-modify", steps: &[FIND_NAME, MODIFY_FOUND], ..JOB }],
        ..USUAL
    },
    Sample {
        name: "compare",
        slamd: "CompRate (Compare)",
        about: "compares a value of a user, which is right",
        needs_admin: true,
        jobs: &[Job { name: "compare", steps: &[COMPARE], ..JOB }],
        ..USUAL
    },
    Sample {
        name: "add-delete",
        slamd: "AddAndDelete",
        about: "adds an entry, and deletes it",
        needs_admin: true,
        data: FRESH,
        jobs: &[Job { name: "add-delete", steps: &[ADD, DELETE], ..JOB }],
        ..USUAL
    },
    Sample {
        name: "modify-dn",
        slamd: "ModDN (ModifyDN)",
        about: "adds an entry, gives it another name, and deletes it",
        needs_admin: true,
        data: FRESH,
        jobs: &[Job { name: "modify-dn", steps: &[ADD, RENAME, DELETE], ..JOB }],
        ..USUAL
    },
    Sample {
        name: "async-search",
        slamd: "AsynchronousSearch",
        about: "searches, many in flight on each connection",
        in_flight: 16,
        jobs: SEARCHES,
        ..USUAL
    },
    Sample {
        name: "async-modify",
        slamd: "AsynchronousModify",
        about: "changes, many in flight on each connection",
        in_flight: 16,
        needs_admin: true,
        jobs: MODIFIES,
        ..USUAL
    },
    Sample {
        name: "mixed",
        slamd: "MixedLoad",
        about: "searches, logins, compares, changes, new entries",
        needs_admin: true,
        data: FRESH,
        jobs: &[
            Job { name: "search", weight: 60, steps: &[SEARCH], ..JOB },
            Job { name: "auth", weight: 20, steps: &[FIND_NAME, BIND_FOUND], ..JOB },
            Job { name: "compare", weight: 8, steps: &[COMPARE], ..JOB },
            Job { name: "modify", weight: 10, steps: &[MODIFY], ..JOB },
            Job { name: "add-delete", weight: 2, steps: &[ADD, DELETE], ..JOB },
        ],
        ..USUAL
    },
    Sample {
        name: "multi-search",
        slamd: "MultiSearch",
        about: "searches of several kinds",
        jobs: &[
            Job { name: "equality", weight: 70, steps: &[EQUALITY], ..JOB },
            Job { name: "read", weight: 20, steps: &[READ], ..JOB },
            Job { name: "substring", weight: 5, steps: &[SUBSTRING], ..JOB },
            Job { name: "presence", weight: 5, steps: &[PRESENCE], ..JOB },
        ],
        ..USUAL
    },
    Sample {
        name: "multi-search-mixed",
        slamd: "MultiSearchMixedLoad",
        about: "searches of several kinds, and changes between them",
        needs_admin: true,
        jobs: &[
            Job { name: "equality", weight: 70, steps: &[EQUALITY], ..JOB },
            Job { name: "substring", weight: 10, steps: &[SUBSTRING], ..JOB },
            Job { name: "modify", weight: 20, steps: &[MODIFY], ..JOB },
        ],
        ..USUAL
    },
    Sample {
        name: "many-connections",
        slamd: "MultiConnectionSearch",
        about: "searches over many connections",
        connections: 200,
        jobs: SEARCHES,
        ..USUAL
    },
    Sample {
        name: "comprehensive",
        slamd: "Comprehensive",
        about: "every operation, on connections of its own where it needs that",
        needs_admin: true,
        data: FRESH,
        jobs: &[
            Job {
                name: "bind",
                weight: 20,
                connections: r#"{ count = 4, in_flight = 1, bind = "none" }"#,
                steps: &[BIND],
                ..JOB
            },
            Job { name: "search", weight: 50, steps: &[EQUALITY], ..JOB },
            Job { name: "compare", weight: 10, steps: &[COMPARE], ..JOB },
            Job { name: "modify", weight: 10, steps: &[MODIFY], ..JOB },
            Job { name: "churn", weight: 10, steps: &[ADD, RENAME, DELETE], ..JOB },
        ],
        ..USUAL
    },
    Sample {
        name: "file-search",
        slamd: "FileBasedSearch",
        about: "searches whose values are the lines of a file",
        data: NAMES,
        jobs: &[Job {
            name: "search",
            steps: &[
                r#"{ search = { filter = "(uid={name.1})", attributes = ["cn"], expect = { entries = 1 } } }"#,
            ],
            ..JOB
        }],
        ..USUAL
    },
    Sample {
        name: "file-modify",
        slamd: "FileBasedModify",
        about: "changes of the entries that a file names",
        needs_admin: true,
        data: NAMES,
        jobs: &[Job {
            name: "modify",
            steps: &[
                r#"{ modify = { dn = "uid={name.1},ou=People,@BASE@", replace = { description = "{random:alpha:32}" } } }"#,
            ],
            ..JOB
        }],
        ..USUAL
    },
    Sample {
        name: "prime",
        slamd: "PrimeWithSearches",
        about: "reads every user once, in order, to fill the server's caches",
        pick: ", pick = \"sequential\"",
        jobs: SEARCHES,
        ..USUAL
    },
    Sample {
        name: "siteminder",
        slamd: "SiteMinder",
        about: "the logins of an access manager",
        needs_admin: true,
        jobs: SITEMINDER,
        ..USUAL
    },
    Sample {
        name: "siteminder-weighted",
        slamd: "WeightedSiteMinder",
        about: "the same, of which 80 % are of a fifth of the users",
        needs_admin: true,
        pick: HOT,
        jobs: SITEMINDER,
        ..USUAL
    },
    Sample {
        name: "find",
        slamd: "the optimizing job",
        about: "the highest rate at which answers are still fast",
        jobs: SEARCHES,
        phases: "\
# Each rate is held so long; the rule is what must not come true.
[[phase]]
find = { rate = [100, 100_000], until = \"p99 > 20ms or errors > 0.1%\", hold = \"@LENGTH@\" }
",
        ..USUAL
    },
];
