"""Example tools: plain functions that take arguments by name and answer with a dict.

A tool that wants more than its arguments takes the context: status updates, artifacts,
configuration. Modules that only one tool needs are imported inside it, so that the others do not
wait for them.
"""

import time

from secure_tool_runtime import ToolContext, ToolError


def echo_tool(ctx: ToolContext, message: str = "Hello") -> dict:
    """Answers with the message."""
    ctx.send_status("Echoing message...")
    return {"status": "success", "echoed_message": message}


def process_file(ctx: ToolContext, input_file: str) -> dict:
    """Counts lines, words and characters of a text artifact and saves them as summary.txt."""
    ctx.send_status("Loading input file...")
    content = ctx.load_artifact_text("input_file")
    if content is None:
        return {"status": "error", "error": "Could not load input artifact"}

    ctx.send_status("Analyzing content...")
    lines, words, characters = len(content.split("\n")), len(content.split()), len(content)
    ctx.save_artifact_text(
        "summary.txt",
        f"Lines: {lines}\nWords: {words}\nChars: {characters}",
        description=f"Size of {input_file}",
    )
    return {
        "status": "success",
        "statistics": {"line_count": lines, "word_count": words, "char_count": characters},
        "output_artifact": "summary.txt",
    }


def execute_python(ctx: ToolContext, code: str) -> dict:
    """
    Runs code and answers with what it printed and, if its last line is an expression, that value's
    repr.
    """
    import ast
    import contextlib
    import io

    stdout = io.StringIO()
    namespace = {"__name__": "__main__"}
    value = None
    ctx.send_status("Running code...")
    try:
        tree = ast.parse(code, "<code>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(stdout):
            exec(compile(tree, "<code>", "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<code>", "eval"), namespace)
    except SyntaxError as error:
        raise ToolError(f"SyntaxError: {error.msg} (line {error.lineno})") from error
    except Exception as error:
        place = _line_in_code(error)
        raise ToolError(f"{type(error).__name__}: {error} (line {place})") from error

    answer = {"status": "success", "stdout": stdout.getvalue()}
    if value is not None:
        answer["result"] = repr(value)
    return answer


def _line_in_code(error: BaseException) -> int:
    """The last line of the given code that was running when the error was raised."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<code>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def convert_temperature(value: float, source: str, target: str) -> dict:
    """
    Converts a temperature. Shows how a tool refuses what it cannot do: with a ToolError that says
    why.
    """
    from_kelvin = {
        "celsius": lambda kelvin: kelvin - 273.15,
        "fahrenheit": lambda kelvin: kelvin * 9 / 5 - 459.67,
        "kelvin": lambda kelvin: kelvin,
    }
    to_kelvin = {
        "celsius": lambda degrees: degrees + 273.15,
        "fahrenheit": lambda degrees: (degrees + 459.67) * 5 / 9,
        "kelvin": lambda degrees: degrees,
    }
    for unit in (source, target):
        if unit not in to_kelvin:
            raise ToolError(f'Unknown unit "{unit}"; known are {", ".join(to_kelvin)}')
    kelvin = to_kelvin[source](value)
    if kelvin < 0:
        raise ToolError(f"{value} {source} is below absolute zero")
    return {"status": "success", "value": round(from_kelvin[target](kelvin), 2), "unit": target}


def count_slowly(ctx: ToolContext, to: int = 5, pause_seconds: float = 0.5) -> dict:
    """Counts up, one status per step: what a long-running tool looks like to its user."""
    for number in range(1, to + 1):
        if number > 1:
            time.sleep(pause_seconds)
        ctx.send_status(f"Counted to {number} of {to}")
    return {"status": "success", "counted_to": to}
