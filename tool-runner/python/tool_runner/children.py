"""Children of a template: each waits for one call, apart from all others.

    template     clones   first process      forks   runner
    the tool is  ------>  of namespaces of   ----->  waits for its call
    loaded here           its own, which it          as a parked runner
                          makes ready before         does
"""

import gc
import os
import signal
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket

from .isolation import TEMPLATE_DIRECTORY, WORK_DIRECTORY, Isolation, close_all_but
from .leaving import QuickEnd
from .parked import say, serve
from .protocol import describe
from .rehearsal import rehearse

# Whose connection it is, and what for: descriptors of the runner but for the first, by which the first process reports.
_ROLES = ("report", "wake", "out", "err")
_GO = b"go\n"
# After so many runs, the interpreter has made code quick (PEP 659). What it makes of it, the children share.
_REHEARSALS = 20
_SIGNAL_BASE = 128  # 128 + the number of a signal is the exit code for it, as in shells.


class Children:
    """Makes the children of this process."""

    def __init__(self, settings: dict, channel: int, args_file: str, end: QuickEnd) -> None:
        """Raises KeyError or ValueError where the settings are not those of PROTOCOL.md, or the machine is unknown."""
        self._isolation = Isolation(settings)
        self._channel = channel
        self._args_file = args_file
        self._end = end

    def make(self, orders: object) -> int:
        """Makes one for each order until there are no more. Returns the exit status of the process that this is then."""
        self._isolation.lift_limits()
        for _ in range(_REHEARSALS):
            rehearse(WORK_DIRECTORY)
        # The kernel waits for children by itself (wait(2)); they get the module's handler back.
        on_child_end = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            order = orders.next()
            if order is None:
                os._exit(0)
            try:
                pid = self._isolation.clone()
            except OSError as error:
                say(self._channel, {"failed": describe(error)})
                continue
            if pid == 0:
                return self._become_first(order, on_child_end)
            say(self._channel, {"forked": pid})

    def _become_first(self, order: dict, on_child_end: object) -> int:
        """What a child does. Returns in the runner's process only."""
        report = None
        try:
            report, wake, out, err = (_connect(order["word"], role) for role in _ROLES)
            # As everywhere: a session of the sandbox's own, which the runner does not lead.
            os.setsid()
            self._isolation.name_user()
            self._isolation.mount(order["directory"])
            if os.read(report, len(_GO)) != _GO:
                os._exit(0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._isolation.give_up(order["cpus"])
            runner = os.fork()
        except BaseException as error:
            if report is not None:
                say(report, {"failed": describe(error)})
            os._exit(1)
        if runner != 0:
            _stay(report, runner)
        if on_child_end is not None:
            signal.signal(signal.SIGCHLD, on_child_end)
        return self._run(wake, out, err)

    def _run(self, wake: int, out: int, err: int) -> int:
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, place in ((null, 0), (out, 1), (err, 2)):
            os.dup2(descriptor, place)
        close_all_but([0, 1, 2, wake])
        _reseed()
        self._isolation.limit()
        rehearse(WORK_DIRECTORY)
        gc.freeze()
        runner_pid = os.getpid()
        status = serve(wake, self._args_file)
        if os.getpid() == runner_pid:
            self._end.leave(status)
        return status


def _connect(word: str, role: str) -> int:
    """A connection to the worker that says whose it is. No program inherits it."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.connect(f"{TEMPLATE_DIRECTORY}/socket")
    connection.sendall(f"{word} {role}\n".encode())
    return connection.detach()


def _stay(report: int, runner: int) -> None:
    """What the first process of a pid namespace is there for: waits for the others, and tells how the runner ended."""
    close_all_but([report])
    # A signal from inside reaches the first process only where it handles it (pid_namespaces(7)).
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    pid = status = None
    while pid != runner:
        pid, status = os.waitpid(-1, 0)
    code = os.waitstatus_to_exitcode(status)
    os.write(report, b'{"exit-code": %d}\n' % (code if code >= 0 else _SIGNAL_BASE - code))
    os._exit(0)


def _reseed() -> None:
    """Has numpy's generator differ from child to child. Python does so with its own when it forks."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
