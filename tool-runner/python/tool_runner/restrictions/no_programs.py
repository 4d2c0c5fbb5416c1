"""Refuses new programs to the process, by a filter of system calls. See tool-runner/PROTOCOL.md,
"No programs".
"""

import ctypes
import os
import struct

# By machine: AUDIT_ARCH_... of linux/audit.h; seccomp(2); execve(2) and execveat(2).
_MACHINES = {
    "x86_64": (0xC000_003E, 317, (59, 322)),
    "aarch64": (0xC000_00B7, 277, (221, 281)),
}
# Numbers from here on are of the x32 ABI, which has another execve.
_X32_BIT = 0x4000_0000

# linux/bpf_common.h, linux/seccomp.h.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _EPERM, _EINVAL = 0x7FFF_0000, 0x8000_0000, 0x0005_0001, 0x0005_0016
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16

_SET_MODE_FILTER, _SYNC_THREADS = 1, 1
_NO_NEW_PRIVILEGES = 38  # prctl(2)


def refuse_programs() -> None:
    """Makes execve and execveat fail with EPERM in all threads and in processes forked later, for
    good. No further filter passes. Raises OSError, and KeyError for an unknown machine.
    """
    arch, seccomp, numbers = _MACHINES[os.uname().machine]
    code = _program(arch, seccomp, numbers)
    program = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: the number of instructions, padding, their address.
    described = struct.pack("@HP", len(code) // 8, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.syscall.argtypes = [ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_char_p]
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == -1:
        _fail("prctl")
    # Not zero also for a thread that cannot have it.
    if libc.syscall(seccomp, _SET_MODE_FILTER, _SYNC_THREADS, described) != 0:
        _fail("seccomp")


def _program(arch: int, seccomp: int, numbers: "tuple[int, ...]") -> bytes:
    instructions = [
        (_LOAD, 0, 0, _ARCH),
        (_IF_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    for number in numbers:
        instructions += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    instructions += [
        (_IF_EQUAL, 1, 0, seccomp),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_IF_EQUAL, 0, 1, _SET_MODE_FILTER),
        (_RETURN, 0, 0, _EINVAL),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *each) for each in instructions)


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}")
