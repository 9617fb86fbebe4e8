"""The user at the other end of a TCP connection from this machine, which the kernel knows (sock_diag)."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Any

SOCK_DIAG = 4
"""The netlink protocol; these constants are from linux/sock_diag.h and linux/inet_diag.h."""
BY_FAMILY = 20
REQUEST = 1
EVERY_STATE = 0xFFFFFFFF
NO_COOKIE = (0xFFFFFFFF, 0xFFFFFFFF)
ESTABLISHED = 1
HEADER = struct.Struct("=IHHII")
"""Length, type, flags, sequence, port."""
QUESTION = struct.Struct("=BBBBI")
"""Family, protocol, extensions, padding, states."""
STATE_AT = HEADER.size + 1
UID_AT = HEADER.size + 4 + 48 + 3 * 4
"""After four bytes, the connection's id, and three counters."""
ANSWER_SECONDS = 0.5
"""The kernel answers at once or not at all."""


def tcp_user(peer: Any, own: Any) -> int | None:
    """Owner of the socket whose own end is `peer` and whose other end is `own`, both as Python gives them.
    None: not on this machine (in our network namespace), or the kernel does not say."""
    if not hasattr(socket, "AF_NETLINK"):
        return None
    far, near = _address(peer), _address(own)
    if not far.is_loopback or far.version != near.version:
        return None
    try:
        answer = _ask(_question(far, peer[1], near, own[1]))
    except OSError:
        return None
    if len(answer) < UID_AT + 4 or HEADER.unpack_from(answer)[1] != BY_FAMILY:
        return None
    if answer[STATE_AT] != ESTABLISHED:  # the remains of a closed connection have no owner
        return None
    return int(struct.unpack_from("=I", answer, UID_AT)[0])


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(end: Any) -> Address:
    parsed = ipaddress.ip_address(end[0].partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed


def _question(far: Address, far_port: int, near: Address, near_port: int) -> bytes:
    family = socket.AF_INET if far.version == 4 else socket.AF_INET6
    ends = [one.packed.ljust(16, b"\0") for one in (far, near)]
    which = struct.pack(">HH", far_port, near_port) + b"".join(ends) + struct.pack("=III", 0, *NO_COOKIE)
    body = QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, EVERY_STATE) + which
    return HEADER.pack(HEADER.size + len(body), BY_FAMILY, REQUEST, 1, 0) + body


def _ask(question: bytes) -> bytes:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(question)
        return kernel.recv(4096)
