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
from ..parked import report, serve
from ..runner import warm_up

# Purposes of a child's connections: the runner's descriptors, but for that of its first process.
_ROLES = ("report", "wake", "out", "err")
_GATEWAY_ROLE = "gateway"
_GO = b"go\n"
# From the runner: only its exit with 0 remains. Without it the answer waits until its memory is
# freed, and comes after 8.9 in place of 7.3 ms. A tool that sends it ends its own sandbox.
_DONE = signal.SIGRTMAX
_ALL_BUT_DONE = signal.valid_signals() - {_DONE}
_SIGNAL_BASE = 128  # An exit code is 128 + the number of a signal, as in shells.


class Children:
    """Makes the children of this process."""

    def __init__(
        self, settings: dict, module: str, channel: int, args_file: str, generators: object
    ) -> None:
        """Raises KeyError, ValueError or OSError for settings, or a machine, that do not fit."""
        self._isolation = Isolation(settings)
        self._has_gateway = settings["gateway"]
        self._generators = generators
        self._module = module
        self._channel = channel
        self._args_file = args_file

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
                report(self._channel, {"failed": "the template has given out all process ids"})
                continue
            try:
                first = self._isolation.clone()
            except OSError as error:
                report(self._channel, {"failed": describe(error)})
                continue
            if first == 0:
                return self._become_first(order, pid, on_child_end)
            report(self._channel, {"forked": first})
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
            # Before the fork: the kernel drops signals from inside that a first process ignores.
            on_done = signal.signal(_DONE, lambda *_: _end(connection, 0))
            runner = os.fork()
            if runner == 0 and os.getpid() != pid:
                raise OSError(f"process id {pid} is taken")
        except BaseException as error:
            if connection is not None:
                report(connection, {"failed": describe(error)})
            os._exit(1)
        if runner != 0:
            _wait(connection, runner)
        for number, handler in ((_DONE, on_done), (signal.SIGCHLD, on_child_end)):
            # None stands for a handler of a library, which cannot be set again.
            signal.signal(number, handler or signal.SIG_DFL)
        return self._run(wake, out, err, gateway)

    def _run(self, wake: int, out: int, err: int, gateway: "int | None") -> int:
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        close_all_but({0, 1, 2, wake} if gateway is None else {0, 1, 2, wake, gateway})
        self._isolation.limit()
        warm_up(self._module)
        try:
            return serve(wake, self._args_file, _report_done, gateway)
        finally:
            # Cycles of objects may hold open files.
            gc.unfreeze()


def _connect(word: str, role: str) -> int:
    """A connection to the worker, with the child's word. No program inherits it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(f"{TEMPLATE_DIRECTORY}/socket")
    connection.sendall(f"{word} {role}\n".encode())
    return connection.detach()


def _report_done(status: int) -> None:
    if status == 0:
        os.kill(1, _DONE)


def _wait(connection: int, runner: int) -> None:
    """Reaps the processes of the namespace until the runner has ended, reports that, and ends."""
    try:
        # Their handlers are the module's.
        signal.pthread_sigmask(signal.SIG_SETMASK, _ALL_BUT_DONE)
        close_all_but({connection})
        pid = 0
        while pid != runner:
            pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        _end(connection, code if code >= 0 else _SIGNAL_BASE - code)
    finally:
        os._exit(1)


def _end(connection: int, exit_code: int) -> None:
    """Ends the first process, and all others with it. Exit handlers are the runner's."""
    report(connection, {"exit-code": exit_code})
    os._exit(0)
