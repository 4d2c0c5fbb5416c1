"""Reads what the host says of itself, its users and its secrets in /etc."""

from support.attempts import read_each

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
    return read_each(FILES)
