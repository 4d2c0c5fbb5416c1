"""
System calls by number, for attacks: what no function of Python makes, and what must reach the
kernel as it is.
"""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

# Nothing is mapped there, and nothing can be.
NOWHERE = 1

# By name the numbers on x86_64 and on arm64; None where an architecture does not have the call.
NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capget": (125, 90),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close_range": (436, 436),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fcntl": (72, 25),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_mempolicy": (239, 236),
    "getsockopt": (55, 209),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_rm_watch": (255, 28),
    "io_cancel": (210, 3),
    "io_destroy": (207, 1),
    "io_getevents": (208, 4),
    "io_pgetevents": (333, 292),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mmap": (9, 222),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "semget": (64, 190),
    "sendfile": (40, 71),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "setdomainname": (171, 162),
    "seccomp": (317, 277),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "splice": (275, 76),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tee": (276, 77),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vmsplice": (278, 75),
}

_COLUMNS = {"x86_64": 0, "aarch64": 1}
MACHINE = os.uname().machine


def number(name):
    """
    Number of a call on this machine, or None. Raises LookupError on a machine whose numbers are not
    in the table.
    """
    if MACHINE not in _COLUMNS:
        raise LookupError(f"no numbers of system calls for {MACHINE}")
    return NUMBERS[name][_COLUMNS[MACHINE]]


def call(name, *arguments):
    """
    Makes a call with integers, bytes, None or ctypes objects; its result. Raises OSError as the
    kernel says.
    """
    return call_number(number(name), *arguments)


def call_number(which, *arguments):
    """The same by number."""
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(which), *map(_converted, arguments))
    if result == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _converted(argument):
    if isinstance(argument, int):
        return ctypes.c_long(argument)
    if isinstance(argument, bytes):
        return ctypes.c_char_p(argument)
    return argument
