"""
One call, from runner_args.json to result.json: load the tool, call it, write what became of it.
"""

import _signal
import atexit
import os
import sys

from secure_tool_runtime import ToolContext, ToolError

from .binding import bind
from .exit import leave
from .protocol import (
    BadArguments,
    Call,
    Failure,
    describe,
    error_document,
    result_document,
    take_call,
    write_result,
)

# What the tool leaves behind, threads and exit handlers, may hold an answer that is already written
# for this long.
LINGER_SECONDS = 2.0
_LINGERING_NOTICE = (
    b"tool_runner: ended threads or exit handlers that were still running %g s after the tool\n"
    % LINGER_SECONDS
)

_UNUSABLE_ARGUMENTS = 1
# errno.ENXIO, without importing errno: a pipe without a reader (fifo(7)).
_ENXIO = 6
# Limits of the sandbox that errors of the system stand for: errno.ENOMEM, EMFILE and EFBIG, without
# importing errno.
_LIMITS = {12: "memory", 24: "open_files", 27: "file_size"}
_HERE = os.path.dirname(__file__)


def main(argv: "list[str]") -> int:
    """Runs the call that the file `argv[1]` describes. Returns the process's exit status."""
    if len(argv) != 2:
        return unusable("usage: tool_runner RUNNER_ARGS_FILE")
    call = take(argv.pop())
    if call is None:
        return _UNUSABLE_ARGUMENTS
    prepare(call.tools_dir)
    return answer(call)


def take(path: str) -> "Call | None":
    """The call that a file describes; None, and a line on stderr, where it cannot be run."""
    try:
        call = take_call(path)
    except (OSError, ValueError) as error:
        unusable(f"the runner arguments cannot be used: {describe(error)}")
        return None
    if call.status_pipe and _is_abandoned(call.status_pipe):
        unusable("nobody reads the status pipe, so the worker is gone")
        return None
    return call


def prepare(tools_dir: str) -> None:
    """What has to be done before anything of the tool runs."""
    # Registered first, so it runs last: what comes after the exit handlers may take its time.
    atexit.register(_signal.setitimer, _signal.ITIMER_REAL, 0)
    if sys.stdout is not None:
        # Nobody sits at a terminal, so Python would keep back what a tool prints, and lose it with
        # a tool that is killed.
        sys.stdout.reconfigure(line_buffering=True)
    if tools_dir:
        sys.path.insert(0, tools_dir)
    # What the original sets: its own packages, where they are installed, leave out what no tool
    # needs.
    os.environ.setdefault("_SAM_SANDBOX_LIGHT", "1")


def answer(call: Call, announce: object = None) -> int:
    """Runs a call, writes what became of it, and ends the process. `announce` is that of `leave`.

    Returns the exit status where the interpreter has to end in its usual way, and in processes that
    the tool forked.
    """
    runner_pid = os.getpid()
    try:
        status = respond(call)
    except SystemExit as leaving:
        limit_the_ending(leaving.code & 0xFF)
        raise
    if os.getpid() == runner_pid:
        limit_the_ending(status)
        flush_output()
        leave(status, announce)
    return status


def respond(call: Call) -> int:
    """
    As `answer`, for a process that does not end then. Raises a SystemExit of the tool's own code.
    """
    context = _context_of(call)
    runner_pid = os.getpid()
    try:
        returned = _run_tool(call, context)
        if os.getpid() != runner_pid:
            return 0  # A child that the tool forked and let return: its parent gives the answer.
        document = _result(call, context, returned)
    except Failure as failure:
        if os.getpid() != runner_pid:
            return 1  # The same, and the child raised.
        document = _error(call, failure)
    return _deliver(call, document)


