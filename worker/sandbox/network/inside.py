"""What native/door.c does in a process that enters a sandbox, in Python. The program of the door is
this file with door.py behind it.
"""

import ctypes
import fcntl
import os
import socket
import struct

NS_GET_USERNS = 0xB701  # ioctl_ns(2)
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG, SIGKILL = 1, 9
GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 1  # netdevice(7)
LOOPBACK = b"lo".ljust(16, b"\0")
LINKS = 1  # RTMGRP_LINK, rtnetlink(7)
BACKLOG = 256
WAIT_SECONDS = 2
"""What a request may wait for a namespace to be ready; all of it takes less than a millisecond."""
CONNECT_SECONDS = 0.1
"""For a connection on a loopback interface: others wait, and only a full backlog takes longer."""

_libc = ctypes.CDLL(None, use_errno=True)


def enter(pid: int, namespace: int, door: int) -> None:
    """Enters the network namespace of a process, by way of the user namespace that owns it: the
    process itself may be in one further down. Raises OSError when it is another namespace.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if os.fstat(network).st_ino != namespace:
        raise OSError("the sandbox has ended")
    owner = fcntl.ioctl(network, NS_GET_USERNS)
    checked("setns to the owner", _libc.setns(owner, CLONE_NEWUSER))
    checked("setns to the network", _libc.setns(network, CLONE_NEWNET))
    # Only now: setns(2) may reset it.
    checked("prctl", _libc.prctl(PR_SET_PDEATHSIG, SIGKILL))
    if os.getppid() != door:
        raise OSError("the door has ended")


def await_loopback() -> None:
    """bubblewrap gives the interface its address and fails where it has one, so it comes first."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as changes:
        changes.bind((0, LINKS))
        changes.settimeout(WAIT_SECONDS)
        while not loopback_flags() & IS_UP:
            changes.recv(4096)


def raise_loopback() -> None:
    """A template's child does it later only."""
    flags = (loopback_flags() | IS_UP).to_bytes(2, "little")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, SET_FLAGS, LOOPBACK + flags + bytes(22))


def loopback_flags() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return int.from_bytes(fcntl.ioctl(probe, GET_FLAGS, LOOPBACK + bytes(24))[16:18], "little")


def lead_everything_here() -> None:
    """`ip route add local 0.0.0.0/0 dev lo`, by rtnetlink(7): connections to literal addresses
    reach the same listeners, which see the address.
    """
    attribute = struct.pack("=HHi", 8, 4, socket.if_nametoindex("lo"))  # RTA_OIF
    # AF_INET, no prefix; table local, protocol boot, scope host, type local.
    route = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 255, 3, 254, 2, 0) + attribute
    # RTM_NEWROUTE; NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE.
    header = struct.pack("=IHHII", 16 + len(route), 24, 0x405, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.settimeout(WAIT_SECONDS)
        netlink.send(header + route)
        (code,) = struct.unpack_from("=i", netlink.recv(4096), 16)
    if code != 0:
        raise OSError(-code, f"route: {os.strerror(-code)}")


def listeners(request: dict) -> "list[socket.socket]":
    """The sockets of a sandbox whose command has not started."""
    raise_loopback() if request["raisesLoopback"] else await_loopback()
    lead_everything_here()
    servers = [listening(place) for place in request["tcp"]]
    return servers + [bound(place) for place in request["udp"]]


def listening(place: dict) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.bind((place["address"], place["port"]))
    made.listen(BACKLOG)
    return made


def bound(place: dict) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((place["address"], place["port"]))
    return made


def connected(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def checked(what: str, result: int) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
