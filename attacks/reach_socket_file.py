"""
Talks to a Unix socket that is a file of the host, as those of container engines and of the system's
services are.
"""

import errno
import socket

from support.attempts import attempt

USUAL = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/notify",
    "/run/systemd/journal/socket",
    "/run/nscd/socket",
    "/dev/log",
    "/tmp/.X11-unix/X0",
)


def attack(target):
    def planted():
        with connected(target["socket_path"], socket.SOCK_STREAM) as connection:
            received = connection.recv(100).decode()
        return f"it says {received}" if received == target["token"] else None

    def usual(path):
        def go():
            try:
                connected(path, socket.SOCK_STREAM).close()
            except OSError as error:
                if error.errno != errno.EPROTOTYPE:
                    raise
                connected(path, socket.SOCK_DGRAM).close()
            return "takes connections"

        return go

    return attempt({"the planted socket": planted, **{path: usual(path) for path in USUAL}})


def connected(path, kind):
    connection = socket.socket(socket.AF_UNIX, kind)
    try:
        connection.settimeout(2)
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection
