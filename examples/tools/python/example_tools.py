"""Example tools: plain functions that take arguments by name and answer with a dict.

A tool that wants more than its arguments takes the context: status updates, artifacts,
configuration. Modules that only one tool needs are imported inside it, so that the others do not
wait for them.
"""

import time

from secure_tool_runtime import ToolContext, ToolError


def echo_tool(ctx: ToolContext, message: str = "Hello") -> dict[str, object]:
    """Answers with the message."""
    ctx.send_status("Echoing message...")
    return {"status": "success", "echoed_message": message}


def process_file(ctx: ToolContext, input_file: str) -> dict[str, object]:
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


def execute_python(ctx: ToolContext, code: str) -> dict[str, object]:
    """
    Runs code and answers with what it printed and, if its last line is an expression, that value's
    repr.
    """
    import ast
    import contextlib
    import io

    stdout = io.StringIO()
    namespace: dict[str, object] = {"__name__": "__main__"}
    value: object = None
    ctx.send_status("Running code...")
    try:
        tree = ast.parse(code, "<code>")
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        with contextlib.redirect_stdout(stdout):
            exec(compile(tree, "<code>", "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<code>", "eval"), namespace)
    except SyntaxError as error:
        raise ToolError(f"SyntaxError: {error.msg} (line {error.lineno})") from error
    except Exception as error:
        place = _line_in_code(error)
        raise ToolError(f"{type(error).__name__}: {error} (line {place})") from error

    answer: dict[str, object] = {"status": "success", "stdout": stdout.getvalue()}
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


def convert_temperature(value: float, source: str, target: str) -> dict[str, object]:
    """
    Converts a temperature. Shows how a tool refuses what it cannot do: with a ToolError that says
    why.
    """
    # Degrees per kelvin, and the degrees at absolute zero.
    units = {"celsius": (1, -273.15), "fahrenheit": (9 / 5, -459.67), "kelvin": (1, 0)}
    for unit in (source, target):
        if unit not in units:
            raise ToolError(f'Unknown unit "{unit}"; known are {", ".join(units)}')
    scale, zero = units[source]
    kelvin = (value - zero) / scale
    if kelvin < 0:
        raise ToolError(f"{value} {source} is below absolute zero")
    scale, zero = units[target]
    return {"status": "success", "value": round(kelvin * scale + zero, 2), "unit": target}


def count_slowly(ctx: ToolContext, to: int = 5, pause_seconds: float = 0.5) -> dict[str, object]:
    """Counts up, one status per step: what a long-running tool looks like to its user."""
    for number in range(1, to + 1):
        if number > 1:
            time.sleep(pause_seconds)
        ctx.send_status(f"Counted to {number} of {to}")
    return {"status": "success", "counted_to": to}
