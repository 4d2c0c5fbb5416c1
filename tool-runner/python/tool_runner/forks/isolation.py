"""Isolates a child of a template: namespaces, mounts, capabilities, system calls, limits.

By `ctypes`: Python has some of these calls from 3.12 on, and others not at all.
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket

# clone(2) by machine.
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}
_NEW_MOUNT, _NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000
_NEW_USER, _NEW_PID, _NEW_NETWORK = 0x1000_0000, 0x2000_0000, 0x4000_0000

# Flags of mount(2).
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x4_0000

# Options of prctl(2).
_DROP_FROM_BOUNDING_SET, _AMBIENT, _AMBIENT_CLEAR_ALL = 24, 47, 4
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER_MODE = 38, 22, 2
_CAPABILITY_VERSION = 0x2008_0522
_MAX_CAPABILITIES = 64

# Interface requests of netdevice(7).
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 1

WORK_DIRECTORY = "/sandbox/work"
# What the template has and its children must not: their work directories and its socket.
TEMPLATE_DIRECTORY = "/sandbox/template"

# The last process id that the caller's pid namespace has given out (proc_sys_kernel(5)).
_LAST_PID, _MAX_PID = "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pid_max"

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.syscall.argtypes = [ctypes.c_long] * 6
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.unshare.argtypes = [ctypes.c_int]
_libc.capset.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


class _Program(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class Isolation:
    """The steps that isolate each child of one template, in their order. Each may raise OSError."""

    def __init__(self, settings: dict) -> None:
        """Raises KeyError or ValueError for settings or an unknown machine, and OSError where the
        kernel lets no process choose ids (CONFIG_CHECKPOINT_RESTORE).
        """
        os.close(os.open(_LAST_PID, os.O_WRONLY))
        self._clone_number = _CLONE_NUMBER[os.uname().machine]
        self._has_network = settings["network"]
        self._has_terminals = settings["terminals"]
        self._tmpfs = [(path.encode(), options.encode()) for path, options in settings["tmpfs"].items()]
        self._filter = bytes.fromhex(settings["filter"])
        self._program = _Program(len(self._filter) // 8, self._filter)
        self._limits = [
            (getattr(resource, f"RLIMIT_{name}"), _bound(soft), _bound(hard))
            for name, (soft, hard) in settings["limits"].items()
        ]

    def lift_limits(self) -> None:
        """Gives the template the worker's limits: they bound all of its children together."""
        for name, _, _ in self._limits:
            hard = resource.getrlimit(name)[1]
            resource.setrlimit(name, (hard, hard))

    def clone(self) -> int:
        """Makes a child, the first process of new namespaces. Returns its id, 0 in the child.

        Python's own work after a fork is left out: the child forks again before it runs a tool.
        """
        flags = _NEW_USER | _NEW_MOUNT | _NEW_PID | _NEW_IPC | _NEW_UTS
        if not self._has_network:
            flags |= _NEW_NETWORK
        return _checked("clone", _libc.syscall(self._clone_number, flags | signal.SIGCHLD, 0, 0, 0, 0))

    def enter_user(self) -> None:
        """Gives the child its user id from outside, and forbids further user namespaces."""
        _write("/proc/self/setgroups", b"deny")
        _write("/proc/self/uid_map", b"%d %d 1" % (os.geteuid(), os.geteuid()))
        _write("/proc/self/gid_map", b"%d %d 1" % (os.getegid(), os.getegid()))
        _write("/proc/sys/user/max_user_namespaces", b"0")

    def pids(self) -> object:
        """Process ids for runners, each once: the template has none of them."""
        with open(_MAX_PID) as file:
            return iter(range(os.getpid() + 1, int(file.read())))

    def set_next_pid(self, pid: int) -> None:
        """Gives this id to the next process of the child's pid namespace."""
        _write(_LAST_PID, b"%d" % (pid - 1))

    def mount(self, directory: str) -> None:
        """Mounts what is the child's own, with this directory of the template's as its work
        directory, and hides the template's.
        """
        _mount(None, b"/", None, _RECURSIVE | _PRIVATE)
        _mount(f"{TEMPLATE_DIRECTORY}/{directory}".encode(), WORK_DIRECTORY.encode(), None, _BIND)
        for path, options in self._tmpfs:
            _mount(b"tmpfs", path, b"tmpfs", _NO_SUID | _NO_DEVICES, options)
        if self._has_terminals:
            _mount(b"devpts", b"/dev/pts", b"devpts", _NO_SUID | _NO_PROGRAMS, b"ptmxmode=0666,mode=620")
        _mount(b"proc", b"/proc", b"proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS | _READ_ONLY)
        nothing = _NO_SUID | _NO_DEVICES | _NO_PROGRAMS | _READ_ONLY
        _mount(b"tmpfs", TEMPLATE_DIRECTORY.encode(), b"tmpfs", nothing, b"mode=0755,size=4096,nr_inodes=1")
        os.chdir(WORK_DIRECTORY)
        if not self._has_network:
            _raise_loopback()

    def drop_privileges(self, cpus: "list[int]") -> None:
        """Takes from the child, for good, what tools may not have. It is in its control group."""
        _checked("unshare", _libc.unshare(_NEW_CGROUP))
        if cpus:
            os.sched_setaffinity(0, cpus)
        for capability in range(_MAX_CAPABILITIES):
            if _libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) == -1:
                break  # There are no more of them.
        header = _CAPABILITY_VERSION.to_bytes(4, "little") + bytes(4)
        _checked("capset", _libc.capset(header, bytes(24)))
        _checked("prctl", _libc.prctl(_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0))
        _checked("prctl", _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        program = ctypes.addressof(self._program)
        _checked("seccomp", _libc.prctl(_SECCOMP, _FILTER_MODE, program, 0, 0))

    def limit(self) -> None:
        """Puts this process, and what it starts, under the limits of tools."""
        for name, soft, hard in self._limits:
            resource.setrlimit(name, (soft, hard))


def _bound(value: "int | None") -> int:
    return resource.RLIM_INFINITY if value is None else value


def _raise_loopback() -> None:
    interface = b"lo".ljust(16, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        flags = int.from_bytes(fcntl.ioctl(probe, _GET_FLAGS, interface + bytes(24))[16:18], "little")
        fcntl.ioctl(probe, _SET_FLAGS, interface + (flags | _IS_UP).to_bytes(2, "little") + bytes(22))


def _write(path: str, text: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(text)


def _mount(
    source: "bytes | None", target: bytes, kind: "bytes | None", flags: int, options: "bytes | None" = None
) -> None:
    _checked(f"mount on {target.decode()}", _libc.mount(source, target, kind, flags, options))


def _checked(what: str, result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
