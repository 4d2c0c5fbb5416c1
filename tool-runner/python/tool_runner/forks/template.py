"""
A runner that loads its tool once and makes children that wait for one call each. See
tool-runner/PROTOCOL.md.
"""

import gc
import os
import sys

from .fork_mask import ForkMask
from .fork_safety import close_inherited, why_not_to_fork
from ..json_codec import decode
from ..parked import load, refuse, say, take_parameters
from ..protocol import describe
from ..runner import prepare, unusable

_MAX_LINE_BYTES = 65_536
_WORK_DIRECTORY_NAMES = {"input", "output", "status.pipe", "runner_args.json"}


def template(argv: "list[str]") -> int:
    """
    Makes children from the module `argv[2]` as it is told to. Returns the process's exit status, or
    that of a child.
    """
    if len(argv) != 5:
        return unusable("usage: tool_runner --template MODULE TOOLS_DIR RUNNER_ARGS_FILE")
    module, tools_dir, args_file, channel = take_parameters(argv)
    own_descriptors = {0, 1, 2, channel}
    close_inherited(own_descriptors)
    orders = Orders(channel)
    settings = orders.next()
    if settings is None:
        return 0
    prepare(tools_dir)
    fork_mask = ForkMask()
    status = load(module, channel)
    if status is not None:
        return status
    # What is only waiting to be collected may have files open.
    gc.collect()
    try:
        # Not before the module, which may have one of its own by the name of one that this needs.
        from .children import Children

        children = Children(settings, channel, args_file, fork_mask)
    except Exception as error:
        refuse(channel, f"children of it cannot be isolated: {describe(error)}")
    places = {path: set() for path in settings["tmpfs"]}
    places[os.path.dirname(args_file)] = _WORK_DIRECTORY_NAMES
    reason = why_not_to_fork(own_descriptors, places) or children.generators.find()
    if reason is not None:
        refuse(channel, f"it cannot be forked after its import: {reason}")
    _flush()
    say(channel, {"ready": True})
    return children.make(orders)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # Whoever reads it may be gone; the children have streams of their own.


class Orders:
    """What the worker says: lines of JSON from a socket that nobody else reads."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._held = b""

    def next(self) -> "dict | None":
        """Waits for one; None when there will be no more."""
        while b"\n" not in self._held:
            piece = os.read(self._channel, _MAX_LINE_BYTES)
            if not piece or len(self._held) > _MAX_LINE_BYTES:
                return None
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return decode(line)
