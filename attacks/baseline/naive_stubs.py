"""Stubs by a generator that trusts tools: their texts go in as they are."""

import json


def stubs_of(path):
    """The stubs of a tool that a file describes."""
    with open(path) as file:
        tool = json.load(file)
    members = ", ".join(f'"{name}": Any' for name in tool["parameters"]["properties"])
    return f'''
hostile_arguments = TypedDict("hostile_arguments", {{{members}}})

async def hostile(**arguments):
    """{tool["description"]}"""
'''
