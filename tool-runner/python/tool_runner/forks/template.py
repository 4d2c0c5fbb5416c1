"""A runner that loads its tool once and forks children for its calls. See
tool-runner/PROTOCOL.md, "Templates".
"""

import gc
import os
import sys

from .descriptors import close_all_but
from .huge_pages import collapse
from ..errors import describe
from ..json_codec import decode
from ..idle.parked import REHEARSALS, load, refuse, take_parameters
from ..idle.waiting import WaitingRehearsal
from ..runner import fail, prepare

_WORK_DIRECTORY_NAMES = {"input", "output", "status.pipe", "runner_args.json"}


def template(argv: "list[str]") -> int:
    """Loads the module `argv[2]` and makes children for orders. Returns the exit status of the
    process that this is then: the template, or a child.
    """
    if len(argv) != 5:
        return fail("usage: tool_runner --template MODULE TOOLS_DIR RUNNER_ARGS_FILE")
    module, tools_dir, args_file, channel = take_parameters(argv)
    own_descriptors = {0, 1, 2, channel.descriptor}
    close_all_but(own_descriptors)
    # Reads no more than there is, and leaves the descriptor to its owner.
    lines = open(channel.descriptor, "rb", closefd=False)
    line = lines.readline()
    if not line:
        return 0
    settings = decode(line)
    prepare(tools_dir)
    status = load(module, channel, settings["gateway"])
    if status is not None:
        return status
    waiting = WaitingRehearsal(module, settings["gateway"])
    for _ in range(REHEARSALS):
        waiting.rehearse()
    # Garbage may hold open files.
    gc.collect()
    children = _prepare_children(settings, module, waiting, channel, args_file, own_descriptors)
    collapse()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # Its reader may be gone. Children have other streams.
    channel.report({"ready": True})
    return children.make(map(decode, lines))


def _prepare_children(
    settings: dict,
    module: str,
    waiting: WaitingRehearsal,
    channel: object,
    args_file: str,
    own: "set[int]",
) -> object:
    """Refuses a tool that may not be forked, or whose children cannot be isolated."""
    places = {path: set() for path in settings["tmpfs"]}
    places[os.path.dirname(args_file)] = _WORK_DIRECTORY_NAMES
    # After the module, which may have another one by the name of one that these need.
    try:
        from .children import Children
        from .fork_safety import why_not_to_fork
        from .reseeding import Generators

        generators = Generators()
        children = Children(settings, module, waiting, channel, generators)
        reason = why_not_to_fork(own, places) or generators.find()
        if reason is None:
            children.prepare()
            return children
    except Exception as error:
        refuse(channel, f"children of it cannot be isolated: {describe(error)}")
    refuse(channel, f"it cannot be forked after its import: {reason}")
