"""A tool that reads an artifact and saves another."""

from secure_tool_runtime import ToolContext


def copy(ctx: ToolContext, data: str) -> dict:
    text = ctx.load_artifact_text("data")
    ctx.save_artifact_text("copy.txt", text)
    return {"length": len(text)}
