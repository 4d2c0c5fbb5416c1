"""What a program writes to stdout and stderr, kept for its result. It goes on to where it went."""

import codecs
import io
import sys

# Bytes of a stream that are kept, the mark of a cut included.
_KEPT_MAX_BYTES = 64 * 1024
_CUT_MARK = "…"


class KeptOutput:
    """A stream in place of `sys.stdout` or `sys.stderr`, to the same descriptor."""

    def __init__(self, name: str) -> None:
        self._name = name
        # None where the process has been started without it.
        replaced = getattr(sys, name)
        self._raw = None if replaced is None else _KeepingFile(replaced)
        self._stream = None if replaced is None else _text_stream(self._raw, replaced)

    def install(self) -> None:
        """Gives it to the program."""
        setattr(sys, self._name, self._stream)
        setattr(sys, f"__{self._name}__", self._stream)

    def text(self) -> str:
        """The beginning of what was written; ends in a mark where there is more."""
        if self._stream is None:
            return ""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            pass  # The reader is gone, or the program has closed the stream.
        return self._raw.text()


class _KeepingFile(io.FileIO):
    """Writes to the descriptor of a stream, and keeps the beginning."""

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
        # The cut may be within a character.
        text, _ = codecs.utf_8_decode(self._kept, "replace", not self._is_cut)
        return text + _CUT_MARK if self._is_cut else text


def _text_stream(raw: _KeepingFile, replaced: object) -> io.TextIOWrapper:
    stream = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=replaced.encoding,
        errors=replaced.errors,
        newline="\n",
        line_buffering=True,
    )
    stream.mode = replaced.mode
    return stream
