"""Puts more into its work directory than it may add, in files that are each small enough."""

from support.taking import take_in_files


def attack(target):
    limits = target["limits"]

    def path_of(number):
        return f"{('output', 'input', '.')[number % 3]}/attack-{number}"

    return take_in_files(limits["disk_bytes"], limits["file_size_bytes"] // 4, path_of)
