"""
A runner that loads its tool before there is a call, and waits for the call. See
tool-runner/PROTOCOL.md.
"""

import os
import sys

from .json_codec import encode
from .protocol import describe
from .rehearsal import rehearse
from .runner import answer, prepare, take, unusable

# Characters of a reason: with them, a line has at most 4096 bytes.
_REASON_MAX_CHARACTERS = 500
_CALL = b"call\n"
_IS_ASYNC = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR of a code object's flags


def park(argv: "list[str]") -> int:
    """
    Runs one call of the module `argv[2]` when it is told to. Returns the process's exit status.
    """
    if len(argv) != 5:
        return unusable("usage: tool_runner --park MODULE TOOLS_DIR RUNNER_ARGS_FILE")
    module, tools_dir, args_file, channel = take_parameters(argv)
    prepare(tools_dir)
    status = load(module, channel)
    if status is not None:
        return status
    try:
        rehearse(os.path.dirname(args_file))
    except Exception as error:
        refuse(channel, f"the runner cannot work after its import: {describe(error)}")
    return serve(channel, args_file)


def take_parameters(argv: "list[str]") -> "tuple[str, str, str, int]":
    """
    Module, directory of tools, file of arguments and channel of a process that waits for calls,
    which no module sees.
    """
    _, _, module, tools_dir, args_file = argv
    del argv[1:]
    hide_parking(args_file)
    return module, tools_dir, args_file, take_channel()


def load(module: str, channel: int) -> "int | None":
    """
    Imports a module, or says why not and ends. Returns the exit status of a process that the module
    forked.
    """
    runner_pid = os.getpid()
    try:
        __import__(module)
    except BaseException as error:
        if os.getpid() != runner_pid:
            return 1  # As in a call.
        refuse(channel, describe(error))
    if os.getpid() != runner_pid:
        return 0
    _load_what_calls_need(module)
    return None


def refuse(channel: int, reason: str) -> None:
    """Says why there can be no call here, and ends."""
    say(channel, {"unfit": reason[:_REASON_MAX_CHARACTERS]})
    os._exit(1)


def serve(channel: int, args_file: str, announce: object = None) -> int:
    """
    Says that everything is ready, and runs one call when it is told to. Otherwise as `answer`.
    """
    say(channel, {"ready": True})
    if not _is_called(channel):
        os._exit(0)
    os.close(channel)
    call = take(args_file)
    return 1 if call is None else answer(call, announce)


def hide_parking(args_file: str) -> None:
    """Tools see the command line of a cold start."""
    original = getattr(sys, "orig_argv", None)  # From Python 3.10 on.
    if original:
        original[-4:] = [args_file]


def take_channel() -> int:
    """
    The socket that is descriptor 0, as another descriptor that no program inherits; stdin is empty
    from now on.
    """
    channel = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    # A file object knows of what it was opened on, such as whether that can be rewound.
    encoding, errors = sys.stdin.encoding, sys.stdin.errors
    stdin = open(0, encoding=encoding, errors=errors, newline="\n", closefd=False)
    stdin.buffer.raw.name = sys.stdin.name
    stdin.mode = sys.stdin.mode
    sys.stdin = sys.__stdin__ = stdin
    return channel


def _load_what_calls_need(module: str) -> None:
    from . import artifact_parameters, class_tools, provided, results, values  # noqa: F401

    if "secure_tool_runtime.models" in sys.modules:
        from secure_tool_runtime import dumping  # noqa: F401
    members = list(vars(sys.modules[module]).values())
    codes = [getattr(each, "__code__", None) for each in members]
    if any(getattr(code, "co_flags", 0) & _IS_ASYNC for code in codes):
        import asyncio  # noqa: F401


def say(channel: int, message: dict) -> None:
    """Tells the worker something."""
    os.write(channel, encode(message) + b"\n")


def _is_called(channel: int) -> bool:
    """Waits. False when nobody will call any more."""
    line = b""
    while len(line) < len(_CALL):
        piece = os.read(channel, len(_CALL) - len(line))
        if not piece:
            return False
        line += piece
    return line == _CALL
