"""What a call that fails is answered with, and what goes to stderr."""

import errno
import os
import sys

from secure_tool_runtime import ToolError

# The interpreter's own printer, before a tool can replace it: an import of `traceback` takes 8 ms.
_print_exception = sys.__excepthook__
_RUNNER_DIRECTORY = os.path.dirname(__file__)
_LIMITS = {errno.ENOMEM: "memory", errno.EMFILE: "open_files", errno.EFBIG: "file_size"}


class Failure(Exception):
    """An error answer: a code of the protocol, a text for the caller, a limit that was met, facts
    for programs.
    """

    def __init__(
        self, code: str, text: str, limit: "str | None" = None, data: "dict | None" = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.limit = limit
        self.data = data


def describe(error: BaseException) -> str:
    """Class and text of an exception."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def failure_of(error: BaseException, subject: str = "Tool") -> Failure:
    """The answer to an exception of the tool. Raises a SystemExit whose status is a failure."""
    if isinstance(error, SystemExit):
        code = error.code
        if isinstance(code, int) and code & 0xFF != 0:
            raise error
        text = f"{subject} called sys.exit({'' if code is None else repr(code)})"
        return Failure("EXECUTION_ERROR", text)
    print_traceback(error)
    if isinstance(error, ToolError):
        return Failure("TOOL_ERROR", str(error) or "The tool reported an error without a text")
    if isinstance(error, MemoryError):
        text = f"{subject} raised MemoryError: it needs more memory than its sandbox may use"
        return Failure("EXECUTION_ERROR", text, "memory")
    return Failure("EXECUTION_ERROR", f"{subject} raised {describe(error)}", _limit_of(error))


def _limit_of(error: BaseException) -> "str | None":
    try:
        return _LIMITS.get(error.errno) if isinstance(error, OSError) else None
    except Exception:
        return None  # The tool's own class may have anything as its number.


def print_traceback(error: BaseException) -> None:
    """Prints a traceback without the runner's frames to stderr. It is not for the caller."""
    trace = frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename.startswith(_RUNNER_DIRECTORY):
            trace = frame.tb_next
        frame = frame.tb_next
    _print_exception(type(error), error.with_traceback(trace), trace)


def without_directories(text: str, work_directory: str) -> str:
    """A text with paths relative to the directories of the call, the runner and the modules."""
    directories = [work_directory, _RUNNER_DIRECTORY]
    directories += [entry.rstrip("/") for entry in sys.path if isinstance(entry, str)]
    for directory in sorted(filter(None, directories), key=len, reverse=True):
        text = text.replace(directory + "/", "")
    return text
