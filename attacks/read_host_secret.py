"""Reads a file of the host that everybody may read: by its path, and by ways around."""

from support.attempts import attempt


def attack(target):
    path, token = target["secret_file"], target["token"]

    def reading(way):
        def read():
            with open(way) as file:
                return f"it holds {token}" if token in file.read() else None

        return read

    ways = (path, "../" * 30 + path[1:], "/proc/self/root" + path, "/proc/self/cwd/" + "../" * 30 + path[1:])
    names = ("its path", "upwards", "/proc/self/root", "/proc/self/cwd")
    return attempt({name: reading(way) for name, way in zip(names, ways)})
