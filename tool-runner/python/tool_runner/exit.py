"""
Ends the process of a call without taking the interpreter apart, which takes up to 200 ms where
large packages are loaded.

What others can see of an interpreter's end happens here, too: threads are joined, exit handlers
run, output is flushed. Objects that still live are not finalized, unless a file is open for
writing: some of them may hold back what belongs in it.
"""

import atexit
import os
import stat
import sys

# Of a link in /proc/self/fd: the descriptor was opened for writing (proc_pid_fd(5)).
_IS_WRITABLE = 0o200


def leave(status: int, announce: object = None) -> None:
    """Ends the process with a status; returns where the interpreter has to end in its usual way.

    `announce` is called with the status when nothing is left but to go.
    """
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        if writes_files():
            return
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            stream.flush()
        _flush_libraries()
        if announce is not None:
            announce(status)
    except BaseException:
        return  # The interpreter's own end meets the same, and says so in its way.
    os._exit(status)


def writes_files() -> bool:
    """Whether a file is open for writing, by whatever library."""
    return any(map(_is_written, _descriptors()))


def _descriptors() -> object:
    """Numbers of those that may be open, but for the first three."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd") if name not in ("0", "1", "2")]
    except FileNotFoundError:
        return range(3, os.sysconf("SC_OPEN_MAX"))


def _is_written(descriptor: int) -> bool:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
    except OSError:
        return False  # It is not open, or was the one that the list was read by.
    try:
        return bool(os.lstat(f"/proc/self/fd/{descriptor}").st_mode & _IS_WRITABLE)
    except FileNotFoundError:
        return True  # Without /proc nothing tells.


def _flush_libraries() -> None:
    """Flushes what C libraries hold back (fflush(3))."""
    if "_ctypes" in sys.modules or any(map(_is_library, sys.modules.values())):
        import _ctypes

        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None), "fflush"), (None,))


def _is_library(module: object) -> bool:
    """Whether it may print by itself: what is Python's own does not."""
    # Some are objects that only stand where a module would.
    place = vars(module).get("__file__") if isinstance(module, _Module) else None
    return isinstance(place, str) and not place.endswith(".py") and "/lib-dynload/" not in place


_Module = type(sys)
