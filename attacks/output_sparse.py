"""
Leaves outputs that take no room on the disk and are many times as large together as there is room
for.
"""

from support.leaving import leave

FILES = 90


def attack(target):
    for number in range(FILES):
        with open(f"output/report-{number}.bin", "wb") as file:
            file.truncate(target["limits"]["file_size_bytes"])
    leave()