def _is_abandoned(status_pipe: str) -> bool:
    """
    Whether the worker, which reads the pipe from before the start, died while the sandbox was being
    set up.

    Nobody would be left to stop the tool.
    """
    try:
        os.close(os.open(status_pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == _ENXIO
    return False


def unusable(message: str) -> int:
    """Says why there is no call to run. Returns the exit status for that."""
    sys.stderr.write(f"tool_runner: {message}\n")
    return _UNUSABLE_ARGUMENTS


def _context_of(call: Call) -> ToolContext:
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
    )


def _result(call: Call, context: ToolContext, returned: object) -> bytes:
    """
    The document of a call that succeeds. Raises Failure, and a SystemExit of the tool's own code.
    """
    result = _as_object(returned, context)
    return result_document(result, context.described_outputs(), call.max_result_bytes)


def _error(call: Call, failure: Failure) -> bytes:
    """
    The document of a call that fails, with paths made relative to the directories that the tool
    knows.
    """
    text = str(failure)
    directories = [os.path.dirname(call.result_file), _HERE]
    directories += [entry.rstrip("/") for entry in sys.path if isinstance(entry, str)]
    for directory in sorted(directories, key=len, reverse=True):
        if directory:
            text = text.replace(directory + "/", "")
    return error_document(failure.code, text, failure.limit)


def _run_tool(call: Call, context: ToolContext) -> object:
    """What the tool returned. Whatever the tool raises, this raises Failure or a SystemExit."""
    tool = _load(call)
    if call.load_only:
        return {}
    try:
        if call.class_name:
            from .class_tools import bind_class

            method, keywords = bind_class(tool, call, context)
            return _finished(method(**keywords))
        positional, keywords = bind(tool, call, context)
        return _finished(tool(*positional, **keywords))
    except BadArguments as error:
        raise Failure("EXECUTION_ERROR", str(error)) from None
    except Failure:
        raise
    except BaseException as error:
        raise _failure_of(error) from None


def _load(call: Call) -> object:
    """
    The function or the class that the call names. Importing runs the tool's module, which may raise
    anything.
    """
    name = call.class_name or call.function
    try:
        __import__(call.module)
        tool = getattr(sys.modules[call.module], name, None)
    except BaseException as error:
        _print_traceback(error)
        raise Failure(
            "IMPORT_ERROR", f'Module "{call.module}" cannot be imported: {describe(error)}'
        ) from None
    if call.class_name and not isinstance(tool, type):
        raise Failure("TOOL_NOT_FOUND", f'Module "{call.module}" has no class "{name}"')
    if not callable(tool):
        raise Failure("TOOL_NOT_FOUND", f'Module "{call.module}" has no function "{name}"')
    return tool


def _finished(returned: object) -> object:
    """What the tool returned; awaited when its function is async."""
    if not hasattr(type(returned), "__await__"):
        return returned
    import asyncio

    async def finish() -> object:
        return await returned

    return asyncio.run(finish())


def _as_object(returned: object, context: ToolContext) -> dict:
    """The answer must be an object: a dict is one, the rest is made one."""
    if isinstance(returned, dict):
        return returned
    try:
        from .results import as_object

        return as_object(returned, context)
    except Failure:
        raise
    except BaseException as error:
        raise _failure_of(error) from None


def _failure_of(error: BaseException) -> Failure:
    """
    What to answer when the tool raised. Re-raises a SystemExit whose status says that the process
    failed.
    """
    if isinstance(error, SystemExit):
        code = error.code
        if isinstance(code, int) and code & 0xFF != 0:
            raise error
        return Failure("EXECUTION_ERROR", f"Tool called sys.exit({'' if code is None else repr(code)})")
    _print_traceback(error)
    if isinstance(error, ToolError):
        return Failure("TOOL_ERROR", str(error) or "The tool reported an error without a text")
    if isinstance(error, MemoryError):
        return Failure(
            "EXECUTION_ERROR", "Tool raised MemoryError: it needs more memory than its sandbox may use", "memory"
        )
    return Failure("EXECUTION_ERROR", f"Tool raised {describe(error)}", _limit_of(error))


def _limit_of(error: BaseException) -> "str | None":
    """The limit that an error of the system stands for."""
    try:
        return _LIMITS.get(error.errno) if isinstance(error, OSError) else None
    except Exception:
        return None  # What a tool raises may have anything for a number.


def _print_traceback(error: BaseException) -> None:
    """Prints to stderr what must not be published, without the runner's own frames."""
    trace = frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename.startswith(_HERE):
            trace = frame.tb_next
        frame = frame.tb_next
    # The interpreter's own printer; the `traceback` module takes 8 ms to import.
    sys.__excepthook__(type(error), error.with_traceback(trace), trace)


def _deliver(call: Call, document: bytes) -> int:
    try:
        try:
            write_result(call.result_file, document)
        except OSError as error:
            reason = f"The tool's result cannot be written: {error.strerror}"
            write_result(call.result_file, error_document("RESOURCE_EXHAUSTED", reason))
    except OSError as error:
        sys.stderr.write(f"tool_runner: result.json cannot be written: {error.strerror}\n")
        return 1
    return 0


def limit_the_ending(status: int) -> None:
    """Lets threads and exit handlers of the tool end, but not for ever.

    By a signal and not by a thread: a thread that has just started when the interpreter ends can
    crash it.
    """

    def end(_signal_number: int, _frame: object) -> None:
        try:
            os.write(2, _LINGERING_NOTICE)
        finally:
            os._exit(status)

    _signal.signal(_signal.SIGALRM, end)
    _signal.setitimer(_signal.ITIMER_REAL, LINGER_SECONDS)


def flush_output() -> None:
    """
    Flushes stdout and stderr. When nobody reads them any more, Python would otherwise end with
    status 120.
    """
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except Exception:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
