"""Compares its namespaces with the worker's, and with those that its module was imported in."""

from support.attempts import answer
from support.namespaces import name_of
from support.template import Import

_IMPORT = Import()
_AT_IMPORT = {kind: name_of(kind) for kind in ("user", "mnt", "pid", "ipc", "uts", "cgroup")}


def attack(target):
    others = {"the worker": target["namespaces"]}
    if _IMPORT.is_elsewhere():
        others["its template"] = _AT_IMPORT
    shared = [
        f"{name} is that of {who}"
        for who, namespaces in others.items()
        for kind, name in namespaces.items()
        if name_of(kind) == name
    ]
    return answer(shared, [f"none of {len(target['namespaces'])} kinds is shared with {' or '.join(others)}"])
