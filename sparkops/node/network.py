"""Network facts, read from the kernel (netlink, /sys, /proc) without running `ip`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# linux/rtnetlink.h, linux/netlink.h, linux/if_addr.h
RTM_GETADDR, NLMSG_DONE, NLMSG_ERROR = 22, 3, 2
NLM_F_DUMP_REQUEST = 0x301
IFA_ADDRESS, IFA_LOCAL, IFA_BROADCAST = 1, 2, 4
SCOPES = {0: "global", 200: "site", 253: "link", 254: "host"}
IFF_UP = 1


class Address:
    """An address of an interface; `broadcast` is "" where there is none."""

    def __init__(self, index: int, prefix: int, scope: int, address: str, broadcast: str) -> None:
        self.index = index
        self.prefix = prefix
        self.scope = SCOPES.get(scope, "global")
        self.address = address
        self.broadcast = broadcast


def facts(read: Callable[[str], str]) -> dict[str, Any]:
    """Interfaces, their addresses and the default routes; `read` gives a file's text or ""."""
    # The C part alone: the socket module costs 3 ms of CPU more.
    import _socket

    found = parse(dump(_socket), _socket)
    v4 = [address for address in found if "." in address.address]
    v6 = [address for address in found if ":" in address.address]
    names = sorted(os.listdir("/sys/class/net"))
    devices = {name: interface(name, read, v4, v6) for name in names if os.path.isdir(f"/sys/class/net/{name}")}
    return {
        "interfaces": list(devices),
        **{name.replace("-", "_").replace(":", "_").replace(".", "_"): device for name, device in devices.items()},
        "all_ipv4_addresses": [address.address for address in v4 if not address.address.startswith("127.")],
        "all_ipv6_addresses": [address.address for address in v6 if address.address != "::1"],
        "default_ipv4": default(route4(read("/proc/net/route")), devices, "ipv4"),
        "default_ipv6": default(route6(read("/proc/net/ipv6_route")), devices, "ipv6"),
    }


def dump(socket: Any) -> bytes:
    """The kernel's answer to RTM_GETADDR; b"" where netlink is refused (a sandbox)."""
    from struct import pack

    request = pack("=IHHII", 24, RTM_GETADDR, NLM_F_DUMP_REQUEST, 1, 0) + pack("=BBBBI", 0, 0, 0, 0, 0)
    answer = b""
    try:
        link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    except OSError:
        return b""
    try:
        link.send(request)
        while not any(kind in (NLMSG_DONE, NLMSG_ERROR) for kind, _ in messages(answer)):
            answer += link.recv(65536)
    finally:
        link.close()
    return answer


def messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    """The type and the payload of each netlink message."""
    from struct import unpack_from

    at = 0
    while at + 16 <= len(answer):
        size, kind = unpack_from("=IH", answer, at)
        yield kind, answer[at + 16 : at + size]
        at += size + 3 & ~3


def parse(answer: bytes, socket: Any) -> list[Address]:
    """The addresses in a netlink answer, in the kernel's order."""
    from struct import unpack_from

    found = []
    for kind, body in messages(answer):
        if kind in (NLMSG_DONE, NLMSG_ERROR):
            continue
        family, prefix, _, scope, index = unpack_from("=BBBBI", body)
        if family not in (socket.AF_INET, socket.AF_INET6):
            continue
        values = {}
        at = 8
        while at + 4 <= len(body):
            size, attribute = unpack_from("=HH", body, at)
            values[attribute] = body[at + 4 : at + size]
            at += size + 3 & ~3
        local = values.get(IFA_LOCAL) or values[IFA_ADDRESS]
        broadcast = socket.inet_ntop(family, values[IFA_BROADCAST]) if IFA_BROADCAST in values else ""
        found.append(Address(index, prefix, scope, socket.inet_ntop(family, local), broadcast))
    return found


