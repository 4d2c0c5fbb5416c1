"""A runner that loads its tool before there is a call. See tool-runner/PROTOCOL.md, "Parked"."""

import os
import sys

from ..errors import describe
from ..runner import answer, fail, prepare, understand
from .rehearsal import rehearse
from .waiting import has_functions_that_await
from .wake_channel import WakeChannel

# Characters. With them a line has at most 4,096 bytes.
_REASON_MAX_CHARACTERS = 500
REHEARSALS = 20  # After so many runs the interpreter has specialized the code (PEP 659).


def park(argv: "list[str]") -> int:
    """Loads the module `argv[2]` and runs one call of it. Returns the process's exit status."""
    if len(argv) != 5:
        return fail("usage: tool_runner --park MODULE TOOLS_DIR RUNNER_ARGS_FILE")
    module, tools_dir, _, channel = take_parameters(argv)
    has_gateway = bool(prepare(tools_dir) - {channel.descriptor})
    status = load(module, channel, has_gateway)
    return serve(channel) if status is None else status


def take_parameters(argv: "list[str]") -> "tuple[str, str, str, WakeChannel]":
    """Module, directory of tools, file of arguments and wake channel. Modules see a cold start."""
    _, _, module, tools_dir, args_file = argv
    del argv[1:]
    original = getattr(sys, "orig_argv", None)  # From Python 3.10 on.
    if original:
        original[-4:] = [args_file]
    return module, tools_dir, args_file, WakeChannel(_take_socket())


def load(module: str, channel: WakeChannel, has_gateway: bool) -> "int | None":
    """Imports a module and what its calls need; without a module, what programs need. Reports and
    ends where it cannot be imported.

    Returns the exit status of a process that the module has forked.
    """
    runner_pid = os.getpid()
    try:
        if module:
            __import__(module)
    except BaseException as error:
        if os.getpid() != runner_pid:
            return 1
        refuse(channel, describe(error))
    if os.getpid() != runner_pid:
        return 0
    try:
        _load_what_calls_need(module, has_gateway)
        for _ in range(REHEARSALS):
            rehearse(module)
    except Exception as error:
        refuse(channel, f"the runner cannot work after its import: {describe(error)}")
    return None


def refuse(channel: WakeChannel, reason: str) -> None:
    """Reports why the tool cannot be loaded ahead of its calls, and ends."""
    channel.report({"unfit": reason[:_REASON_MAX_CHARACTERS]})
    os._exit(1)


def serve(channel: WakeChannel, gateway: "int | None" = None) -> int:
    """Reports that the tool is loaded, waits, and runs one call. Otherwise as `answer`.

    `gateway` is the descriptor of the call's gateway where the call itself does not know it.
    """
    channel.report({"ready": True})
    description = channel.take_call()
    if description is None:
        os._exit(0)
    call = understand(description)
    if call is None:
        return 1
    if gateway is not None:
        call.gateway = {**call.gateway, "fd": gateway}
    return answer(call, channel)


def _take_socket() -> int:
    """Moves the socket from descriptor 0 to another that no program inherits; stdin is empty."""
    channel = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    # A file object remembers what it was opened on, such as whether that can be rewound.
    encoding, errors = sys.stdin.encoding, sys.stdin.errors
    stdin = open(0, encoding=encoding, errors=errors, newline="\n", closefd=False)
    stdin.buffer.raw.name = sys.stdin.name
    stdin.mode = sys.stdin.mode
    sys.stdin = sys.__stdin__ = stdin
    return channel


def _load_what_calls_need(module: str, has_gateway: bool) -> None:
    if has_gateway:
        from secure_tool_runtime.gateway import channel, tools  # noqa: F401
    from .. import values  # noqa: F401

    if not module:
        return  # The rehearsal loads the rest, but for asyncio: few programs await.
    from .. import artifact_parameters, class_tools, results  # noqa: F401

    if "secure_tool_runtime.models" in sys.modules:
        from secure_tool_runtime import dumping  # noqa: F401
    if has_functions_that_await(module):
        import asyncio  # noqa: F401
        from secure_tool_runtime import cancellation  # noqa: F401
