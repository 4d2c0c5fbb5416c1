"""The socket to the worker of a runner that waits for its call. See tool-runner/PROTOCOL.md,
"Parked".
"""

import os

from ..json_codec import encode

_CALL = b"call "
_LINE_MAX_BYTES = 32
_DONE = b'{"done":true}\n'


class WakeChannel:
    """The runner's end. No program inherits it. The tool may close it, as it may any descriptor."""

    __slots__ = ("descriptor", "_identity")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._identity = _identity_of(descriptor)

    def report(self, message: dict) -> None:
        """Sends the worker a line."""
        os.write(self.descriptor, encode(message) + b"\n")

    def take_call(self) -> "bytes | None":
        """Waits for the call and returns its description; None where there will be none."""
        received = b""
        while b"\n" not in received:
            if len(received) >= _LINE_MAX_BYTES:
                return None
            piece = os.read(self.descriptor, 64 * 1024)
            if not piece:
                return None
            received += piece
        line, _, description = received.partition(b"\n")
        if not line.startswith(_CALL) or not line[len(_CALL) :].isdigit():
            return None
        missing = int(line[len(_CALL) :]) - len(description)
        pieces = [description]
        while missing > 0:
            piece = os.read(self.descriptor, missing)
            if not piece:
                return None
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def give(self, document: bytes) -> bool:
        """Sends the document of the call's answer. False where there is no worker to take it."""
        return self._send(b'{"result":%d}\n%b' % (len(document), document))

    def finish(self) -> None:
        """Has the worker end this process, which has nothing left to do but to exit with 0.
        Returns where there is no worker to do it.
        """
        if self._send(_DONE):
            try:
                os.read(self.descriptor, 1)
            except OSError:
                pass  # The worker is gone, too.

    def _send(self, content: bytes) -> bool:
        # Behind the number may be a file of the tool's by now.
        if self._identity is None or _identity_of(self.descriptor) != self._identity:
            return False
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
        except OSError:
            return False
        return True


class RehearsalChannel:
    """A `WakeChannel` to itself, for rehearsals: what is written to it is read from it."""

    def __enter__(self) -> "RehearsalChannel":
        self._reading, self._writing = map(WakeChannel, os.pipe())
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reading.descriptor)
        os.close(self._writing.descriptor)

    def take(self, description: bytes) -> "bytes | None":
        os.write(self._writing.descriptor, b"%b%d\n%b" % (_CALL, len(description), description))
        return self._reading.take_call()

    def give(self, document: bytes) -> None:
        self._writing.give(document)

    def finish(self) -> None:
        self._writing.finish()


def _identity_of(descriptor: int) -> "tuple[int, int] | None":
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