def interface(name: str, read: Callable[[str], str], v4: list[Address], v6: list[Address]) -> dict[str, Any]:
    """One interface's fact; `ipv4` is its first address, more of them are `ipv4_secondaries`."""

    def attribute(file: str) -> str:
        return read(f"/sys/class/net/{name}/{file}").strip()

    index = int(attribute("ifindex") or 0)
    four = [ipv4(address) for address in v4 if address.index == index]
    six = [
        {"address": address.address, "prefix": str(address.prefix), "scope": address.scope}
        for address in v6
        if address.index == index
    ]
    # The loopback's operstate is "unknown".
    up = attribute("operstate") == "up" or (name == "lo" and int(attribute("flags") or "0", 16) & IFF_UP)
    device: dict[str, Any] = {
        "device": name,
        "active": bool(up),
        "mtu": int(attribute("mtu") or 0),
        "type": kind(name, attribute("type")),
    }
    if name != "lo" and attribute("address"):
        device["macaddress"] = attribute("address")
    if four:
        device["ipv4"] = four[0]
    if four[1:]:
        device["ipv4_secondaries"] = four[1:]
    if six:
        device["ipv6"] = six
    return device


def kind(name: str, arphrd: str) -> str:
    """Ansible's word for an interface's type; `arphrd` is /sys/class/net/NAME/type."""
    if os.path.exists(f"/sys/class/net/{name}/bridge"):
        return "bridge"
    if os.path.exists(f"/sys/class/net/{name}/bonding"):
        return "bonding"
    return {"1": "ether", "32": "infiniband", "65534": "tunnel", "772": "loopback"}.get(arphrd, "unknown")


def ipv4(address: Address) -> dict[str, str]:
    """An IPv4 address with its netmask and network."""
    number = int.from_bytes(bytes(map(int, address.address.split("."))), "big")
    mask = 0xFFFFFFFF << 32 - address.prefix & 0xFFFFFFFF
    return {
        "address": address.address,
        "broadcast": address.broadcast,
        "netmask": dotted(mask),
        "network": dotted(number & mask),
        "prefix": str(address.prefix),
    }


def dotted(number: int) -> str:
    """A 32-bit number as a.b.c.d."""
    return ".".join(map(str, number.to_bytes(4, "big")))


def route4(table: str) -> tuple[str, str]:
    """The interface and the gateway of the default route with the lowest metric, from /proc/net/route."""
    routes = [line.split() for line in table.splitlines()[1:]]
    default = [words for words in routes if words[1] == "00000000" and words[7] == "00000000" and int(words[3], 16) & 1]
    if not default:
        return "", ""
    best = min(default, key=lambda words: int(words[6]))
    # The address is written as the machine's own integer.
    from sys import byteorder

    return best[0], ".".join(map(str, int(best[2], 16).to_bytes(4, byteorder)))


def route6(table: str) -> tuple[str, str]:
    """The same for /proc/net/ipv6_route; routes of `lo` are the kernel's refusals."""
    routes = [line.split() for line in table.splitlines()]
    default = [words for words in routes if words[0] == "0" * 32 and words[1] == "00" and words[9] != "lo"]
    if not default:
        return "", ""
    best = min(default, key=lambda words: int(words[5], 16))
    import _socket

    return best[9], _socket.inet_ntop(_socket.AF_INET6, bytes.fromhex(best[4]))


def default(route: tuple[str, str], devices: dict[str, dict[str, Any]], family: str) -> dict[str, Any]:
    """ansible_default_ipv4 or _ipv6: the default route's interface and its first global address; {} without one."""
    name, gateway = route
    device = devices.get(name, {})
    listed = device.get(family, [])
    addresses = [listed] if isinstance(listed, dict) else [one for one in listed if one["scope"] == "global"]
    if not addresses:
        return {}
    shared = {key: device[key] for key in ("macaddress", "mtu", "type") if key in device}
    alias = {"alias": name} if family == "ipv4" else {}
    return {**addresses[0], **shared, **alias, "gateway": gateway, "interface": name}
