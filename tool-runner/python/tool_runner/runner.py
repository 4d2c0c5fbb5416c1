"""One call, from runner_args.json to result.json: load the tool, call it, write its answer."""

import errno
import os
import sys

from secure_tool_runtime import ToolContext

from . import exit
from .binding import bind
from .errors import Failure, describe, failure_of, print_traceback
from .protocol import Call, call_of, error_document, result_document, take_call, write_result

_FAILED = 1
# Calls of tools at a time, where the worker says nothing.
_CONCURRENT_CALLS = 8
# Descriptors that the worker may hand on beside stdin, stdout and stderr.
_HANDED_ON = range(3, 10)


def main(argv: "list[str]") -> int:
    """Runs the call that the file `argv[1]` describes. Returns the process's exit status."""
    if len(argv) != 2:
        return fail("usage: tool_runner RUNNER_ARGS_FILE")
    call = understand(argv.pop())
    if call is None:
        return _FAILED
    prepare(call.tools_dir)
    return answer(call)


def fail(message: str) -> int:
    """Prints a failure of the runner itself. Returns the exit status for it."""
    sys.stderr.write(f"tool_runner: {message}\n")
    return _FAILED


def understand(described: "str | bytes") -> "Call | None":
    """The call that a file of this path, or this document, describes; None, and a line on stderr,
    where it cannot be run.
    """
    try:
        if isinstance(described, bytes):
            return call_of(described)  # A worker that gives it is there.
        call = take_call(described)
    except (OSError, ValueError) as error:
        fail(f"the runner arguments cannot be used: {describe(error)}")
        return None
    if call.status_pipe and _is_abandoned(call.status_pipe):
        fail("nobody reads the status pipe, so the worker is gone")
        return None
    return call


def _is_abandoned(status_pipe: str) -> bool:
    """Whether the worker, which opened the pipe before the start, has died and ends no tool."""
    try:
        os.close(os.open(status_pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


def prepare(tools_dir: str) -> "set[int]":
    """Makes the process ready for the tool's module. Returns the descriptors that the worker has
    handed on, which no program of the tool inherits.
    """
    exit.register()
    inherited = set()
    for descriptor in _HANDED_ON:
        try:
            os.set_inheritable(descriptor, False)
            inherited.add(descriptor)
        except OSError:
            pass  # It is not open.
    if sys.stdout is not None:
        # Without a terminal Python holds output back, and a tool that is killed would lose it.
        sys.stdout.reconfigure(line_buffering=True)
    if tools_dir:
        sys.path.insert(0, tools_dir)
    # By this the original's packages leave out what no tool needs.
    os.environ.setdefault("_SAM_SANDBOX_LIGHT", "1")
    return inherited


def answer(call: Call, channel: object = None) -> int:
    """Runs a call, gives its answer and ends the process, by `exit.leave`.

    The answer goes to the worker's `WakeChannel` where there is one that takes it, else into
    result.json.

    Returns the exit status where the interpreter has to be finalized, and in processes that the
    tool has forked. Raises a SystemExit of the tool whose status is a failure.
    """
    runner_pid = os.getpid()
    context = context_of(call)
    tools_at = call.gateway.get("fd", call.gateway.get("path"))
    if tools_at is not None:
        from secure_tool_runtime import gateway

        max_calls = call.gateway.get("max_concurrent_calls", _CONCURRENT_CALLS)
        gateway.of_call = (tools_at, runner_pid, max_calls)
    try:
        try:
            returned = run_tool(call, context)
            # A child that the tool has forked may return, too. The parent answers.
            if os.getpid() != runner_pid:
                return 0
            result = result_of(returned, context)
            document = result_document(result, context.described_outputs(), call.max_result_bytes)
        except Failure as failure:
            if os.getpid() != runner_pid:
                return 1
            document = error_document(failure, call)
    except SystemExit as error:
        exit.limit(error.code & 0xFF)
        raise
    if channel is not None and channel.give(document):
        exit.leave(0, channel.finish)
        return 0
    try:
        write_result(call, document)
        status = 0
    except OSError as error:
        status = fail(f"result.json cannot be written: {error.strerror}")
    exit.leave(status)
    return status


def context_of(call: Call) -> ToolContext:
    """What the tool gets of a call."""
    return ToolContext(
        output_dir=call.output_dir,
        status_pipe=call.status_pipe or None,
        artifact_paths=call.artifact_paths,
        artifact_metadata=call.artifact_metadata,
        tool_config=call.tool_config,
        user_id=call.user_id,
        session_id=call.session_id,
        app_name=call.app_name,
        task_id=call.task_id,
        deadline=call.deadline_ms / 1000 if call.deadline_ms else None,
        traceparent=call.traceparent or None,
        tracestate=call.tracestate or None,
        runner_pid=os.getpid(),
    )


def run_tool(call: Call, context: ToolContext) -> object:
    """What the tool returned. Raises Failure, and a SystemExit whose status is a failure."""
    if call.is_program:
        from .programs.program import run

        return {} if call.load_only or call.describe else run(call, context)
    tool = _load(call)
    if call.load_only:
        return {}
    try:
        if call.describe:
            from .describe.tools import description_of

            return description_of(tool, call)
        if call.class_name and call.tool_name:
            from .class_tools import bind_instance
            from .providers import provided_by

            function, instance = provided_by(tool, call)
            if function is None:
                tool, positional, keywords = bind_instance(instance, call, context)
            else:
                call.function = call.tool_name
                tool, (positional, keywords) = function, bind(function, call, context)
        elif call.class_name:
            from .class_tools import bind_class

            tool, positional, keywords = bind_class(tool, call, context)
        else:
            positional, keywords = bind(tool, call, context)
        returned = tool(*positional, **keywords)
        if not hasattr(type(returned), "__await__"):
            return returned
        from .awaiting import awaited

        return awaited(returned, context)
    except Failure:
        raise
    except BaseException as error:
        raise failure_of(error) from None


def _load(call: Call) -> object:
    """The function or the class that the call names. Importing its module may raise anything."""
    name = call.class_name or call.function
    try:
        __import__(call.module)
        tool = getattr(sys.modules[call.module], name, None)
    except BaseException as error:
        print_traceback(error)
        text = f'Module "{call.module}" cannot be imported: {describe(error)}'
        raise Failure("IMPORT_ERROR", text) from None
    if call.class_name and not isinstance(tool, type):
        raise Failure("TOOL_NOT_FOUND", f'Module "{call.module}" has no class "{name}"')
    if not callable(tool):
        raise Failure("TOOL_NOT_FOUND", f'Module "{call.module}" has no function "{name}"')
    return tool


def result_of(returned: object, context: ToolContext) -> dict:
    """What a tool returned as a dict. Raises Failure."""
    if isinstance(returned, dict):
        return returned
    from .results import as_object

    try:
        return as_object(returned, context)
    except Failure:
        raise
    except BaseException as error:
        raise failure_of(error) from None
