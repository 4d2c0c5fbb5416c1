"""What a program that fails is answered with: its author has to repair it."""

import builtins
import sys

# `deque` without the rest of `collections`.
from _collections import deque

from secure_tool_runtime import ToolError

from ..errors import Failure, describe, failure_of
from .source import NAME, Source

# Of the runner, and of what programs import from it.
_RUNNER_DIRECTORY = __file__.rpartition("/tool_runner/")[0]
_MAX_FRAMES = 20
# Of a traceback that is printed.
_MAX_PRINTED_FRAMES = 200
_MAX_SOURCE_CHARACTERS = 160
_MAX_CAUSE_LEVELS = 5
_MAX_GROUP_ERRORS = 3
# From Python 3.11 on.
_ExceptionGroup = getattr(builtins, "BaseExceptionGroup", ())


def program_failure(error: BaseException, source: Source, module: object) -> Failure:
    """The answer to an exception. Raises a SystemExit whose status is a failure."""
    if isinstance(error, MemoryError):
        _release(error.__traceback__, module)
    frames = _frames_of(error)
    _hide_source(module)
    failure = failure_of(error.with_traceback(_without_runner(error.__traceback__)), "Program")
    if isinstance(error, (ToolError, SystemExit)):
        return failure
    text = f"{failure}{_causes_of(error)}"
    if not frames:
        return Failure(failure.code, text, failure.limit)
    places = [_place_of(trace, source) for trace in frames]
    data = {**places[0], "stack": [_line_of(*each, source) for each in zip(places, frames)]}
    return Failure(failure.code, f"{text} (line {data['line']})", failure.limit, data)


def _release(trace: object, module: object) -> None:
    """Frees what the program holds: there may be no memory left for an answer."""
    vars(module).clear()
    while trace is not None:
        try:
            trace.tb_frame.clear()
        except RuntimeError:
            pass  # It still runs: it is one of the runner's.
        trace = trace.tb_next


def _frames_of(error: BaseException) -> list:
    """Entries of the traceback that are of the program itself, innermost first."""
    # A recursion may have millions.
    frames = deque(maxlen=_MAX_FRAMES)
    for _ in range(_MAX_CAUSE_LEVELS):
        frames += filter(_is_own, _entries(error.__traceback__))
        if not isinstance(error, _ExceptionGroup):
            break
        # The group itself is raised at the end of an `async with`.
        error = error.exceptions[0]
    return list(reversed(frames))


def _entries(trace: object) -> object:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_own(trace: object) -> bool:
    return trace.tb_frame.f_code.co_filename == NAME


def _place_of(trace: object, source: Source) -> dict:
    line = trace.tb_lineno or 1
    code = trace.tb_frame.f_code
    # From Python 3.11 on.
    positions = list(code.co_positions()) if hasattr(code, "co_positions") else []
    *_, column, _ = positions[trace.tb_lasti // 2] if positions else (None, None)
    if column is None:
        return {"line": line}
    before = _source_line(line, source).encode("utf-8", "surrogatepass")[:column]
    return {"line": line, "column": len(before.decode("utf-8", "replace")) + 1}


def _line_of(place: dict, trace: object, source: Source) -> str:
    where = ", ".join(f"{name} {number}" for name, number in place.items())
    function = trace.tb_frame.f_code.co_name
    within = "" if function == "<module>" else f", in {function}"
    return f"{where}{within}: {_source_line(place['line'], source).strip()[:_MAX_SOURCE_CHARACTERS]}"


def _source_line(number: int, source: Source) -> str:
    return "".join(source.lines[number - 1 : number])


def _causes_of(error: BaseException, levels: int = _MAX_CAUSE_LEVELS) -> str:
    causes = [] if error.__cause__ is None else [error.__cause__]
    if isinstance(error, _ExceptionGroup):
        causes += error.exceptions[:_MAX_GROUP_ERRORS]
    if not causes or levels == 0:
        return ""
    texts = [f"{describe(each)}{_causes_of(each, levels - 1)}" for each in causes]
    return f" (cause: {'; '.join(texts)})"


def _without_runner(trace: object) -> object:
    """A traceback from the program's first frame on, the innermost ones, without frames of the
    runner such as those of `display` and `tools`.
    """
    first = next(filter(_is_own, _entries(trace)), trace)
    kept = None
    for each in reversed(deque(_entries(first), _MAX_PRINTED_FRAMES)):
        if not each.tb_frame.f_code.co_filename.startswith(_RUNNER_DIRECTORY):
            kept = type(each)(kept, each.tb_frame, each.tb_lasti, each.tb_lineno or 0)
    return kept


def _hide_source(module: object) -> None:
    """What the runner prints may be logged, and shows no source. From Python 3.13 on it would."""
    module.__loader__ = None
    if "linecache" in sys.modules:
        sys.modules["linecache"].cache.pop(NAME, None)
