"""Reads what only root and services may read in /etc, also where the rest of /etc is visible."""

from support.attempts import read_each

FILES = (
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/sudoers",
    "/etc/krb5.keytab",
    "/root/.ssh/id_ed25519",
    "/root/.ssh/id_rsa",
)


def attack(target):
    return read_each(FILES)
