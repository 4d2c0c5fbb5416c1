"""
The end of a call's process.

Threads and exit handlers of the tool end first, within a limit. Then the process exits without
finalizing the interpreter, which takes up to 200 ms where large packages are loaded. It is
finalized where a file is open for writing: an object may hold back a part of its content.
"""

# `signal` without its enumerations, whose import takes a cold call from 56 to 66 ms.
import _signal as signal
import atexit
import io
import os
import stat
import sys

LINGER_SECONDS = 2.0
_NOTICE = (
    b"tool_runner: ended threads or exit handlers that were still running %g s after the tool\n"
    % LINGER_SECONDS
)
# Of a link in /proc/self/fd: the descriptor was opened for writing (proc_pid_fd(5)).
_IS_WRITABLE = 0o200
# The last one: hardly anything uses it. SIGALRM may be the tool's.
_SPARE_SIGNAL = 64


def register() -> None:
    """Lifts the limit after all exit handlers that are registered later."""
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


def limit(status: int) -> None:
    """Ends the process with this status when threads and exit handlers take too long.

    By a signal: a thread that has just started when the interpreter ends can crash it.
    """

    def end(_signal_number: int, _frame: object) -> None:
        try:
            os.write(2, _NOTICE)
        finally:
            os._exit(status)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LINGER_SECONDS)


def leave(status: int, before_exit: object = None) -> None:
    """Ends the process with a status; returns where the interpreter has to be finalized.

    `before_exit` is called when nothing else is left to do.
    """
    limit(status)
    _flush_output()
    try:
        if _has_to_wait(sys.modules.get("threading")):
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        if _writes_files():
            return
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            stream.flush()
        _flush_libraries()
        if before_exit is not None:
            _give_way()
            before_exit()
    except BaseException:
        return  # The interpreter meets the same when it ends, and reports it.
    os._exit(status)


def _give_way() -> None:
    """Has this thread wake up without interrupting others (SCHED_BATCH, sched(7)). When the worker
    kills the process, the kernel takes it apart in the thread's time, on a processor where the
    worker may be about to answer.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except (AttributeError, OSError):
        pass  # Musl lacks it.


def _has_to_wait(threading: object) -> bool:
    """Whether there are threads to join, or what `concurrent.futures` and others want run before
    that. To find nothing takes `threading` 70 µs.
    """
    if threading is None:
        return False
    # Python itself does not count one that still ends its thread-local values.
    has_threads = len(os.listdir("/proc/self/task")) > 1
    return has_threads or bool(getattr(threading, "_threading_atexits", True))


def rehearse() -> None:
    """Runs the steps of `leave` that change nothing, and a part of `limit`."""
    try:
        if signal.getsignal(_SPARE_SIGNAL) == signal.SIG_DFL:
            signal.signal(_SPARE_SIGNAL, _ignore)
            signal.signal(_SPARE_SIGNAL, signal.SIG_DFL)
        signal.getitimer(signal.ITIMER_REAL)
        for stream in filter(_is_of_python, (sys.stdout, sys.stderr)):
            stream.flush()
        _writes_files()
        _flush_libraries()
        os.sched_setscheduler(0, os.sched_getscheduler(0), os.sched_param(0))
    except Exception:
        pass  # At such an end the interpreter is finalized.


def _is_of_python(stream: object) -> bool:
    """Whether nothing of the tool's runs when a stream is flushed."""
    is_text = type(stream) is io.TextIOWrapper and type(stream.buffer) is io.BufferedWriter
    return is_text and type(stream.buffer.raw) is io.FileIO


def _ignore(_signal_number: int, _frame: object) -> None:
    pass


def _flush_output() -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        try:
            getattr(sys, name).flush()
        except Exception:
            # Nothing reads it any more. Python would end with status 120.
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _writes_files() -> bool:
    """Whether Python or a library has a regular file open for writing. Raises without /proc."""
    return any(map(_is_written, os.listdir("/proc/self/fd")))


def _is_written(descriptor: str) -> bool:
    if int(descriptor) <= 2:
        return False
    try:
        is_file = stat.S_ISREG(os.fstat(int(descriptor)).st_mode)
    except OSError:
        return False  # The list itself was read by it.
    return is_file and bool(os.lstat(f"/proc/self/fd/{descriptor}").st_mode & _IS_WRITABLE)


def _flush_libraries() -> None:
    """Flushes what C libraries hold back (fflush(3))."""
    if "ctypes" in sys.modules or any(map(_is_library, list(sys.modules.values()))):
        import ctypes

        ctypes.pythonapi.fflush(None)


def _is_library(module: object) -> bool:
    """Whether it is an extension module that does not belong to Python."""
    # Some entries of `sys.modules` are other objects.
    path = vars(module).get("__file__") if isinstance(module, type(sys)) else None
    return isinstance(path, str) and not path.endswith(".py") and "/lib-dynload/" not in path
