"""Reads runner_args.json, writes result.json. See tool-runner/PROTOCOL.md."""

import errno
import os

from .errors import Failure, describe, without_directories
from .json_codec import decode, encode

ERROR_MAX_CHARACTERS = 4000
_REQUIRED = ("result_file", "output_dir")
_REQUIRED_OF_TOOLS = ("module", *_REQUIRED)
_LANGUAGE = "python"
# What a member is when it is absent or null; its type is the type it must have.
_DEFAULTS = {
    "module": "",
    "function": "",
    "class_name": "",
    "tool_name": "",
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
    "deadline_ms": 0,
    "traceparent": "",
    "tracestate": "",
    "load_only": False,
    "describe": False,
    "gateway": {},
    "program": {},
}


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
            setattr(self, name, value)
        for name in _REQUIRED if self.is_program else _REQUIRED_OF_TOOLS:
            if not getattr(self, name):
                raise ValueError(f'"{name}" is missing')
        if self.is_program:
            self._check_program()
        elif not self.function and not self.class_name:
            raise ValueError('"function" and "class_name" are missing')

    @property
    def is_program(self) -> bool:
        """Whether `args` has the source text that runs in place of a tool."""
        return self.program.get("language") is not None

    def _check_program(self) -> None:
        if self.program["language"] != _LANGUAGE:
            raise ValueError(f'"program.language" must be {_LANGUAGE}')
        if not isinstance(self.args.get("code"), str):
            raise ValueError('"args.code" must be a string')
        if not isinstance(self.args.get("inputs") or {}, dict):
            raise ValueError('"args.inputs" must be an object')


def take_call(path: str) -> Call:
    """Reads the description of the call and removes the file, whose tool_config may hold secrets.

    Raises OSError when it cannot be read and ValueError when it does not describe a call.
    """
    with open(path, "rb") as file:
        document = file.read()
    try:
        os.unlink(path)
    except OSError:
        pass  # The directory is read-only. The worker removes it.
    return call_of(document)


def call_of(document: bytes) -> Call:
    """The call that a document describes. Raises ValueError where it describes none."""
    members = decode(document)
    if not isinstance(members, dict):
        raise ValueError(f"the file must hold an object, not {_json_name(members)}")
    return Call(members)


def result_document(result: dict, outputs: dict, max_bytes: int) -> bytes:
    """The document for a call that succeeded. Raises Failure where JSON cannot express the result,
    or in more bytes.
    """
    try:
        document = encode({"result": result, "outputs": outputs})
    except RecursionError:
        raise Failure("EXECUTION_ERROR", "The tool's result is nested too deeply for JSON") from None
    except MemoryError:
        text = "Out of memory while writing the tool's result"
        raise Failure("EXECUTION_ERROR", text, "memory") from None
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


def error_document(failure: Failure, call: Call) -> bytes:
    """The document for a call that failed, without the paths of directories."""
    text = without_directories(str(failure), os.path.dirname(call.result_file))
    if len(text) > ERROR_MAX_CHARACTERS:
        text = text[: ERROR_MAX_CHARACTERS - 1] + "…"
    document = {"error": text, "error_code": failure.code}
    if failure.limit is not None:
        document["error_limit"] = failure.limit
    if failure.data is not None:
        document["error_data"] = failure.data
    return encode(document)


def write_result(call: Call, document: bytes) -> None:
    """Puts the document in place in one step, or an error where it has no room. Raises OSError."""
    try:
        _replace(call.result_file, document)
    except OSError as error:
        text = f"The tool's result cannot be written: {error.strerror}"
        _replace(call.result_file, error_document(Failure("RESOURCE_EXHAUSTED", text), call))


def _replace(path: str, document: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        with _open_new(temporary) as file:
            file.write(document)
        os.replace(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass  # It was never there.
        raise


def _open_new(path: str) -> object:
    """Opens a new file. Takes the descriptor of stdin where the tool has left no other free."""
    try:
        return open(path, "xb")
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        os.close(0)
        return open(path, "xb")


def _json_name(value: object) -> str:
    names = {str: "a string", dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
