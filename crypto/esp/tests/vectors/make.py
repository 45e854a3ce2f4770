#!/usr/bin/env python3
"""Makes scapy.json: ESP packets of Scapy, of every suite, mode and mixture of families, with and without extended
numbers. Needs `pip install scapy cryptography`; run it in this folder. It gives equal output each time."""

import json
import random

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw

RANDOM = random.Random(4303)

# Our name, Scapy's cipher and MAC, and the bytes of key, salt, MAC's key and initialisation vector.
SUITES = [
    ("aes-128-gcm", "AES-GCM", "NULL", 16, 4, 0, 8),
    ("aes-256-gcm", "AES-GCM", "NULL", 32, 4, 0, 8),
    ("chacha20-poly1305", "CHACHA20-POLY1305", "NULL", 32, 4, 0, 8),
    ("aes-128-cbc-hmac-sha-256", "AES-CBC", "SHA2-256-128", 16, 0, 32, 16),
    ("aes-256-cbc-hmac-sha-256", "AES-CBC", "SHA2-256-128", 32, 0, 32, 16),
    ("aes-128-cbc-hmac-sha-1", "AES-CBC", "HMAC-SHA1-96", 16, 0, 20, 16),
    ("aes-256-cbc-hmac-sha-1", "AES-CBC", "HMAC-SHA1-96", 32, 0, 20, 16),
]

OUTER = {
    4: IP(src="192.0.2.1", dst="198.51.100.1"),
    6: IPv6(src="2001:db8:1::1", dst="2001:db8:2::1"),
}


def inner(family, length, mode):
    """A packet as transport mode gives it back: without an identification, with DF and 64 hops."""
    payload = Raw(RANDOM.randbytes(length))
    outer = OUTER[family]
    if family == 4:
        ends = dict(src=outer.src, dst=outer.dst) if mode == "transport" else dict(src="10.1.0.5", dst="10.2.0.7")
        header = IP(id=0, flags="DF", ttl=64, **ends)
        uppers = [UDP(sport=5353, dport=53), TCP(sport=40000, dport=443, flags="PA"), ICMP()]
    else:
        ends = dict(src=outer.src, dst=outer.dst) if mode == "transport" else dict(src="fd00:1::5", dst="fd00:2::7")
        header = IPv6(hlim=64, **ends)
        uppers = [UDP(sport=5353, dport=53), TCP(sport=40000, dport=443, flags="PA"), ICMPv6EchoRequest()]
    return header / RANDOM.choice(uppers) / payload


def case(suite, mode, inner_family, outer_family, esn, number, length):
    name, cipher, mac, key_bytes, salt_bytes, mac_key_bytes, iv_bytes = suite
    key, salt = RANDOM.randbytes(key_bytes), RANDOM.randbytes(salt_bytes)
    mac_key, iv = RANDOM.randbytes(mac_key_bytes), RANDOM.randbytes(iv_bytes)
    spi = RANDOM.randrange(256, 1 << 32)
    association = SecurityAssociation(
        ESP,
        spi=spi,
        crypt_algo=cipher,
        crypt_key=key + salt,
        auth_algo=mac,
        auth_key=mac_key or None,
        tunnel_header=OUTER[outer_family] if mode == "tunnel" else None,
        esn_en=esn,
        esn=number >> 32,
    )
    packet = inner(inner_family, length, mode)
    packet = packet.__class__(bytes(packet))
    sealed = association.encrypt(packet, seq_num=number & 0xFFFFFFFF, iv=iv)
    return {
        "suite": name,
        "mode": mode,
        "esn": esn,
        "spi": spi,
        "number": number,
        "key": (key + mac_key).hex(),
        "salt": salt.hex() or "00000000",
        "iv": iv.hex(),
        "outer": [OUTER[outer_family].src, OUTER[outer_family].dst],
        "inner": bytes(packet).hex(),
        "esp": bytes(sealed[ESP]).hex(),
    }


def cases():
    for suite in SUITES:
        for esn in (False, True):
            ways = [("tunnel", inner, outer) for inner in (4, 6) for outer in (4, 6)]
            ways += [("transport", 4, 4), ("transport", 6, 6)]
            for mode, inner_family, outer_family in ways:
                for length in (0, RANDOM.randrange(1, 64), RANDOM.randrange(64, 700)):
                    number = RANDOM.randrange(1, 1 << 32)
                    if esn:
                        number += RANDOM.choice([0, 1, 2, 1 << 20, (1 << 32) - 2]) << 32
                    yield case(suite, mode, inner_family, outer_family, esn, number, length)


if __name__ == "__main__":
    with open("scapy.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases()) + "\n]\n")
