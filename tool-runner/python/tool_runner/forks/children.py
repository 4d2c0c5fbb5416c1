"""Children of a template: each waits for one call, apart from all others.

    template     clones   first process      forks   runner
    the tool is  ------>  of namespaces of   ----->  waits for its call
    loaded here           its own, which it          as a parked runner
                          makes ready before         does
"""

# `signal` itself makes objects of all numbers, in memory that each child would have to copy.
import _signal as signal
import gc
import os
from _socket import AF_UNIX, SOCK_STREAM, socket

from .fork_mask import ForkMask
from .reseeding import Generators
from .isolation import TEMPLATE_DIRECTORY, Isolation, close_all_but
from ..parked import say, serve
from ..protocol import describe
from ..rehearsal import rehearse

# Whose connection it is, and what for: descriptors of the runner but for the first, by which the
# first process reports.
_ROLES = ("report", "wake", "out", "err")
_GO = b"go\n"
# After so many runs, the interpreter has made code quick (PEP 659). What it makes of it, the
# children share.
_REHEARSALS = 20
# A memory file system in every child: on a disk, files take longer than all the rest.
_MEMORY = "/tmp"
# By which the runner says that it ends with 0, and nobody need wait until its memory is given back.
# Whoever else sends it inside ends the sandbox, as whoever ends the runner does.
_DONE = signal.SIGUSR1
_AWAITED = (signal.SIGCHLD, _DONE)
_ALL = frozenset(signal.valid_signals())
_SIGNAL_BASE = 128  # 128 + the number of a signal is the exit code for it, as in shells.


class Children:
    """Makes the children of this process."""

    def __init__(self, settings: dict, channel: int, args_file: str, fork_mask: ForkMask) -> None:
        """
        Raises KeyError, ValueError or OSError where the settings are not those of PROTOCOL.md, or
        children of this machine could not be isolated."""
        self._isolation = Isolation(settings)
        self.generators = Generators()
        self._channel = channel
        self._args_file = args_file
        self._fork_mask = fork_mask

    def make(self, orders: object) -> int:
        """
        Makes one for each order until there are no more. Returns the exit status of the process
        that this is then.
        """
        self._isolation.lift_limits()
        for _ in range(_REHEARSALS):
            rehearse(_MEMORY)
        # To look at an object is to write to it, and where it was forked with that costs a page.
        gc.freeze()
        # The kernel waits for children by itself (wait(2)); they get the module's handler back.
        on_child_end = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        numbers = self._isolation.numbers()
        while True:
            order = orders.next()
            if order is None:
                os._exit(0)
            number = next(numbers, None)
            if number is None:
                say(self._channel, {"failed": "the template has given out all process ids"})
                continue
            try:
                pid = self._isolation.clone()
            except OSError as error:
                say(self._channel, {"failed": describe(error)})
                continue
            if pid == 0:
                return self._become_first(order, number, on_child_end)
            say(self._channel, {"forked": pid})

    def _become_first(self, order: dict, number: int, on_child_end: object) -> int:
        """What a child does. Returns in the runner's process only, whose id is `number`."""
        report = None
        try:
            report, wake, out, err = (_connect(order["word"], role) for role in _ROLES)
            # A session of its own first of all: what is sent to a process group crosses pid
            # namespaces, and so would reach the template and all its children. The runner does not
            # lead it, as in any other sandbox.
            os.setsid()
            self._isolation.name_user()
            self._isolation.number_next(number)
            self._isolation.mount(order["directory"])
            if os.read(report, len(_GO)) != _GO:
                os._exit(0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._isolation.give_up(order["cpus"])
            _expect_signals(self._fork_mask)
            # Before the fork: handlers of `os.register_at_fork` are code of the tool, too.
            self.generators.seed()
            runner = os.fork()
            if runner == 0 and os.getpid() != number:
                raise OSError(f"process id {number} is taken")
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
        self._isolation.limit()
        rehearse(_MEMORY)
        gc.freeze()
        try:
            return serve(wake, self._args_file, _announce)
        finally:
            # Objects that refer to each other go by no other way.
            gc.unfreeze()


def _connect(word: str, role: str) -> int:
    """A connection to the worker that says whose it is. No program inherits it."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.connect(f"{TEMPLATE_DIRECTORY}/socket")
    connection.sendall(f"{word} {role}\n".encode())
    return connection.detach()


def _expect_signals(fork_mask: ForkMask) -> None:
    """
    Has the signals that tell of an end wait until they are asked for, from before there is anybody
    to send them.

    The kernel drops those that come from inside to a first process that neither blocks nor handles
    them (pid_namespaces(7)), and a call may be over before the first process has run again. Once it
    runs, it has all others wait for ever: what handles them is the module's.
    """
    fork_mask.block(_AWAITED)
    # Once in vain, so that in the end everything for it is in memory.
    os.kill(os.getpid(), _DONE)
    signal.sigwait((_DONE,))


def _announce(status: int) -> None:
    """Says that the runner ends with 0."""
    if status == 0:
        os.kill(1, _DONE)


def _stay(report: int, runner: int) -> None:
    """
    What the first process of a pid namespace is there for: it waits for the others, and tells how
    the runner ended.
    """
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, _ALL)
        close_all_but([report])
        code = None
        while code is None:
            code = 0 if signal.sigwait(_AWAITED) == _DONE else _exit_code_of(runner)
        os.write(report, b'{"exit-code": %d}\n' % code)
    finally:
        # Whatever the module has made of what is used here: its exit handlers are the runner's.
        os._exit(0)


def _exit_code_of(runner: int) -> "int | None":
    """Waits for all that have ended. None when the runner has not."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == runner:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else _SIGNAL_BASE - code
