"""For attacks that take more than a limit: as much as they get, at most twice the bound, held for a moment."""

import os
import time

from support.attempts import error_name

# So long that who looks now and then has looked.
HOLD_SECONDS = 1.0


def take(bound, unit, step, still_held=None):
    """
    Calls `step`, which takes some more and says how much that was, until nearly twice the bound is held or it is
    refused. `still_held` says how much of it is left in the end, where somebody may take it away. What was taken is the
    caller's to give back.
    """
    held = most = 0
    refusal = "nothing refused more"
    try:
        while held + most <= 2 * bound:
            taken = step()
            held, most = held + taken, max(most, taken)
    except OSError as error:
        refusal = f"then {error_name(error)}"
    except MemoryError:
        refusal = "then MemoryError"
    if held > bound:
        time.sleep(HOLD_SECONDS)
    if still_held is not None:
        held = still_held()
    return {"reached": held > bound, "evidence": f"held {held:,} {unit} at once, bound {bound:,}; {refusal}"}


def count_living(pids):
    """How many of these processes live, of those that this one can look for."""
    return sum(map(_lives, pids))


def _lives(pid):
    try:
        # A child that has ended and was not waited for does not live.
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def size_on_disk(descriptor):
    """Bytes that a file takes, as the kernel counts them."""
    return os.fstat(descriptor).st_blocks * 512


def fill(descriptor, size):
    """Writes so many bytes that no file system can compress; gives back what they take."""
    piece = os.urandom(min(size, 1 << 20))
    while size > 0:
        size -= os.write(descriptor, piece[:size])
    return size_on_disk(descriptor)
