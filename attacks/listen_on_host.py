"""
Listens where others of the host could connect to. A taken port tells that it is the host's: its
service has it.
"""

import errno
import socket


def attack(target):
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", target["loopback_port"]))
            return {"reached": False, "evidence": "the port of the host's service is free: this is another network"}
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return {"reached": False, "evidence": f"bind: {error.strerror}"}
    with socket.socket() as own:
        own.bind(("0.0.0.0", 0))
        own.listen()
        return {"reached": True, "evidence": f"listens on port {own.getsockname()[1]} of the host"}
