"""What a program writes to stdout and stderr, kept for its result. It goes on to where it went."""

import codecs
import io
import sys

# Bytes of a stream that are kept, the mark of a cut included.
_KEPT_MAX_BYTES = 64 * 1024
_CUT_MARK = "…"


class KeptOutput(io.FileIO):
    """Writes to a standard stream's descriptor, and keeps the beginning."""

    def __init__(self, stream: object) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self.name = stream.name
        self._kept = bytearray()
        self._room_bytes = _KEPT_MAX_BYTES - len(_CUT_MARK.encode())
        self._is_cut = False

    def write(self, data: object) -> "int | None":
        """As FileIO. What the descriptor has not taken is not kept."""
        written = super().write(data)
        if written and not self._is_cut:
            with memoryview(data) as view, view.cast("B") as octets:
                self._kept += octets[: min(written, self._room_bytes)]
            self._is_cut = written > self._room_bytes
            self._room_bytes -= written
        return written

    def text(self) -> str:
        """The beginning; ends in a mark where there is more."""
        # The cut may be within a character.
        text, _ = codecs.utf_8_decode(self._kept, "replace", not self._is_cut)
        return text + _CUT_MARK if self._is_cut else text


def keep(name: str) -> object:
    """Replaces `sys.stdout` or `sys.stderr`. Returns a function for its text so far."""
    replaced = getattr(sys, name)
    if replaced is None:
        return str  # The process has been started without it.
    kept = KeptOutput(replaced)
    stream = io.TextIOWrapper(
        io.BufferedWriter(kept),
        encoding=replaced.encoding,
        errors=replaced.errors,
        newline="\n",
        line_buffering=True,
    )
    stream.mode = replaced.mode
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)

    def text() -> str:
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # The reader is gone, or the program has closed the stream.
        return kept.text()

    return text
