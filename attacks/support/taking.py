"""
For attacks that take more than a limit: as much as they get, at most twice the bound, held for a
moment.
"""

import contextlib
import os
import signal
import time

from support.attempts import error_name

# So long that who looks now and then has looked, also where all processors are busy.
HOLD_SECONDS = 2.0


def take(bound, unit, step, still_held=None):
    """
    Calls `step`, which takes some more and says how much that was, until nearly twice the bound is
    held or it is refused. `still_held` says how much of it is left in the end, where somebody may
    take it away. What was taken is the caller's to give back.
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


def take_in_processes(bound, hold):
    """
    Takes bytes of memory in processes with a part of the bound each. `hold(part, stay)` is called
    in a child: it takes so much and calls `stay(taken)`, which does not return, in the process that
    is to hold it: the child, or one of its own.
    """
    holders = {}

    def start():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _hold(hold, bound // 4, writing)
        os.close(writing)
        received = os.read(reading, 40)
        os.close(reading)
        holder, taken = map(int, received.split() or (0, 0))
        if holder != child:
            os.waitpid(child, 0)
        if not received:
            raise MemoryError
        holders[holder] = taken
        return taken

    try:
        return take(bound, "bytes", start, lambda: sum(taken for pid, taken in holders.items() if _lives(pid)))
    finally:
        for pid in holders:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _hold(hold, part, writing):
    def stay(taken):
        os.write(writing, b"%d %d" % (os.getpid(), taken))
        signal.pause()

    try:
        hold(part, stay)
    finally:
        os._exit(0)


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


def take_in_files(bound, size, path_of, directory=None, put=fill):
    """
    Takes bytes of a disk in new files, and removes them. `path_of(number)` names each, in the
    directory of a descriptor or in the current one; `put(descriptor, size)` puts something there,
    and gives back what that takes.
    """
    paths = []

    def add():
        path = path_of(len(paths))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=directory)
        paths.append(path)
        try:
            return put(descriptor, size)
        finally:
            os.close(descriptor)

    try:
        return take(bound, "bytes", add)
    finally:
        for path in paths:
            os.unlink(path, dir_fd=directory)
