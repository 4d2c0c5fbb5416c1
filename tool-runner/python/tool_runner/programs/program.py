"""Runs the source text of a program in place of a tool. See tool-runner/PROTOCOL.md, "Programs"."""

import sys

from secure_tool_runtime import ToolContext

from ..awaiting import awaited, is_awaitable
from ..errors import Failure
from ..protocol import Call
from .failures import program_failure
from .output import keep
from .source import Source, awaits
from .values import NotJson, displaying, json_copy

_OUT = "__out"


def run(call: Call, context: ToolContext) -> dict:
    """The result of a program. Raises Failure, and a SystemExit whose status is a failure."""
    source = Source(call.args["code"])
    codes = source.compiled()
    stdout, stderr = keep("stdout"), keep("stderr")
    displays = []
    module = source.module()
    # The program's classes and functions name this module, and `pickle` looks for them there.
    sys.modules["__main__"] = module
    variables = vars(module)
    variables["inputs"] = call.args.get("inputs") or {}
    variables["display"] = displaying(displays)
    variables["tools"] = context.tools
    try:
        value = _value_of(codes, variables, context)
    except Failure:
        raise
    except BaseException as error:
        raise program_failure(error, source, module) from None
    return {"value": value, "stdout": stdout(), "stderr": stderr(), "displays": displays}


def rehearse(context: ToolContext) -> dict:
    """The result of a program of nothing, which changes nothing in the process."""
    source = Source("__out = {'text': ''}")
    variables = {"tools": context.tools}
    return {"value": _value_of(source.compiled(), variables, context), "displays": []}


def _value_of(codes: list, variables: dict, context: ToolContext) -> object:
    """Runs the codes. Raises Failure for a value that is not JSON, and what the program raises."""
    if any(map(awaits, codes)):
        last = awaited(_run_awaiting(codes, variables), context)
    else:
        for code in codes:
            last = eval(code, variables)
        if is_awaitable(last) or is_awaitable(variables.get(_OUT)):
            last = awaited(_settle(last, variables), context)
    if _OUT not in variables:
        return _json_or_none(last)
    try:
        return json_copy(variables[_OUT])
    except NotJson as error:
        raise Failure("EXECUTION_ERROR", f"{_OUT} is not JSON: {error}") from None


async def _run_awaiting(codes: list, variables: dict) -> object:
    for code in codes:
        last = eval(code, variables)
        if awaits(code):
            last = await last
    return await _settle(last, variables)


async def _settle(last: object, variables: dict) -> object:
    """Programs may end with a call of an async function, or assign one."""
    if is_awaitable(last):
        last = await last
    if is_awaitable(variables.get(_OUT)):
        variables[_OUT] = await variables[_OUT]
    return last


def _json_or_none(value: object) -> object:
    try:
        return json_copy(value)
    except Exception:
        return None
