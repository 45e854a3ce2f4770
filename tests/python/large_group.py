"""python-ldap changes a group of 100,000 members by a few of them, and by all."""

import os

import ldap

BASE = "dc=example,dc=com"
GROUP = f"cn=all,{BASE}"
MEMBERS = 100_000


def person(uid):
    return f"uid={uid},ou=People,{BASE}"


def value(uid):
    return person(uid).encode()


def numbered(n):
    return f"user{n:06}"


def expect(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


def modify(c, *changes):
    c.modify_s(GROUP, [(operation, "member", values) for operation, values in changes])


def members(c, wanted=("member",)):
    (_, entry), = c.search_s(GROUP, ldap.SCOPE_BASE, "(objectClass=*)", list(wanted))
    return entry.get("member", [])


def groups(c, uid):
    (_, entry), = c.search_s(person(uid), ldap.SCOPE_BASE, "(objectClass=*)", ["memberOf"])
    return entry.get("memberOf", [])


def is_member(c, dn):
    found = c.search_s(GROUP, ldap.SCOPE_BASE, f"(member={dn})", ["1.1"])
    by_index = c.search_s(BASE, ldap.SCOPE_SUBTREE, f"(member={dn})", ["1.1"])
    absent = c.search_s(GROUP, ldap.SCOPE_BASE, f"(!(member={dn}))", ["1.1"])
    assert found == by_index and bool(found) != bool(absent), dn
    assert c.compare_s(GROUP, "member", dn) == bool(found), dn
    return bool(found)


def one_comes_and_goes(c):
    assert len(members(c)) == MEMBERS and members(c, ["cn"]) == []
    assert is_member(c, person(numbered(4711)).upper()) and not is_member(c, person("ann"))
    assert groups(c, "ann") == []
    modify(c, (ldap.MOD_ADD, [value("ann")]))
    assert is_member(c, person("ann")) and groups(c, "ann") == [GROUP.encode()]
    expect(ldap.TYPE_OR_VALUE_EXISTS, modify, c, (ldap.MOD_ADD, [value("ann").upper()]))
    expect(ldap.TYPE_OR_VALUE_EXISTS, modify, c, (ldap.MOD_ADD, [value("new"), value("NEW")]))
    modify(c, (ldap.MOD_DELETE, [value("ann").upper()]))
    assert not is_member(c, person("ann")) and groups(c, "ann") == []
    expect(ldap.NO_SUCH_ATTRIBUTE, modify, c, (ldap.MOD_DELETE, [value("ann")]))
    # What is refused has done nothing, also what stands before it.
    both = [(ldap.MOD_DELETE, [value(numbered(1))]), (ldap.MOD_DELETE, [value("ann")])]
    expect(ldap.NO_SUCH_ATTRIBUTE, modify, c, *both)
    assert is_member(c, person(numbered(1))) and len(members(c)) == MEMBERS


def many_at_once(c):
    many = [value(f"many{n}") for n in range(1000)]
    modify(c, (ldap.MOD_ADD, many))
    assert len(members(c)) == MEMBERS + 1000
    modify(c, (ldap.MOD_DELETE, many[:500]), (ldap.MOD_DELETE, many[500:]))
    assert len(members(c)) == MEMBERS


def members_are_renamed_and_deleted(c):
    assert groups(c, numbered(7)) == [GROUP.encode()]
    c.rename_s(person(numbered(7)), "uid=seven", delold=1)
    assert is_member(c, person("seven")) and not is_member(c, person(numbered(7)))
    assert groups(c, "seven") == [GROUP.encode()]
    c.delete_s(person("seven"))
    assert not is_member(c, person("seven")) and len(members(c)) == MEMBERS - 1
    modify(c, (ldap.MOD_ADD, [value(numbered(7))]))


def all_at_once(c):
    all_members = members(c)
    assert len(set(all_members)) == MEMBERS
    modify(c, (ldap.MOD_REPLACE, all_members[:-1] + [value("ann")]))
    assert groups(c, "ann") == [GROUP.encode()] and len(members(c)) == MEMBERS
    assert not is_member(c, all_members[-1].decode())
    modify(c, (ldap.MOD_REPLACE, [value("ann")]))
    assert members(c) == [value("ann")]
    modify(c, (ldap.MOD_DELETE, None))
    assert members(c) == [] and groups(c, "ann") == []
    expect(ldap.NO_SUCH_ATTRIBUTE, modify, c, (ldap.MOD_DELETE, None))
    expect(ldap.NO_SUCH_ATTRIBUTE, c.compare_s, GROUP, "member", person("ann"))
    c.rename_s(GROUP, "cn=Everybody", delold=1)
    c.rename_s(f"cn=Everybody,{BASE}", "cn=all", delold=1)
    c.delete_s(GROUP)
    # All of it in one message.
    c.add_s(GROUP, [("objectClass", [b"groupOfNames"]), ("member", all_members)])
    assert sorted(members(c)) == sorted(all_members)
    modify(c, (ldap.MOD_ADD, [value("ann")]))
    assert groups(c, "ann") == [GROUP.encode()] and len(members(c)) == MEMBERS + 1


connection = ldap.initialize(os.environ["LDAP_URL"])
connection.simple_bind_s(os.environ["LDAP_ADMIN"], os.environ["LDAP_PASSWORD"])
one_comes_and_goes(connection)
many_at_once(connection)
members_are_renamed_and_deleted(connection)
all_at_once(connection)
connection.unbind_s()
print("all well")
