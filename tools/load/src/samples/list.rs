//! The list of them. What stands between @ is filled in.

use super::Sample;

const USUAL: Sample = Sample {
    name: "",
    slamd: "",
    about: "",
    connections: 8,
    in_flight: 1,
    needs_admin: false,
    data: "",
    pick: "",
    jobs: "",
    phases: "",
};

const FRESH: &str = "\
# Each value once, for entries that are added. Choose another beginning if entries of an earlier run
# are still there.
fresh = { counter = @FRESH@ }
";

const SEARCH: &str = "\
[[job]]
name = \"search\"
steps = [
  { search = { filter = \"@FILTER@\", attributes = [\"cn\", \"mail\"], expect = { @EXPECT@ } } },
]
";

const MODIFY: &str = "\
[[job]]
name = \"modify\"
steps = [
  { modify = { dn = \"@USER_DN@\", replace = { description = \"{random:alpha:32}\" } } },
]
";

const AUTH: &str = "\
# What an application does at a login: it finds the entry, and binds as it. The bind goes over a second
# connection, so that the first keeps who it is.
[[job]]
name = \"auth\"
steps = [
  { search = { filter = \"@FILTER@\", attributes = [\"1.1\"], expect = { entries = 1 }, take = \"dn\" } },
  { bind = { dn = \"{dn}\", password = \"@PASSWORD@\" }, on = \"second\" },
]
";

const ADD_DELETE: &str = "\
[[job]]
name = \"add-delete\"
steps = [
  { add = { dn = \"uid=load.{fresh},ou=People,@BASE@\", attributes = { objectClass = [\"top\", \"person\", \"organizationalPerson\", \"inetOrgPerson\"], uid = \"load.{fresh}\", cn = \"Load {fresh}\", sn = \"Load\", description = \"{random:alpha:64}\" } } },
  { delete = {} },                      # without a dn: the entry that was added
]
";

const SITEMINDER: &str = "\
# What an access manager does for a login: several searches, a bind, and a note of the time.
[[job]]
name = \"siteminder\"
steps = [
  { search = { filter = \"@FILTER@\", attributes = [\"1.1\"], expect = { entries = 1 }, take = \"dn\" } },
  { bind = { dn = \"{dn}\", password = \"@PASSWORD@\" }, on = \"second\" },
  { search = { base = \"{dn}\", scope = \"base\", attributes = [\"cn\", \"sn\", \"mail\"], expect = { entries = 1 } } },
  { search = { filter = \"(&(objectClass=groupOfNames)(member={dn}))\", attributes = [\"cn\"] } },
  { modify = { dn = \"{dn}\", replace = { description = \"last seen {random:numeric:14}\" } } },
]
";

const MIXED: &str = "\
[[job]]
name = \"search\"
weight = 60
steps = [{ search = { filter = \"@FILTER@\", attributes = [\"cn\", \"mail\"], expect = { entries = 1 } } }]

[[job]]
name = \"auth\"
weight = 20
steps = [
  { search = { filter = \"@FILTER@\", attributes = [\"1.1\"], expect = { entries = 1 }, take = \"dn\" } },
  { bind = { dn = \"{dn}\", password = \"@PASSWORD@\" }, on = \"second\" },
]

[[job]]
name = \"compare\"
weight = 8
steps = [{ compare = { dn = \"@USER_DN@\", attribute = \"objectClass\", value = \"person\", expect = { code = 6 } } }]

[[job]]
name = \"modify\"
weight = 10
steps = [{ modify = { dn = \"@USER_DN@\", replace = { description = \"{random:alpha:32}\" } } }]

[[job]]
name = \"add-delete\"
weight = 2
steps = [
  { add = { dn = \"uid=load.{fresh},ou=People,@BASE@\", attributes = { objectClass = [\"top\", \"person\", \"organizationalPerson\", \"inetOrgPerson\"], uid = \"load.{fresh}\", cn = \"Load {fresh}\", sn = \"Load\" } } },
  { delete = {} },
]
";

const MULTI_SEARCH: &str = "\
[[job]]
name = \"equality\"
weight = 70
steps = [{ search = { filter = \"@FILTER@\", expect = { entries = 1 } } }]

[[job]]
name = \"read\"
weight = 20
steps = [{ search = { base = \"@USER_DN@\", scope = \"base\", expect = { entries = 1 } } }]

[[job]]
name = \"substring\"
weight = 5
steps = [{ search = { filter = \"(cn={random:alpha:2}*)\", size_limit = 50, attributes = [\"cn\"], expect = { code = [0, 4] } } }]

[[job]]
name = \"presence\"
weight = 5
steps = [{ search = { filter = \"(mail=*)\", size_limit = 10, attributes = [\"mail\"], expect = { code = [0, 4] } } }]
";

/// All of them.
pub const SAMPLES: &[Sample] = &[
    Sample { name: "search", slamd: "SearchRate (BasicSearch)", about: "searches for one user by name", jobs: SEARCH, ..USUAL },
    Sample {
        name: "bind",
        slamd: "BindRate (BasicBind)",
        about: "binds as a user, whose name is known",
        jobs: "\
[[job]]
name = \"bind\"
steps = [{ bind = { dn = \"@USER_DN@\", password = \"@PASSWORD@\" } }]
",
        ..USUAL
    },
    Sample { name: "auth", slamd: "AuthRate (BasicSearchAndBind)", about: "logins: a search for the user, and a bind as it", jobs: AUTH, ..USUAL },
    Sample {
        name: "auth-weighted",
        slamd: "Weighted AuthRate",
        about: "logins of which 80 % are of a fifth of the users",
        pick: ", pick = { hot = 0.2, share = 0.8 }",
        jobs: AUTH,
        ..USUAL
    },
    Sample { name: "modify", slamd: "ModRate (BasicModify)", about: "replaces the description of a user", needs_admin: true, jobs: MODIFY, ..USUAL },
    Sample {
        name: "search-and-modify",
        slamd: "BasicSearchAndModify",
        about: "a search for a user, and a change of what was found",
        needs_admin: true,
        jobs: "\
[[job]]
name = \"search-and-modify\"
steps = [
  { search = { filter = \"@FILTER@\", attributes = [\"1.1\"], expect = { entries = 1 }, take = \"dn\" } },
  { modify = { dn = \"{dn}\", replace = { description = \"{random:alpha:32}\" } } },
]
",
        ..USUAL
    },
    Sample {
        name: "compare",
        slamd: "CompRate (Compare)",
        about: "compares a value of a user, which is right",
        needs_admin: true,
        jobs: "\
[[job]]
name = \"compare\"
steps = [{ compare = { dn = \"@USER_DN@\", attribute = \"objectClass\", value = \"person\", expect = { code = 6 } } }]
",
        ..USUAL
    },
    Sample { name: "add-delete", slamd: "AddAndDelete", about: "adds an entry, and deletes it", needs_admin: true, data: FRESH, jobs: ADD_DELETE, ..USUAL },
    Sample {
        name: "modify-dn",
        slamd: "ModDN (ModifyDN)",
        about: "adds an entry, gives it another name, and deletes it",
        needs_admin: true,
        data: FRESH,
        jobs: "\
[[job]]
name = \"modify-dn\"
steps = [
  { add = { dn = \"uid=load.{fresh},ou=People,@BASE@\", attributes = { objectClass = [\"top\", \"person\", \"organizationalPerson\", \"inetOrgPerson\"], uid = \"load.{fresh}\", cn = \"Load {fresh}\", sn = \"Load\" } } },
  { rename = { rdn = \"uid=moved.{fresh}\" } },
  { delete = {} },
]
",
        ..USUAL
    },
    Sample {
        name: "async-search",
        slamd: "AsynchronousSearch",
        about: "searches, many in flight on each connection",
        in_flight: 16,
        jobs: SEARCH,
        ..USUAL
    },
    Sample {
        name: "async-modify",
        slamd: "AsynchronousModify",
        about: "changes, many in flight on each connection",
        in_flight: 16,
        needs_admin: true,
        jobs: MODIFY,
        ..USUAL
    },
    Sample { name: "mixed", slamd: "MixedLoad", about: "searches, logins, compares, changes, new entries", needs_admin: true, data: FRESH, jobs: MIXED, ..USUAL },
    Sample { name: "multi-search", slamd: "MultiSearch", about: "searches of several kinds", jobs: MULTI_SEARCH, ..USUAL },
    Sample {
        name: "multi-search-mixed",
        slamd: "MultiSearchMixedLoad",
        about: "searches of several kinds, and changes between them",
        needs_admin: true,
        jobs: "\
[[job]]
name = \"equality\"
weight = 70
steps = [{ search = { filter = \"@FILTER@\", expect = { entries = 1 } } }]

[[job]]
name = \"substring\"
weight = 10
steps = [{ search = { filter = \"(cn={random:alpha:2}*)\", size_limit = 50, attributes = [\"cn\"], expect = { code = [0, 4] } } }]

[[job]]
name = \"modify\"
weight = 20
steps = [{ modify = { dn = \"@USER_DN@\", replace = { description = \"{random:alpha:32}\" } } }]
",
        ..USUAL
    },
    Sample { name: "many-connections", slamd: "MultiConnectionSearch", about: "searches over many connections", connections: 200, jobs: SEARCH, ..USUAL },
    Sample {
        name: "comprehensive",
        slamd: "Comprehensive",
        about: "every operation, on connections of its own where it needs that",
        needs_admin: true,
        data: FRESH,
        jobs: "\
[[job]]
name = \"bind\"
weight = 20
connections = { count = 4, in_flight = 1, bind = \"none\" }
steps = [{ bind = { dn = \"@USER_DN@\", password = \"@PASSWORD@\" } }]

[[job]]
name = \"search\"
weight = 50
steps = [{ search = { filter = \"@FILTER@\", expect = { entries = 1 } } }]

[[job]]
name = \"compare\"
weight = 10
steps = [{ compare = { dn = \"@USER_DN@\", attribute = \"objectClass\", value = \"person\", expect = { code = 6 } } }]

[[job]]
name = \"modify\"
weight = 10
steps = [{ modify = { dn = \"@USER_DN@\", replace = { description = \"{random:alpha:32}\" } } }]

[[job]]
name = \"churn\"
weight = 10
steps = [
  { add = { dn = \"uid=load.{fresh},ou=People,@BASE@\", attributes = { objectClass = [\"top\", \"person\", \"organizationalPerson\", \"inetOrgPerson\"], uid = \"load.{fresh}\", cn = \"Load {fresh}\", sn = \"Load\" } } },
  { rename = { rdn = \"uid=moved.{fresh}\" } },
  { delete = {} },
]
",
        ..USUAL
    },
    Sample {
        name: "file-search",
        slamd: "FileBasedSearch",
        about: "searches whose values are the lines of a file",
        data: "\
# A line each; what tabs part are {name.1}, {name.2}.
name = { file = \"names.txt\" }
",
        jobs: "\
[[job]]
name = \"search\"
steps = [{ search = { filter = \"(uid={name.1})\", attributes = [\"cn\"], expect = { entries = 1 } } }]
",
        ..USUAL
    },
    Sample {
        name: "file-modify",
        slamd: "FileBasedModify",
        about: "changes of the entries that a file names",
        needs_admin: true,
        data: "\
# A line each; what tabs part are {name.1}, {name.2}.
name = { file = \"names.txt\" }
",
        jobs: "\
[[job]]
name = \"modify\"
steps = [{ modify = { dn = \"uid={name.1},ou=People,@BASE@\", replace = { description = \"{random:alpha:32}\" } } }]
",
        ..USUAL
    },
    Sample {
        name: "prime",
        slamd: "PrimeWithSearches",
        about: "reads every user once, in order, to fill the server's caches",
        pick: ", pick = \"sequential\"",
        jobs: SEARCH,
        ..USUAL
    },
    Sample { name: "siteminder", slamd: "SiteMinder", about: "the logins of an access manager", needs_admin: true, jobs: SITEMINDER, ..USUAL },
    Sample {
        name: "siteminder-weighted",
        slamd: "WeightedSiteMinder",
        about: "the same, of which 80 % are of a fifth of the users",
        needs_admin: true,
        pick: ", pick = { hot = 0.2, share = 0.8 }",
        jobs: SITEMINDER,
        ..USUAL
    },
    Sample {
        name: "find",
        slamd: "the optimizing job",
        about: "the highest rate at which answers are still fast",
        jobs: SEARCH,
        phases: "\
# Each rate is held so long; the rule is what must not come true.
[[phase]]
find = { rate = [100, 100_000], until = \"p99 > 20ms or errors > 0.1%\", hold = \"@LENGTH@\" }
",
        ..USUAL
    },
];
