"""Tools that do not read their files, so that only the transfer of files is measured."""

import os

from secure_tool_runtime import ToolContext


def take(ctx: ToolContext, files: list = ()) -> dict:
    return {"files": len(ctx.list_artifacts())}


def pass_on(ctx: ToolContext, files: list = ()) -> dict:
    """Makes each input an output, without a copy."""
    for path in ctx.list_artifacts().values():
        directory, name = os.path.split(path)
        os.rename(path, os.path.join(os.path.dirname(directory), "output", f"passed-{name}"))
    return {}
