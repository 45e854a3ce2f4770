"""ldap3 (pure Python, a codec of its own) does a day's work against a running server."""

import os
import ssl

from ldap3 import ALL, BASE, LEVEL, MODIFY_ADD, MODIFY_INCREMENT, MODIFY_REPLACE, SASL, SUBTREE
from ldap3 import Connection, Server, Tls
from ldap3.utils.dn import parse_dn, safe_dn

SUFFIX = "dc=example,dc=com"
PEOPLE = f"ou=People,{SUFFIX}"
ADMIN, PASSWORD = os.environ["LDAP_ADMIN"], os.environ["LDAP_PASSWORD"]


def server(url):
    tls = Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=os.environ["LDAP_CA"])
    return Server(url, tls=tls, get_info=ALL, connect_timeout=20)


def connect(url="LDAPS_URL", user=ADMIN, password=PASSWORD, **options):
    return Connection(server(os.environ[url]), user, password, receive_timeout=60, **options)


def code(connection):
    return connection.result["description"]


def bound(**options):
    connection = connect(**options)
    assert connection.bind(), connection.result
    return connection


def schema_and_root(c):
    assert SUFFIX in c.server.info.naming_contexts
    assert "inetOrgPerson" in c.server.schema.object_classes
    assert c.server.schema.attribute_types["mail"].equality


def sasl_plain():
    credentials = (None, ADMIN, PASSWORD)
    c = connect(
        user=None,
        password=None,
        authentication=SASL,
        sasl_mechanism="PLAIN",
        sasl_credentials=credentials,
    )
    assert c.bind(), c.result
    assert c.extend.standard.who_am_i() == f"dn:{ADMIN}"


def entries(c):
    dn = f"uid=l3,{PEOPLE}"
    classes = ["inetOrgPerson", "posixAccount"]
    attributes = {
        "cn": "L Three",
        "sn": "Three",
        "uidNumber": 5000,
        "gidNumber": 5000,
        "homeDirectory": "/home/l3",
        "description;lang-de": "Grüße",
    }
    assert c.add(dn, classes, attributes), c.result
    assert c.modify(dn, {"uidNumber": [(MODIFY_INCREMENT, [5])]}), c.result
    assert c.search(SUFFIX, "(uidNumber=5005)", attributes=["uidNumber", "description"])
    entry = c.response[0]["attributes"]
    assert entry["uidNumber"] == 5005, entry
    # A filter on the type finds its sub-types with options (RFC 4512 § 2.5).
    assert c.search(SUFFIX, "(description=grüsse)", attributes=["1.1"]), c.result
    assert c.modify(dn, {"title": [(MODIFY_ADD, ["a"]), (MODIFY_REPLACE, ["b"])]}), c.result
    assert not c.modify(dn, {"uidNumber": [(MODIFY_ADD, [1])]})
    assert code(c) == "constraintViolation", c.result
    assert c.modify_dn(dn, "uid=l3b", delete_old_dn=False), c.result
    assert c.search(PEOPLE, "(&(uid=l3)(uid=l3b))", LEVEL, attributes=["uid"]), c.result
    assert c.delete(f"uid=l3b,{PEOPLE}"), c.result


def equals_signs(c):
    # It cuts names at every equals sign that is not escaped as a pair of digits.
    written = f"uid=a\\3Db=,{PEOPLE}"
    for dn in (f"uid=a=b=,{PEOPLE}", f"uid=a\\=b\\=,{PEOPLE}", written):
        assert c.add(dn, ["account"]), c.result
        assert c.search(PEOPLE, "(uid=a=b=)", attributes=["entryDN"]), c.result
        found = c.response[0]
        assert found["dn"] == f"uid=a\\3Db\\3D,{PEOPLE}", found["dn"]
        assert parse_dn(found["dn"])[0][:2] == ("uid", "a\\3Db\\3D"), parse_dn(found["dn"])
        assert safe_dn(found["dn"]).lower() == found["dn"].lower()
        assert found["attributes"]["entryDN"] == found["dn"], found
        assert c.search(found["dn"], "(objectClass=*)", BASE), c.result
        assert c.search(PEOPLE, "(entryDN=uid=A\\5c=b\\5c3d,ou=people,dc=example,dc=com)"), c.result
        assert c.delete(found["dn"]), c.result


def filters(_):
    # Its own schema check would keep unknown attributes from us.
    c = bound(check_names=False)
    count = lambda f: (c.search(PEOPLE, f, LEVEL, attributes=["1.1"]), len(c.response))[1]
    everyone = count("(objectClass=inetOrgPerson)")
    assert everyone == 30
    assert count("(!(objectClass=inetOrgPerson))") == 0
    assert count("(uid=*)") == 30 and count("(name=*)") == 30
    assert count("(2.5.4.4=*)") == 30, "an OID names its attribute"
    assert count("(noSuchAttribute=x)") == 0 and count("(!(noSuchAttribute=x))") == 0
    assert count("(mail=*@EXAMPLE.com)") == 30
    assert count("(cn:caseIgnoreMatch:=nobody at all)") == 0
    assert count("(ou:dn:=people)") == 30
    assert count("(|(uid=*)(cn=*))") == 30


def pages(c):
    found = c.extend.standard.paged_search(
        SUFFIX, "(objectClass=person)", SUBTREE, attributes=["uid"], paged_size=4, generator=True
    )
    assert len({entry["dn"] for entry in found}) == 30


def wrong(_):
    c = bound(check_names=False)
    assert not c.search("not a dn", "(cn=x)") and code(c) == "invalidDNSyntax", c.result
    assert not c.search(f"ou=None,{SUFFIX}", "(cn=x)") and code(c) == "noSuchObject", c.result
    assert c.result["dn"].lower() == SUFFIX
    assert not connect(password="wrong").bind()
    anonymous = connect(user=None, password=None)
    anonymous.bind()
    anonymous.search(SUFFIX, "(objectClass=*)", BASE)
    assert not anonymous.response or "attributes" not in anonymous.response[0]


def start_tls():
    c = connect("LDAP_URL")
    assert c.start_tls(), c.result
    assert c.bind(), c.result
    assert c.tls_started


def password_modify(c):
    dn = f"uid=l3pw,{PEOPLE}"
    assert c.add(dn, ["account", "simpleSecurityObject"], {"userPassword": "one secret"}), c.result
    user = connect(user=dn, password="one secret")
    assert user.bind(), user.result
    assert user.extend.standard.modify_password(dn, "one secret", "two secret"), user.result
    assert not connect(user=dn, password="one secret").bind()
    assert connect(user=dn, password="two secret").bind()


c = bound()
for check in (schema_and_root, entries, equals_signs, filters, pages, wrong, password_modify):
    check(c)
    print(check.__name__)
sasl_plain()
start_tls()
c.unbind()
print("all well")
