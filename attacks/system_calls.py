"""
Makes every call that the sandbox's filter should refuse, with arguments that the kernel would
refuse.
"""

import errno

from support.attempts import answer
from support.kernel import NOWHERE, call, number

_NONE = 0
_ALL_BITS = 0xFFFFFFFF
_NO_DESCRIPTOR = -1
_UNKNOWN = 9999

# With these no call has an effect, whoever makes it; what inotify_init opens ends with the program.
ARGUMENTS = {
    "acct": (NOWHERE,),
    "add_key": (NOWHERE, NOWHERE, _NONE, 0, 0),
    "adjtimex": (NOWHERE,),
    "bpf": (_UNKNOWN, NOWHERE, 1 << 20),
    "chroot": (NOWHERE,),
    "clock_adjtime": (_UNKNOWN, NOWHERE),
    "clock_settime": (_UNKNOWN, NOWHERE),
    "clone3": (_NONE, 0),
    "delete_module": (NOWHERE, 0),
    # FAN_REPORT_FID, which is for everybody, with a flag that does not exist.
    "fanotify_init": (0x80000200, 0),
    "fanotify_mark": (_NO_DESCRIPTOR, _ALL_BITS, 0, _NO_DESCRIPTOR, NOWHERE),
    "finit_module": (_NO_DESCRIPTOR, NOWHERE, _ALL_BITS),
    "fsconfig": (_NO_DESCRIPTOR, _ALL_BITS, _NONE, _NONE, 0),
    "fsmount": (_NO_DESCRIPTOR, _ALL_BITS, _ALL_BITS),
    "fsopen": (NOWHERE, _ALL_BITS),
    "fspick": (_NO_DESCRIPTOR, NOWHERE, _ALL_BITS),
    "get_mempolicy": (_NONE, _NONE, 0, _NONE, _ALL_BITS),
    "init_module": (NOWHERE, 0, NOWHERE),
    "inotify_add_watch": (_NO_DESCRIPTOR, NOWHERE, 1),
    "inotify_init": (),
    "inotify_init1": (_ALL_BITS,),
    "inotify_rm_watch": (_NO_DESCRIPTOR, 0),
    "io_cancel": (_NONE, NOWHERE, NOWHERE),
    "io_destroy": (_NONE,),
    "io_getevents": (_NONE, 1, 1, NOWHERE, _NONE),
    "io_pgetevents": (_NONE, 1, 1, NOWHERE, _NONE, _NONE),
    "io_setup": (0, NOWHERE),
    "io_submit": (_NONE, 1, NOWHERE),
    "io_uring_enter": (_NO_DESCRIPTOR, 0, 0, _ALL_BITS, _NONE, 0),
    "io_uring_register": (_NO_DESCRIPTOR, _UNKNOWN, _NONE, 0),
    "io_uring_setup": (0, NOWHERE),
    "ioperm": (1 << 20, 1, 1),
    "iopl": (_UNKNOWN,),
    "kcmp": (_NO_DESCRIPTOR, _NO_DESCRIPTOR, _UNKNOWN, 0, 0),
    "kexec_file_load": (_NO_DESCRIPTOR, _NO_DESCRIPTOR, 0, _NONE, _ALL_BITS),
    "kexec_load": (0, _ALL_BITS, NOWHERE, _ALL_BITS),
    "keyctl": (_UNKNOWN,),
    "lookup_dcookie": (0, NOWHERE, 0),
    "mbind": (0, 0, _UNKNOWN, _NONE, 0, 0),
    "memfd_create": (NOWHERE, _ALL_BITS),
    "memfd_secret": (_ALL_BITS,),
    "migrate_pages": (-1, 0, _NONE, _NONE),
    "modify_ldt": (_UNKNOWN, _NONE, 0),
    "mount": (_NONE, NOWHERE, _NONE, 0, _NONE),
    "mount_setattr": (_NO_DESCRIPTOR, NOWHERE, _ALL_BITS, _NONE, 0),
    "move_mount": (_NO_DESCRIPTOR, NOWHERE, _NO_DESCRIPTOR, NOWHERE, _ALL_BITS),
    "move_pages": (0, 1, NOWHERE, _NONE, _NONE, _ALL_BITS),
    # Nobody has made what has this key.
    "msgget": (_UNKNOWN, 0),
    "name_to_handle_at": (_NO_DESCRIPTOR, NOWHERE, _NONE, _NONE, _ALL_BITS),
    "open_by_handle_at": (_NO_DESCRIPTOR, NOWHERE, 0),
    "open_tree": (_NO_DESCRIPTOR, NOWHERE, _ALL_BITS),
    "open_tree_attr": (_NO_DESCRIPTOR, NOWHERE, _ALL_BITS, _NONE, 1),
    "perf_event_open": (NOWHERE, 0, 0, _NO_DESCRIPTOR, _ALL_BITS),
    "pidfd_getfd": (_NO_DESCRIPTOR, _NO_DESCRIPTOR, _ALL_BITS),
    "pivot_root": (NOWHERE, NOWHERE),
    "process_madvise": (_NO_DESCRIPTOR, _NONE, 0, _UNKNOWN, _ALL_BITS),
    "process_mrelease": (_NO_DESCRIPTOR, _ALL_BITS),
    "process_vm_readv": (0, _NONE, 0, _NONE, 0, 1),
    "process_vm_writev": (0, _NONE, 0, _NONE, 0, 1),
    "ptrace": (_UNKNOWN, 0, _NONE, 0),
    "quotactl": (_ALL_BITS, _NONE, 0, _NONE),
    "quotactl_fd": (_NO_DESCRIPTOR, _ALL_BITS, 0, _NONE),
    "reboot": (0, 0, 0, _NONE),
    "request_key": (NOWHERE, NOWHERE, _NONE, 0),
    "sched_setaffinity": (0, 0, _NONE),
    "semget": (_UNKNOWN, 0, 0),
    "set_mempolicy": (_UNKNOWN, _NONE, 0),
    "set_mempolicy_home_node": (1, 0, 0, _ALL_BITS),
    "setdomainname": (NOWHERE, -1),
    "sethostname": (NOWHERE, -1),
    "setns": (_NO_DESCRIPTOR, 0),
    "settimeofday": (NOWHERE, _NONE),
    "shmget": (_UNKNOWN, 0, 0),
    "swapoff": (NOWHERE,),
    "swapon": (NOWHERE, _ALL_BITS),
    "syslog": (_UNKNOWN, _NONE, 0),
    "umount2": (NOWHERE, _ALL_BITS),
    "unshare": (1,),
    "uselib": (NOWHERE,),
    "userfaultfd": (_ALL_BITS,),
}

# What a filter says, and the kernel itself to those without a privilege: then nobody can tell whose
# word it is.
_REFUSALS = (errno.EPERM, errno.ENOSYS)


def attack(target):
    names = [name for name in ARGUMENTS if number(name) is not None]
    outcomes = {name: _outcome(name) for name in names}
    answered = [f"{name}: {outcome}" for name, outcome in outcomes.items() if outcome is not None]
    return answer(
        [f"the kernel answered {len(answered)} of {len(names)} calls", *answered] if answered else [],
        [f"{len(names)} calls refused: {', '.join(names)}"],
    )


def _outcome(name):
    """What the kernel answered, or None for a refusal."""
    try:
        return f"done, {call(name, *ARGUMENTS[name])}"
    except OSError as error:
        return None if error.errno in _REFUSALS else errno.errorcode[error.errno]
