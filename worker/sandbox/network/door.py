"""The door: makes sockets inside the network namespaces of sandboxes and hands them to the worker.

A socket belongs to the namespace in which it was made, whoever holds it. A process that has entered
a user namespace cannot come back, so each request has a process of its own: by native code
(native/door.c), or by a fork where that cannot be loaded. Requests and answers are lines of JSON on
the channel that Node opens for its children; descriptors go along in Node's own form (door.ts). The
program ends with its channel. Its arguments are the native code, and the user that it becomes, if
any.
"""

import array
import ctypes
import json
import os
import select
import socket
import struct
import sys

MAX_LINE_BYTES = 64 * 1024
MAX_SOCKETS = 128
MAX_UNCONFIRMED = 16
"""Descriptors on their way: they count against a limit of all processes of the user, unix(7)."""


def main() -> None:
    library, *user = sys.argv[1:]
    sockets_of = opener(library)
    if user:
        become(int(user[0]))
    channel = Channel(socket.socket(fileno=int(os.environ["NODE_CHANNEL_FD"])))
    while (request := channel.receive()) is not None:
        kinds = kinds_of(request)
        try:
            if len(kinds) > MAX_SOCKETS:
                raise OSError("too many sockets")
            descriptors = sockets_of(request)
        except Exception as error:
            channel.send({"id": request["id"], "error": str(error)})
            continue
        for index, (kind, descriptor) in enumerate(zip(kinds, descriptors)):
            channel.send_handle(request["id"], index, kind, descriptor)
            os.close(descriptor)
        if not descriptors:
            channel.send({"id": request["id"]})


def become(user: int) -> None:
    """Gives up root, and all that comes with it, for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


class Channel:
    """Lines of JSON between Node and this process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""
        self._requests: "list[dict]" = []
        self._unconfirmed = 0

    def receive(self) -> "dict | None":
        """The next request; None when the worker is gone."""
        while not self._requests:
            if not self._read():
                return None
        return self._requests.pop(0)

    def send(self, message: dict) -> None:
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def send_handle(self, request: int, index: int, kind: bytes, descriptor: int) -> None:
        """Hands a descriptor on. More can wait meanwhile: no read(2) of Node's goes beyond the
        first message that has a descriptor, so it finds each with its own.
        """
        while self._unconfirmed == MAX_UNCONFIRMED:
            if not self._read():
                sys.exit()
        self._unconfirmed += 1
        line = b'{"cmd":"NODE_HANDLE",%b,"msg":{"id":%d,"index":%d}}\n' % (kind, request, index)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
        self._connection.sendmsg([line], [rights])

    def _read(self) -> bool:
        data = self._connection.recv(MAX_LINE_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("cmd") == "NODE_HANDLE_ACK":
                self._unconfirmed -= 1
            elif message.get("cmd") == "NODE_HANDLE_NACK":
                sys.exit("the worker has no descriptor left")
            elif "cmd" not in message:
                self._requests.append(message)
        return data != b"" and len(self._rest) <= MAX_LINE_BYTES


def kinds_of(request: dict) -> "list[bytes]":
    """What Node is to make of each descriptor."""
    servers = [b'"type":"net.Server"'] * len(request["tcp"])
    datagrams = [b'"type":"dgram.Socket","dgramType":"udp4"'] * len(request["udp"])
    return servers + datagrams + [b'"type":"net.Socket"'] * len(request["connect"])


def opener(library: str):
    """A function that makes the sockets of a request and returns their descriptors in their order.
    It raises OSError. Both ways check and make the same.
    """
    try:
        open_sockets = ctypes.PyDLL(library).open_sockets
    except OSError:
        return sockets_by_fork
    open_sockets.restype = ctypes.c_char_p
    return lambda request: sockets_by_native(open_sockets, request)


class Request(ctypes.Structure):
    """As `struct request` of native/door.c."""

    _fields_ = [
        ("namespace", ctypes.c_ulonglong),
        ("path", ctypes.c_char_p),
        ("places", ctypes.c_char_p),
        *((name, ctypes.c_int) for name in ("servers", "datagrams", "connections")),
        *((name, ctypes.c_int) for name in ("raises", "backlog", "wait_seconds", "connect_ms")),
        ("error", ctypes.c_int),
        ("sockets", ctypes.c_int * MAX_SOCKETS),
    ]


def sockets_by_native(open_sockets, request: dict) -> "list[int]":
    connections = [{"address": "127.0.0.1", "port": port} for port in request["connect"]]
    places = [*request["tcp"], *request["udp"], *connections]
    wanted = Request(
        request["namespace"],
        b"/proc/%d/ns/net" % request["pid"],
        b"".join(packed(place) for place in places),
        *(len(request[kind]) for kind in ("tcp", "udp", "connect")),
        *(request["raisesLoopback"], BACKLOG, WAIT_SECONDS, int(CONNECT_SECONDS * 1000)),
    )
    failed = open_sockets(ctypes.byref(wanted))
    if failed is None:
        return wanted.sockets[: len(places)]
    step, number = failed.decode(), wanted.error
    error = OSError(number, f"{step}: {os.strerror(number)}") if number else OSError(step)
    raise OSError(described(error))


def packed(place: dict) -> bytes:
    """As struct sockaddr_in, ip(7)."""
    family = struct.pack("=H", socket.AF_INET)
    return family + struct.pack("!H4s8x", place["port"], socket.inet_aton(place["address"]))


def sockets_by_fork(request: dict) -> "list[int]":
    ours, theirs = socket.socketpair()
    with ours:
        door, pid = os.getpid(), os.fork()
        if pid == 0:
            serve(request, theirs, door)
        theirs.close()
        try:
            return received(ours, len(kinds_of(request)))
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def received(connection: socket.socket, count: int) -> "list[int]":
    if not select.select([connection], [], [], WAIT_SECONDS)[0]:
        raise OSError(f"no sockets within {WAIT_SECONDS} s")
    text, descriptors, _, _ = socket.recv_fds(connection, 4096, MAX_SOCKETS)
    if text == b"ok" and len(descriptors) == count:
        return descriptors
    for descriptor in descriptors:
        os.close(descriptor)
    raise OSError(text.decode(errors="replace") or "the process that enters sandboxes has ended")


def serve(request: dict, connection: socket.socket, door: int) -> None:
    """Never returns: the process of one request."""
    try:
        enter(request["pid"], request["namespace"], door)
        made = [connected(port) for port in request["connect"]] or listeners(request)
        socket.send_fds(connection, [b"ok"], [each.fileno() for each in made])
    except BaseException as error:
        connection.send(described(error).encode()[:1024])
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
