"""Makes more files and directories in its work directory than it may."""

import os

from support.taking import take


def attack(target):
    made = []

    def add():
        path = f"output/attack-{len(made)}"
        make, remove = KINDS[len(made) % len(KINDS)]
        make(path)
        made.append((remove, path))
        return 1

    try:
        return take(target["limits"]["files"], "files", add)
    finally:
        for remove, path in made:
            remove(path)


KINDS = (
    (os.mknod, os.unlink),
    (os.mkdir, os.rmdir),
    (os.mkfifo, os.unlink),
    (lambda path: os.symlink("x" * 200, path), os.unlink),
)
