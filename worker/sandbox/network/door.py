"""The door: makes sockets inside the network namespaces of sandboxes and hands them to the worker.

A socket belongs to the namespace in which it was made, whoever holds it. A process that has entered
a user namespace cannot come back, so each request is served by a fork. Requests and answers are
lines of JSON on the channel that Node opens for its children; descriptors go along in Node's own
form (door.ts). The program ends with its channel. Its argument is the user that it becomes, if any.
"""

import ctypes
import fcntl
import json
import os
import select
import socket
import struct
import sys

NS_GET_USERNS = 0xB701  # ioctl_ns(2)
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 1  # netdevice(7)
LOOPBACK = b"lo".ljust(16, b"\0")
LINKS = 1  # RTMGRP_LINK, rtnetlink(7)
BACKLOG = 256
FORK_SECONDS = 2
"""What a fork may take for all its sockets; it takes a millisecond."""
CONNECT_SECONDS = 0.1
"""For a connection on a loopback interface: others wait, and only a full backlog takes longer."""
MAX_LINE_BYTES = 64 * 1024
MAX_SOCKETS = 128

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    if len(sys.argv) > 1:
        become(int(sys.argv[1]))
    channel = Channel(socket.socket(fileno=int(os.environ["NODE_CHANNEL_FD"])))
    while (request := channel.receive()) is not None:
        try:
            descriptors = sockets_of(request)
        except OSError as error:
            channel.send({"id": request["id"], "error": str(error)})
            continue
        for index, (kind, descriptor) in enumerate(zip(kinds_of(request), descriptors)):
            channel.send_handle({"id": request["id"], "index": index}, kind, descriptor)
            os.close(descriptor)
        channel.send({"id": request["id"], "done": len(descriptors)})


def become(user: int) -> None:
    """Gives up root, and all that comes with it, for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


class Channel:
    """Lines of JSON between Node and this process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""
        self._requests: "list[dict]" = []
        self._has_ack = False

    def receive(self) -> "dict | None":
        """The next request; None when the worker is gone."""
        while not self._requests:
            if not self._read():
                return None
        return self._requests.pop(0)

    def send(self, message: dict) -> None:
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def send_handle(self, message: dict, kind: dict, descriptor: int) -> None:
        """Hands a descriptor on, and waits until Node has it: it takes one at a time."""
        line = json.dumps({"cmd": "NODE_HANDLE", "msg": message, **kind}).encode() + b"\n"
        self._has_ack = False
        socket.send_fds(self._connection, [line], [descriptor])
        while not self._has_ack:
            if not self._read():
                sys.exit()

    def _read(self) -> bool:
        data = self._connection.recv(MAX_LINE_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("cmd") == "NODE_HANDLE_ACK":
                self._has_ack = True
            elif message.get("cmd") == "NODE_HANDLE_NACK":
                sys.exit("the worker has no descriptor left")
            elif "cmd" not in message:
                self._requests.append(message)
        return data != b"" and len(self._rest) <= MAX_LINE_BYTES


def kinds_of(request: dict) -> "list[dict]":
    """What Node is to make of each descriptor."""
    servers = [{"type": "net.Server"} for _ in request["tcp"]]
    datagrams = [{"type": "dgram.Socket", "dgramType": "udp4"} for _ in request["udp"]]
    return servers + datagrams + [{"type": "net.Socket"} for _ in request["connect"]]


def sockets_of(request: dict) -> "list[int]":
    """Descriptors of the sockets in their order. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours:
        pid = os.fork()
        if pid == 0:
            serve(request, theirs)
        theirs.close()
        try:
            return received(ours, len(kinds_of(request)))
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def received(connection: socket.socket, count: int) -> "list[int]":
    if not select.select([connection], [], [], FORK_SECONDS)[0]:
        raise OSError(f"no sockets within {FORK_SECONDS} s")
    text, descriptors, _, _ = socket.recv_fds(connection, 4096, MAX_SOCKETS)
    if text == b"ok" and len(descriptors) == count:
        return descriptors
    for descriptor in descriptors:
        os.close(descriptor)
    raise OSError(text.decode(errors="replace") or "the process that enters sandboxes has ended")


def serve(request: dict, connection: socket.socket) -> None:
    """Never returns: the process of one request."""
    try:
        enter(request["pid"], request["namespace"])
        made = [connected(port) for port in request["connect"]] or listeners(request)
        socket.send_fds(connection, [b"ok"], [each.fileno() for each in made])
    except BaseException as error:
        connection.send(f"{type(error).__name__}: {error}".encode()[:1024])
    finally:
        os._exit(0)


def enter(pid: int, namespace: int) -> None:
    """Enters the network namespace of a process, by way of the user namespace that owns it: the
    process itself may be in one further down. Raises OSError when it is another namespace.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if os.fstat(network).st_ino != namespace:
        raise OSError("the sandbox has ended")
    owner = fcntl.ioctl(network, NS_GET_USERNS)
    checked("setns to the owner", _libc.setns(owner, CLONE_NEWUSER))
    checked("setns to the network", _libc.setns(network, CLONE_NEWNET))


def await_loopback() -> None:
    """bubblewrap gives the interface its address and fails where it has one, so it comes first."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as changes:
        changes.bind((0, LINKS))
        changes.settimeout(FORK_SECONDS)
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
        netlink.settimeout(FORK_SECONDS)
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


if __name__ == "__main__":
    main()
