"""Stubs by a generator that trusts tools: their texts go in as they are."""

import json


def hostile_stubs(path):
    """For each text of a file, the stubs of a tool that has it in one place."""
    with open(path) as file:
        texts = json.load(file)
    return [
        {"place": place, "text": text, "stubs": stubs.replace("TEXT", text)}
        for place, stubs in STUBS.items()
        for text in texts
    ]


STUBS = {
    "description": 'async def hostile(**arguments):\n    """TEXT"""\n',
    "name": 'Arguments = TypedDict("Arguments", {"TEXT": Any})\n',
    "value": 'Arguments = TypedDict("Arguments", {"value": Literal["TEXT"]})\n',
}
