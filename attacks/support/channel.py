"""The channel by which a tool calls others, for attacks on it: requests that no runner makes."""

import json
import select
import socket
import time

PATIENCE_SECONDS = 20
# A worker that has read nothing for so long reads no further; a careless one on a busy host may.
STALL_SECONDS = 0.5
BASELINE_STALL_SECONDS = 5.0


class Refused(OSError):
    """An error in place of a response, by its code, or a channel that is closed."""

    def __init__(self, code, text=""):
        super().__init__(code)
        self.text = text


class Channel:
    def __init__(self, stream, stall_seconds=STALL_SECONDS):
        stream.settimeout(PATIENCE_SECONDS)
        self.stream = stream
        self.answers = stream.makefile("rb")
        self.asked = 0
        self.stall_seconds = stall_seconds

    def ask(self, kind, payload):
        """The payload of the response. Raises Refused."""
        self.send(kind, payload)
        return self.answer()

    def send(self, kind, payload):
        self.asked += 1
        request = {"type": kind, "id": str(self.asked), "payload": payload}
        self.stream.sendall(json.dumps(request).encode() + b"\n")

    def answer(self):
        line = self.answers.readline()
        if not line:
            raise Refused("closed")
        answer = json.loads(line)
        if answer["type"] == "error":
            raise Refused(answer["payload"]["code"], answer["payload"]["error"])
        return answer["payload"]

    def run(self, tool, **args):
        """The structured result of a tool."""
        return self.ask("run_tool", {"id": tool, "args": args})["structured"]


def own_channel(target):
    """The channel of this call. A baseline names its own, and has no runner that knows one."""
    if "channel" in target:
        return Channel(socket.socket(fileno=target["channel"]), BASELINE_STALL_SECONDS)
    from secure_tool_runtime import gateway

    return Channel(socket.socket(fileno=gateway.of_call[0]))


def victim_socket(token):
    """Where a call that attacks look for gives its channel away: the name without its NUL."""
    return f"str-channel-{token}"


def reach_called(channel):
    """
    Calls the listed tool; its result. Raises where that fails: a sandbox that calls nothing at all
    would hold every attack.
    """
    result = channel.run("called.listed")
    if "user" not in result:
        raise RuntimeError("the listed tool does not say for whom it runs")
    return result


def ways_to_claim(channel, claim, evidence_of):
    """Ways to call the listed tool with members that a caller may not have, for `attempt`."""
    payload = {"id": "called.listed", "args": {}, **claim}
    return {
        "in the arguments": lambda: evidence_of(channel.run("called.listed", **claim)),
        # The last way, as it closes the channel.
        "in the payload": lambda: evidence_of(channel.ask("run_tool", payload)["structured"]),
    }


def pour(channel, piece, most):
    """Writes a piece again and again, and reads nothing. Says how much was taken, up to `most`."""
    stream = channel.stream
    stream.setblocking(False)
    sent, rest = 0, b""
    refusal = "nothing refused more"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sent < most and time.monotonic() < deadline:
        if not select.select([], [stream], [], channel.stall_seconds)[1]:
            refusal = f"then nothing for {channel.stall_seconds} s"
            break
        rest = rest or piece()
        try:
            count = stream.send(rest)
        except BlockingIOError:
            continue
        except OSError:
            refusal = "then the channel was closed"
            break
        sent, rest = sent + count, rest[count:]
    return {"reached": sent >= most, "evidence": f"{sent:,} bytes were taken, of {most:,}; {refusal}"}
