"""Has the stubs of a tool hold code: of its description, its names or its values."""

import ast

from support.attempts import answer

# What the texts of support/hostile_tool.json call.
MARK = "str_broke_out"


def attack(target):
    stubs = target["stubs"] if "stubs" in target else stubs_of_worker()
    if "hostile" not in stubs:
        raise RuntimeError("the stubs do not have the tool")
    try:
        nodes = list(ast.walk(ast.parse(stubs)))
    except SyntaxError as error:
        return answer([f"line {error.lineno} of the stubs is no Python: {error.msg}"], [])
    calls = [node for node in nodes if isinstance(node, ast.Name) and node.id == MARK]
    lines = sorted({node.lineno for node in calls})
    return answer([f"line {line} of the stubs calls {MARK}" for line in lines], ["they call nothing"])


def stubs_of_worker():
    from hostile_stubs import STUBS

    return STUBS
