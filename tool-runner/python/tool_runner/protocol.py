"""
The two files of the seam: runner_args.json comes in, result.json goes out. See
tool-runner/PROTOCOL.md.
"""

import os

from .json_codec import decode, encode

ERROR_MAX_CHARACTERS = 4000
# errno.EMFILE, without importing errno.
_EMFILE = 24
_PIECE_BYTES = 65_536

_REQUIRED = ("module", "result_file", "output_dir")
# What a member is when it is absent or null; its type is the type it must have.
_DEFAULTS = {
    "module": "",
    "function": "",
    "class_name": "",
    "args": {},
    "tool_config": {},
    "artifact_paths": {},
    "artifact_metadata": {},
    "status_pipe": "",
    "result_file": "",
    "output_dir": "",
    "user_id": "",
    "session_id": "",
    "app_name": "",
    "task_id": "",
    "tools_dir": "",
    "max_result_bytes": 10_000_000,
    "load_only": False,
}


class BadArguments(Exception):
    """
    The arguments do not fit the function. The text names function and argument and may be
    published.
    """


class Failure(Exception):
    """
    A call that ends in an error answer: a code of the protocol, a text that may be published, the
    limit it met.
    """

    def __init__(self, code: str, text: str, limit: "str | None" = None) -> None:
        super().__init__(text)
        self.code = code
        self.limit = limit


class Call:
    """One call as runner_args.json describes it; the attributes are the file's members."""

    __slots__ = tuple(_DEFAULTS)

    def __init__(self, members: dict) -> None:
        for name, default in _DEFAULTS.items():
            value = members.get(name)
            if value is None:
                value = default
            if type(value) is not type(default):
                raise ValueError(f'"{name}" must be {_json_name(default)}, not {_json_name(value)}')
            if name in _REQUIRED and not value:
                raise ValueError(f'"{name}" is missing')
            setattr(self, name, value)
        if not self.function and not self.class_name:
            raise ValueError('"function" and "class_name" are missing')


def take_call(path: str) -> Call:
    """Reads the description of the call and removes the file, whose tool_config may hold secrets.

    Raises OSError when it cannot be read and ValueError when it does not describe a call.
    """
    document = _read(path)
    try:
        os.unlink(path)
    except OSError:
        pass  # A read-only directory: then it is the worker that removes it.
    members = decode(document)
    if not isinstance(members, dict):
        raise ValueError(f"the file must hold an object, not {_json_name(members)}")
    return Call(members)


def result_document(result: dict, outputs: dict, max_bytes: int) -> bytes:
    """The document for a call that succeeded.

    Raises Failure for a result that JSON cannot express or that is larger than `max_bytes`.
    """
    try:
        document = encode({"result": result, "outputs": outputs})
    except RecursionError:
        raise Failure("EXECUTION_ERROR", "The tool's result is nested too deeply for JSON") from None
    except MemoryError:
        raise Failure("EXECUTION_ERROR", "Out of memory while writing the tool's result", "memory") from None
    except BaseException as error:
        # Objects inside the result are written by their __str__, which is the tool's code.
        raise Failure("EXECUTION_ERROR", f"The tool's result is not JSON: {describe(error)}") from None
    if len(document) > max_bytes:
        raise Failure(
            "RESOURCE_EXHAUSTED",
            f"The tool's result takes {len(document)} bytes as JSON, more than the {max_bytes} that are accepted;"
            " large data can be saved as an artifact",
        )
    return document


def error_document(code: str, text: str, limit: "str | None" = None) -> bytes:
    """The document for a call that failed, at a limit of its sandbox perhaps."""
    if len(text) > ERROR_MAX_CHARACTERS:
        text = text[: ERROR_MAX_CHARACTERS - 1] + "…"
    document = {"error": text, "error_code": code}
    if limit is not None:
        document["error_limit"] = limit
    return encode(document)


def write_result(path: str, document: bytes) -> None:
    """
    Puts the document in place in one step: a reader finds all of it or nothing. Raises OSError.
    """
    temporary = f"{path}.{os.getpid()}"
    try:
        descriptor = _open_new(temporary)
        try:
            _write(descriptor, document)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError:
        _remove(temporary)
        raise


# By the system's calls alone: a file object asks three times as much of the system, and a short
# call takes no longer than that.
def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.read(descriptor, _PIECE_BYTES):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def _write(descriptor: int, document: bytes) -> None:
    rest = memoryview(document)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _open_new(path: str) -> int:
    """
    A new file. A tool that has left no descriptor free has no use for its standard input any more.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        return os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno != _EMFILE:
            raise
        os.close(0)
        return os.open(path, flags, 0o644)


def describe(error: BaseException) -> str:
    """Class and text of an exception."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _json_name(value: object) -> str:
    names = {str: "a string", dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
