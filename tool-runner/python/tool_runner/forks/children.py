"""Children of a template: each waits for one call, isolated from all others.

    template     clones   first process       forks   runner
    the tool is  ------>  of new namespaces:  ----->  waits for its call
    loaded here           isolates itself             as a parked runner

The first process runs no Python of its own (`tool-runner/native/`).
"""

import ctypes
import gc
import os
import resource

from .descriptors import close_all_but
from ..idle.parked import serve
from ..idle.rehearsal import rehearse
from ..idle.waiting import WaitingRehearsal
from ..idle.wake_channel import WakeChannel

_NATIVE = f"{os.path.dirname(__file__)}/native/{os.uname().machine}.so"
_MAX_PID = "/proc/sys/kernel/pid_max"


class Children:
    """Makes the children of this process."""

    def __init__(
        self,
        settings: dict,
        module: str,
        waiting: WaitingRehearsal,
        channel: WakeChannel,
        generators: object,
    ) -> None:
        """Raises KeyError, ValueError, AttributeError or OSError for settings, or a machine, that
        do not fit.
        """
        self._native = _open(settings)
        self._features = tuple(settings[name] for name in ("network", "terminals", "gateway"))
        self._generators = generators
        self._module = module
        self._waiting = waiting
        self._channel = channel

    def prepare(self) -> None:
        """From now on the kernel reaps the children of this process. Raises OSError."""
        # No child has a process id of the template's or of another one.
        with open(_MAX_PID) as file:
            self._pids = iter(range(os.getpid() + 1, int(file.read())))
        gateway = self._native.prepare(*self._features, self._channel.descriptor)
        if gateway == -1:
            raise OSError(ctypes.get_errno(), "process ids cannot be chosen, or limits not be set")
        self._gateway = gateway or None

    def make(self, orders: object) -> int:
        """Makes a child for each order. Returns in a child's runner, with its exit status."""
        # A full collection writes to every object, and would copy all of them in each child.
        gc.freeze()
        for order in orders:
            pid = next(self._pids, None)
            if pid is None:
                self._channel.report({"failed": "the template has given out all process ids"})
                continue
            first = self._make_child(order, pid)
            if first == 0:
                return self._run()
            if first == -1:
                self._channel.report({"failed": f"clone: {os.strerror(ctypes.get_errno())}"})
            else:
                self._channel.report({"forked": first})
        os._exit(0)

    def _make_child(self, order: dict, pid: int) -> int:
        """The id of its first process, or -1. Returns 0 in its runner."""
        cpus = order["cpus"]
        numbers = (ctypes.c_uint * len(cpus))(*cpus)
        word, directory = order["word"].encode(), order["directory"].encode()
        return self._native.child(word, directory, pid, numbers, len(cpus))

    def _run(self) -> int:
        # What the import has put at 0, or opened since it was looked at, is its siblings' too.
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        close_all_but({0, 1, 2, self._channel.descriptor} | {self._gateway} - {None})
        # Before handlers of `os.register_at_fork`, which are code of the tool.
        self._generators.seed()
        # Python learns of the fork only here, which is between two lines of its one thread, too.
        ctypes.pythonapi.PyOS_BeforeFork()
        ctypes.pythonapi.PyOS_AfterFork_Child()
        rehearse(self._module)
        self._waiting.rehearse()
        try:
            # That of the template has another identity.
            return serve(WakeChannel(self._channel.descriptor), self._gateway)
        finally:
            # Cycles of objects may hold open files.
            gc.unfreeze()


def _open(settings: dict) -> ctypes.CDLL:
    """The native part, which knows of the settings."""
    native = ctypes.PyDLL(_NATIVE, use_errno=True)
    native.limit.argtypes = [ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_ulonglong]
    native.filter.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    native.child.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_uint]
    native.child.restype = ctypes.c_long
    program = bytes.fromhex(settings["filter"])
    told = [native.filter(program, len(program))]
    for path, options in settings["tmpfs"].items():
        told.append(native.mount(path.encode(), options.encode()))
    for name, bounds in settings["limits"].items():
        soft, hard = (-1 if bound is None else bound for bound in bounds)
        told.append(native.limit(getattr(resource, f"RLIMIT_{name}"), soft, hard))
    if not all(told):
        raise ValueError("mounts, limits or filter do not fit")
    return native
