"""Reads what the host says of itself, its users and its secrets in /etc."""

from support.attempts import attempt

FILES = (
    "/etc/passwd",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/machine-id",
    "/etc/hostname",
    "/etc/environment",
    "/etc/ssh/sshd_config",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/sudoers",
    "/etc/crontab",
    "/etc/fstab",
)


def attack(target):
    def reading(path):
        def read():
            with open(path, "rb") as file:
                return f"{len(file.read())} bytes"

        return read

    return attempt({path: reading(path) for path in FILES})
