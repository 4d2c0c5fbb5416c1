"""
What keeps a child of a template apart: its namespaces and mounts, and what it gives up before it
may run a tool.

By `ctypes`, since Python has most of these calls late or not at all. A child inherits the loaded
module.
"""

import ctypes
import os
import resource

# clone(2) by machine: a process of its own that ends with SIGCHLD, as of fork(2), but in new
# namespaces at once.
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}
_SIGCHLD = 17
_NEW_MOUNT, _NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000
_NEW_USER, _NEW_PID, _NEW_NETWORK = 0x1000_0000, 0x2000_0000, 0x4000_0000
_CLOSE_RANGE_NUMBER = 436
_LAST_DESCRIPTOR = 0xFFFF_FFFF

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

# The process id that was given last in the pid namespace of the process that reads or writes it
# (proc_sys_kernel(5)).
_LAST_NUMBER, _MAX_NUMBER = "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pid_max"

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.syscall.argtypes = [ctypes.c_long] * 6
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
# Named here, all are looked up once and not by each child.
_libc.unshare.argtypes = [ctypes.c_int]
_libc.capset.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


class _Program(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class Isolation:
    """
    How each child of one template is kept apart. The methods are steps, in their order; each may
    raise OSError.
    """

    def __init__(self, settings: dict) -> None:
        """
        Raises KeyError or ValueError where the settings are not those of PROTOCOL.md, or the
        machine is unknown, and OSError where the kernel lets nobody choose process ids
        (CONFIG_CHECKPOINT_RESTORE)."""
        os.close(os.open(_LAST_NUMBER, os.O_WRONLY))
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
        """
        Has the template go by the worker's own limits: what it may bounds all its children
        together.
        """
        for name, _, _ in self._limits:
            hard = resource.getrlimit(name)[1]
            resource.setrlimit(name, (hard, hard))

    def clone(self) -> int:
        """
        Makes a child that is the first process of its own namespaces. Returns its number, 0 in the
        child.

        What Python does after a fork is not done: the child is to fork once more before it runs
        code of others.
        """
        flags = _NEW_USER | _NEW_MOUNT | _NEW_PID | _NEW_IPC | _NEW_UTS
        if not self._has_network:
            flags |= _NEW_NETWORK
        return _checked("clone", _libc.syscall(self._clone_number, flags | _SIGCHLD, 0, 0, 0, 0))

    def name_user(self) -> None:
        """
        Has the child be in its user namespace who it is outside, and lets nobody make another such
        namespace.
        """
        _write("/proc/self/setgroups", b"deny")
        _write("/proc/self/uid_map", b"%d %d 1" % (os.geteuid(), os.geteuid()))
        _write("/proc/self/gid_map", b"%d %d 1" % (os.getegid(), os.getegid()))
        _write("/proc/sys/user/max_user_namespaces", b"0")

    def numbers(self) -> object:
        """Process ids for runners, each once: the template has none of them."""
        with open(_MAX_NUMBER) as file:
            return iter(range(os.getpid() + 1, int(file.read())))

    def number_next(self, number: int) -> None:
        """Has the next process of the child's pid namespace have this id."""
        _write(_LAST_NUMBER, b"%d" % (number - 1))

    def mount(self, directory: str) -> None:
        """
        Gives the child file systems of its own where it can write, and hides what is the
        template's.

        `directory` is the child's work directory among those of the template.
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

    def give_up(self, cpus: "list[int]") -> None:
        """
        Leaves the child, for good, nothing but what tools may have. It is in its control group by
        now.
        """
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


def close_all_but(descriptors: "list[int]") -> None:
    """Closes every other descriptor."""
    first = 0
    for descriptor in sorted(descriptors):
        if descriptor > first:
            _close_range(first, descriptor - 1)
        first = descriptor + 1
    _close_range(first, _LAST_DESCRIPTOR)


def _close_range(first: int, last: int) -> None:
    _checked("close_range", _libc.syscall(_CLOSE_RANGE_NUMBER, first, last, 0, 0, 0))


def _bound(value: "int | None") -> int:
    return resource.RLIM_INFINITY if value is None else value


def _raise_loopback() -> None:
    from _socket import AF_INET, SOCK_DGRAM, socket

    from fcntl import ioctl

    interface = b"lo".ljust(16, b"\0")
    probe = socket(AF_INET, SOCK_DGRAM)
    flags = int.from_bytes(ioctl(probe, _GET_FLAGS, interface + bytes(24))[16:18], "little")
    ioctl(probe, _SET_FLAGS, interface + (flags | _IS_UP).to_bytes(2, "little") + bytes(22))
    probe.close()


def _write(path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


def _mount(
    source: "bytes | None", target: bytes, kind: "bytes | None", flags: int, options: "bytes | None" = None
) -> None:
    _checked(f"mount on {target.decode()}", _libc.mount(source, target, kind, flags, options))


def _checked(what: str, result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
