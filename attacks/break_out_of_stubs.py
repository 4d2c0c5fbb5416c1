"""Has stubs of tools hold code: a description, a name or a value that breaks out of its text."""

import ast

from support.attempts import answer

# What the texts of support/hostile_texts.json call.
MARK = "str_broke_out"


def attack(target):
    reached, useless = [], []
    for case in target["stubs"] if "stubs" in target else stubs_of_worker():
        what = f"a {case['place']} of {case['text']!r}"
        try:
            nodes = list(ast.walk(ast.parse(case["stubs"])))
        except SyntaxError as error:
            useless.append(f"{what} makes line {error.lineno} no Python")
            continue
        lines = [node.lineno for node in nodes if isinstance(node, ast.Name) and node.id == MARK]
        texts = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
        # Descriptions are cleaned: of them the call is left.
        wanted = f"{MARK}()" if case["place"] == "description" else case["text"]
        if lines:
            reached.append(f"{what} makes line {lines[0]} a call")
        elif not any(wanted in text for text in texts):
            useless.append(f"{what} is not in the stubs")
    if useless and not reached:
        # Nothing is held where nothing was tried.
        raise RuntimeError("; ".join(useless))
    return answer(reached, ["all texts stay texts"])


def stubs_of_worker():
    from hostile_stubs import STUBS

    return STUBS
