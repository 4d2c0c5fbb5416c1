"""What the operations of `tools` ask of the worker, and what they make of its answers.

Each is a generator: it yields requests, gets the payload of each answer, and returns its result.
So those that wait and those that await are the same. See tool-runner/PROTOCOL.md, "Tools of a
program".
"""

from .results import ChainResult, ToolCallResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")
    _Payload = dict[str, Any]
    Steps = Generator[tuple[str, _Payload], _Payload, _Result]

_PIECE_BYTES = 512 * 1024  # Of an artifact, in one answer.
_LEVELS = ("summary", "schema", "full")
_STEP_MEMBERS = frozenset(("tool", "args", "use_previous"))
# Members of answers by their names in Python.
_NAMES = {
    "mimeType": "mime_type",
    "resultHint": "result_hint",
    "shortDescription": "short_description",
    "sizeBytes": "size_bytes",
    "toolId": "tool",
}


def call(tool: str, args: "dict[str, Any] | None") -> "Steps[ToolCallResult]":
    payload = yield "run_tool", {"id": _text("tool", tool), "args": _arguments(args)}
    return ToolCallResult(payload["structured"], _renamed(payload["artifacts"]))


def chain(steps: "Sequence[dict[str, Any]]") -> "Steps[ChainResult]":
    payload = yield "run_chain", {"steps": [_step(each) for each in steps]}
    made = step_results(payload["stepResults"])
    return ChainResult(payload["structured"], _renamed(payload["artifacts"]), made)


def search(query: str, limit: int) -> "Steps[list[dict[str, Any]]]":
    payload = yield "search_tools", {"query": _text("query", query), "limit": _count("limit", limit)}
    return _renamed(payload["results"])


def namespaces() -> "Steps[list[str]]":
    payload = yield "list_namespaces", {}
    names: "list[str]" = payload["namespaces"]
    return names


def describe(tool: str, level: str) -> "Steps[dict[str, Any]]":
    if level not in _LEVELS:
        raise ValueError(f"level must be {' or '.join(_LEVELS)}, not {level!r}")
    payload = yield "describe_tool", {"id": _text("tool", tool), "level": level}
    if "examples" in payload:
        payload["examples"] = _renamed(payload["examples"])
    return payload


def examples(tool: str, maximum: int) -> "Steps[list[dict[str, Any]]]":
    members = {"id": _text("tool", tool), "max": _count("max", maximum)}
    payload = yield "list_tool_examples", members
    return _renamed(payload["examples"])


def load_artifact(filename: str, version: "int | None") -> "Steps[bytes]":
    from binascii import a2b_base64

    members: "dict[str, Any]" = {"filename": _text("filename", filename), "length": _PIECE_BYTES}
    if version is not None:
        members["version"] = _count("version", version)
    content = bytearray()
    while True:
        piece = yield "load_artifact", {**members, "offset": len(content)}
        data = a2b_base64(piece["content"])
        content += data
        if not data or len(content) >= piece["sizeBytes"]:
            return bytes(content)
        # The pieces are of one version, also when a newer one appears meanwhile.
        members["version"] = piece["version"]


def step_results(results: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """The results of a chain's steps with their members named as in Python."""
    made = _renamed(results)
    for each in made:
        if "artifacts" in each:
            each["artifacts"] = _renamed(each["artifacts"])
    return made


def _renamed(records: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    return [{_NAMES.get(name, name): value for name, value in each.items()} for each in records]


# The worker closes the channel at a payload of another form. A mistake costs its own call only.


def _step(step: "dict[str, Any]") -> "dict[str, Any]":
    unknown = set(step) - _STEP_MEMBERS
    if unknown:
        raise TypeError(f"a step of a chain has tool, args and use_previous, not {unknown.pop()!r}")
    return {
        "toolId": _text("tool", step.get("tool")),
        "args": _arguments(step.get("args")),
        "usePrevious": bool(step.get("use_previous")),
    }


def _arguments(args: object) -> "dict[str, Any]":
    if args is None:
        return {}
    if isinstance(args, dict):
        return args
    raise TypeError(f"args must be a dict, not {type(args).__name__}")


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{name} must be str, not {type(value).__name__}")


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, not {value}")
    return value
