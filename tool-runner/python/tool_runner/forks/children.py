"""Children of a template: each waits for one call, isolated from all others.

    template     clones   first process       forks   runner
    the tool is  ------>  of new namespaces:  ----->  waits for its call
    loaded here           isolates itself             as a parked runner
"""

import gc
import os
import signal
import socket

from .descriptors import close_all_but
from .isolation import TEMPLATE_DIRECTORY, Isolation
from ..errors import describe
from ..json_codec import encode
from ..parked import serve
from ..runner import warm_up
from ..wake_channel import WakeChannel

# Purposes of a child's connections: the runner's descriptors, but for that of its first process.
_ROLES = ("report", "wake", "out", "err")
_GATEWAY_ROLE = "gateway"
_GO = b"go\n"
_SIGNAL_BASE = 128  # An exit code is 128 + the number of a signal, as in shells.


class Children:
    """Makes the children of this process."""

    def __init__(
        self, settings: dict, module: str, channel: WakeChannel, generators: object
    ) -> None:
        """Raises KeyError, ValueError or OSError for settings, or a machine, that do not fit."""
        self._isolation = Isolation(settings)
        self._has_gateway = settings["gateway"]
        self._generators = generators
        self._module = module
        self._channel = channel

    def make(self, orders: object) -> int:
        """Makes a child for each order. Returns in a child's runner, with its exit status."""
        self._isolation.lift_limits()
        # A full collection writes to every object, and would copy all of them in each child.
        gc.freeze()
        # The kernel reaps children (wait(2)).
        on_child_end = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        pids = self._isolation.pids()
        for order in orders:
            pid = next(pids, None)
            if pid is None:
                self._channel.report({"failed": "the template has given out all process ids"})
                continue
            try:
                first = self._isolation.clone()
            except OSError as error:
                self._channel.report({"failed": describe(error)})
                continue
            if first == 0:
                return self._become_first(order, pid, on_child_end)
            self._channel.report({"forked": first})
        os._exit(0)

    def _become_first(self, order: dict, pid: int, on_child_end: object) -> int:
        """Isolates the child and forks its runner, with this process id. Returns in the runner."""
        connection = None
        try:
            connection, wake, out, err = (_connect(order["word"], role) for role in _ROLES)
            gateway = _connect(order["word"], _GATEWAY_ROLE) if self._has_gateway else None
            # Signals to a process group cross pid namespaces: without a session of its own, the
            # child would reach the template. In any sandbox the runner leads none.
            os.setsid()
            self._isolation.enter_user()
            self._isolation.set_next_pid(pid)
            self._isolation.mount(order["directory"])
            if os.read(connection, len(_GO)) != _GO:
                os._exit(0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._isolation.drop_privileges(order["cpus"])
            # Before the fork: handlers of `os.register_at_fork` are code of the tool.
            self._generators.seed()
            runner = os.fork()
            if runner == 0 and os.getpid() != pid:
                raise OSError(f"process id {pid} is taken")
        except BaseException as error:
            if connection is not None:
                _report(connection, {"failed": describe(error)})
            os._exit(1)
        if runner != 0:
            _wait(connection, runner)
        # None stands for a handler of a library, which cannot be set again.
        signal.signal(signal.SIGCHLD, on_child_end or signal.SIG_DFL)
        return self._run(wake, out, err, gateway)

    def _run(self, wake: int, out: int, err: int, gateway: "int | None") -> int:
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        close_all_but({0, 1, 2, wake} if gateway is None else {0, 1, 2, wake, gateway})
        self._isolation.limit()
        warm_up(self._module)
        try:
            return serve(WakeChannel(wake), gateway)
        finally:
            # Cycles of objects may hold open files.
            gc.unfreeze()


def _connect(word: str, role: str) -> int:
    """A connection to the worker, with the child's word. No program inherits it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(f"{TEMPLATE_DIRECTORY}/socket")
    connection.sendall(f"{word} {role}\n".encode())
    return connection.detach()


def _report(connection: int, message: dict) -> None:
    os.write(connection, encode(message) + b"\n")


def _wait(connection: int, runner: int) -> None:
    """Reaps the processes of the namespace until the runner has ended, reports that, and ends."""
    try:
        # Their handlers are the module's.
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        close_all_but({connection})
        pid = 0
        while pid != runner:
            pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        _report(connection, {"exit-code": code if code >= 0 else _SIGNAL_BASE - code})
        # Exit handlers are the runner's.
        os._exit(0)
    finally:
        os._exit(1)
