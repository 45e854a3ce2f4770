"""python-ldap (libldap) does a day's work against a running server."""

import os

import ldap
import ldap.modlist
from ldap.controls import SimplePagedResultsControl
from ldap.schema import SubSchema

BASE = "dc=example,dc=com"
PEOPLE = f"ou=People,{BASE}"


def connect(url, start_tls=False):
    connection = ldap.initialize(url)
    connection.set_option(ldap.OPT_X_TLS_CACERTFILE, os.environ["LDAP_CA"])
    connection.set_option(ldap.OPT_X_TLS_REQUIRE_CERT, ldap.OPT_X_TLS_DEMAND)
    connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
    connection.set_option(ldap.OPT_NETWORK_TIMEOUT, 20)
    connection.protocol_version = 3
    if start_tls:
        connection.start_tls_s()
    return connection


def expect(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected of {call.__name__}{arguments}")


def admin(url, start_tls=False):
    connection = connect(url, start_tls)
    connection.simple_bind_s(os.environ["LDAP_ADMIN"], os.environ["LDAP_PASSWORD"])
    return connection


def schema_is_readable(c):
    dn = c.search_subschemasubentry_s()
    schema = SubSchema(c.read_subschemasubentry_s(dn))
    person = schema.get_obj(ldap.schema.ObjectClass, "inetOrgPerson")
    must, may = schema.attribute_types(["inetOrgPerson"], raise_keyerror=1)
    assert person.sup == ("organizationalPerson",), person.sup
    assert "sn" in {name for attribute in must.values() for name in attribute.names}
    assert "mail" in {name for attribute in may.values() for name in attribute.names}


def entries_come_and_go(c):
    dn = f"uid=pl,{PEOPLE}"
    entry = {
        "objectClass": [b"inetOrgPerson"],
        "uid": [b"pl"],
        "cn": ["Ünïcödé Näme".encode()],
        "sn": [b"Name"],
        "jpegPhoto": [bytes(range(256)) * 40],
    }
    c.add_s(dn, ldap.modlist.addModlist(entry))
    (_, found), = c.search_s(BASE, ldap.SCOPE_SUBTREE, "(cn=ünïcödé  NÄME)")
    assert found["jpegPhoto"] == entry["jpegPhoto"]
    assert found["cn"] == entry["cn"]
    changed = dict(entry, sn=[b"Other"], title=[b"One", b"Two"])
    c.modify_s(dn, ldap.modlist.modifyModlist(entry, changed))
    assert c.compare_s(dn, "title", b"two")
    expect(ldap.TYPE_OR_VALUE_EXISTS, c.modify_s, dn, [(ldap.MOD_ADD, "title", [b"ONE"])])
    expect(ldap.NO_SUCH_ATTRIBUTE, c.modify_s, dn, [(ldap.MOD_DELETE, "mobile", None)])
    expect(ldap.OBJECT_CLASS_VIOLATION, c.modify_s, dn, [(ldap.MOD_DELETE, "sn", None)])
    expect(ldap.NOT_ALLOWED_ON_RDN, c.modify_s, dn, [(ldap.MOD_DELETE, "uid", [b"pl"])])
    c.rename_s(dn, "uid=pl2", f"ou=Groups,{BASE}", 1)
    c.delete_s(f"uid=pl2,ou=Groups,{BASE}")
    expect(ldap.NO_SUCH_OBJECT, c.delete_s, dn)


def operational_attributes(c):
    (_, entry), = c.search_s(PEOPLE, ldap.SCOPE_BASE, attrlist=["+"])
    for name in ("entryUUID", "createTimestamp", "creatorsName", "modifyTimestamp", "entryDN"):
        assert name in entry, (name, entry)
    assert entry["hasSubordinates"] == [b"TRUE"]
    assert entry["numSubordinates"] == [b"30"], entry["numSubordinates"]
    assert entry["structuralObjectClass"] == [b"organizationalUnit"]
    (_, entry), = c.search_s(PEOPLE, ldap.SCOPE_BASE)
    assert "entryUUID" not in entry


def many_in_flight(c):
    ids = [c.search(BASE, ldap.SCOPE_SUBTREE, "(objectClass=person)", ["1.1"]) for _ in range(50)]
    for message in reversed(ids):
        _, entries = c.result(message)
        assert len(entries) == 30, len(entries)


def pages(c):
    control = SimplePagedResultsControl(True, size=7, cookie="")
    seen = []
    while True:
        message = c.search_ext(
            BASE, ldap.SCOPE_SUBTREE, "(objectClass=person)", ["1.1"], serverctrls=[control]
        )
        _, entries, _, controls = c.result3(message)
        assert len(entries) <= 7
        seen += [dn for dn, _ in entries]
        control.cookie = controls[0].cookie
        if not control.cookie:
            break
    assert len(seen) == len(set(seen)) == 30
    control.cookie = b"forged"
    message = c.search_ext(BASE, ldap.SCOPE_SUBTREE, "(objectClass=person)", serverctrls=[control])
    expect(ldap.LDAPError, c.result3, message)


def passwords(c):
    dn = f"uid=pw,{PEOPLE}"
    entry = {"objectClass": [b"account", b"simpleSecurityObject"], "uid": [b"pw"]}
    c.add_s(dn, ldap.modlist.addModlist(dict(entry, userPassword=[b"old secret"])))
    user = connect(os.environ["LDAPS_URL"])
    user.simple_bind_s(dn, "old secret")
    user.passwd_s(dn, "old secret", "new secret")
    user = connect(os.environ["LDAP_URL"], start_tls=True)
    expect(ldap.INVALID_CREDENTIALS, user.simple_bind_s, dn, "old secret")
    user.simple_bind_s(dn, "new secret")
    assert user.whoami_s() == f"dn:{dn}"
    plain = connect(os.environ["LDAPS_URL"])
    expect(ldap.INVALID_CREDENTIALS, plain.simple_bind_s, f"uid=nobody,{PEOPLE}", "x")


def values_that_are_none(_):
    c = admin(os.environ["LDAPS_URL"])
    search = (BASE, ldap.SCOPE_BASE)
    for option, wrong in ((ldap.OPT_DEREF, 7), (ldap.OPT_TIMELIMIT, -5)):
        before = c.get_option(option)
        c.set_option(option, wrong)
        expect(ldap.PROTOCOL_ERROR, c.search_s, *search)
        c.set_option(option, before)
        assert len(c.search_s(*search)) == 1, "the same connection goes on"
    expect(ldap.PROTOCOL_ERROR, c.modify_s, BASE, [(9, "description", [b"x"])])
    assert c.whoami_s().startswith("dn:")


c = admin(os.environ["LDAPS_URL"])
for check in (
    schema_is_readable,
    entries_come_and_go,
    operational_attributes,
    many_in_flight,
    pages,
    passwords,
    values_that_are_none,
):
    check(c)
    print(check.__name__)
c.unbind_s()
assert admin(os.environ["LDAP_URL"], start_tls=True).whoami_s().startswith("dn:")
print("all well")
