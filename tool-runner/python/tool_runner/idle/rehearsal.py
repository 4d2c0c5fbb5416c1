"""Calls of nothing, which a runner makes while it is idle.

The interpreter specializes its code by them (PEP 659), and a child of a template copies each page
that a call writes to for the first time: then no caller waits for either.
"""

from .. import exit
from ..json_codec import encode
from ..protocol import result_document
from ..runner import context_of, result_of, run_tool, understand
from .wake_channel import RehearsalChannel


def rehearse(module: str) -> None:
    """Runs the steps of a call, but for its files. Without a module, it is a call of a program."""
    with RehearsalChannel() as channel:
        call = understand(channel.take(encode({**_NOTHING, "module": __name__})))
        context = context_of(call)
        if module:
            result = result_of(run_tool(call, context), context)
        else:
            from ..programs.program import rehearse

            result = rehearse(context)
        channel.give(result_document(result, context.described_outputs(), call.max_result_bytes))
        channel.finish()
    exit.rehearse()


def _nothing(text: str) -> dict:
    return {"text": text}


# A call of it, with all that a worker says of one; no path leads anywhere.
_NOTHING = {
    **{"function": "_nothing", "args": {"text": ""}, "tool_config": {}},
    **{"artifact_paths": {}, "artifact_metadata": {}, "deadline_ms": 1_700_000_000_000},
    **dict.fromkeys(("output_dir", "result_file", "status_pipe", "tools_dir"), "/dev/null/none"),
    **dict.fromkeys(("user_id", "session_id", "app_name", "task_id"), "nobody"),
}
