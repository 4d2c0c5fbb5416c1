"""Calls and describes tools that its entry does not list, or that allow no programs."""

from functools import partial

from support.attempts import attempt
from support.channel import own_channel, reach_called

# The last is listed, and allows agents only.
TOOLS = ("called.unlisted", "called.direct")


def attack(target):
    channel = own_channel(target)
    reach_called(channel)

    def token_of(result):
        return f"it says {result['token']}" if result.get("token") == target["token"] else None

    def run(tool):
        return token_of(channel.run(tool))

    def chain(tool):
        steps = [{"toolId": tool}, {"toolId": "called.listed"}]
        return token_of(channel.ask("run_chain", {"steps": steps})["stepResults"][0]["structured"])

    def describe(tool):
        return str(channel.ask("describe_tool", {"id": tool, "level": "full"}))

    def examples(tool):
        return str(channel.ask("list_tool_examples", {"id": tool, "max": 1}))

    def search(tool):
        found = channel.ask("search_tools", {"query": "", "limit": 50})["results"]
        return next((one["id"] for one in found if one["id"] == tool), None)

    ways = (run, chain, describe, examples, search)
    return attempt({f"{way.__name__} {tool}": partial(way, tool) for tool in TOOLS for way in ways})
