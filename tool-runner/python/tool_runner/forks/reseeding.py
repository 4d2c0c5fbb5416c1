"""Reseeds the random number generators of a loaded module in each child of a template.

Children are copies of the template and would draw the same numbers. Libraries that compare process
ids, such as OpenSSL from 1.1.1 on, reseed by themselves: each child has an id of its own.
"""

import ctypes
import gc
import os
import sys

from ..errors import describe

# Packages with a native generator that imports draw from and that nothing can reseed.
_UNREACHABLE = (
    *("apsw", "cupy", "duckdb", "mxnet", "paddle", "polars", "pysqlite3", "tensorflow", "tokenizers", "torch"),
    "ulid_transform",
)
_FIRST_OPENSSL_THAT_COMPARES_IDS = 0x1010_1000
_NUMPY_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")

# Parts of a UUID of version 1 as an integer: clock sequence, node, bit of a random node.
_CLOCK_SEQUENCE, _NODE, _IS_DRAWN = 0x3FFF << 48, (1 << 48) - 1, 1 << 40
_UUID_BYTES = 16


class Unreachable(Exception):
    """A generator that cannot be reseeded."""


class Generators:
    """The generators of this process that do not detect a fork."""

    def __init__(self) -> None:
        self._seeders: list = []

    def find(self) -> "str | None":
        """Finds and reseeds those of the loaded module. Returns why one cannot be, or None."""
        try:
            _check_native()
            # The collector does not list what the module may have frozen.
            gc.unfreeze()
            for find in (_of_libc, _of_python, _of_numpy, _of_sqlite, _of_uuid, _of_multiprocessing):
                self._seeders += find()
            self.seed()
        except Unreachable as error:
            return f"{error}, so children would draw the same random numbers"
        except Exception as error:
            return f"its generators of random numbers cannot be seeded anew: {describe(error)}"
        return None

    def seed(self) -> None:
        """Reseeds all of them from the system's randomness."""
        for seed in self._seeders:
            seed()


def _check_native() -> None:
    for name in _UNREACHABLE:
        if name in sys.modules:
            raise Unreachable(f"{name} has a generator that cannot be seeded anew")
    for path in _mapped("libcrypto"):
        version = getattr(ctypes.CDLL(path), "OpenSSL_version_num", int)
        if version() < _FIRST_OPENSSL_THAT_COMPARES_IDS:
            raise Unreachable(f"{os.path.basename(path)} is older than OpenSSL 1.1.1")


def _mapped(prefix: str) -> "set[str]":
    """Loaded libraries whose names begin with this."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        paths = {line.rstrip("\n").split(None, 5)[5] for line in lines if "/" in line}
    return {path for path in paths if os.path.basename(path).startswith(prefix)}


def _instances(kind: type) -> list:
    return [each for each in gc.get_objects() if issubclass(type(each), kind)]


def _of_libc() -> list:
    libc = ctypes.PyDLL(None)

    def seed() -> None:
        libc.srand(_drawn(4))
        libc.srandom(_drawn(4))
        libc.seed48(os.urandom(6))

    return [seed]


def _drawn(size: int) -> int:
    return int.from_bytes(os.urandom(size), "big")


def _of_python() -> list:
    """Every `random.Random`, the module's own among them."""
    base = getattr(sys.modules.get("_random"), "Random", None)
    if base is None:
        return []
    system = getattr(sys.modules.get("random"), "SystemRandom", base)
    found = []
    for each in _instances(base):
        kind = type(each)
        if _draws_like(kind, base):
            found.append(each)
        elif not _draws_like(kind, system):
            raise Unreachable(f"{_name_of(kind)} is a generator of an unknown kind")

    def seed() -> None:
        for each in found:
            base.seed(each)
            each.gauss_next = None

    return [seed]


def _draws_like(kind: type, other: type) -> bool:
    return kind.random is other.random and kind.getrandbits is other.getrandbits


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _of_numpy() -> list:
    """Every bit generator of numpy, and the generators on top of them."""
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return []
    own = numpy.mtrand._rand
    bits = [each for each in _instances(numpy.BitGenerator) if each is not own._bit_generator]
    legacy = [each for each in _instances(numpy.RandomState) if each is not own]
    known = [getattr(numpy, name, None) for name in _NUMPY_GENERATORS]
    for each in bits:
        if type(each) not in known:
            raise Unreachable(f"{_name_of(type(each))} is a generator of an unknown kind")

    def seed() -> None:
        own.seed()
        for each in bits:
            # Pickle's state of a new one has, from numpy 2 on, the sequence that others spawn from.
            each.__setstate__(type(each)().__reduce__()[2])
        for each in legacy:
            # Drops the normal number that it has drawn ahead.
            each.set_state(each._bit_generator.state)

    before = [each._seed_seq for each in bits]
    seed()
    keeps = any(each._seed_seq is old for each, old in zip(bits, before))
    del before
    # Code draws from numpy's own generator and does not spawn from it.
    fresh = [each._seed_seq for each in (own._bit_generator, *bits)]
    if keeps or any(all(each is not one for one in fresh) for each in _instances(numpy.SeedSequence)):
        raise Unreachable("it holds a SeedSequence of numpy that cannot be seeded anew")
    return [seed]


def _of_sqlite() -> list:
    module = sys.modules.get("_sqlite3")
    if module is None:
        return []
    try:
        randomness = ctypes.CDLL(module.__file__).sqlite3_randomness
    except (AttributeError, OSError):
        raise Unreachable("the generator of SQLite cannot be seeded anew") from None
    # With this call SQLite reseeds from the system before it draws again.
    return [lambda: randomness(0, None)]


def _of_uuid() -> list:
    """What `uuid1` draws once. Nothing makes libuuid draw it again, so each child masks it."""
    module = sys.modules.get("uuid")
    generate = getattr(module, "_generate_time_safe", None)

    def seed() -> None:
        if (getattr(module, "_node", None) or 0) & _IS_DRAWN:
            module._node = None
        if generate is not None:
            module._generate_time_safe = _masked(generate, _drawn(_UUID_BYTES))

    return [seed]


def _masked(generate: object, mask: int) -> object:
    def generate_time_safe() -> tuple:
        made, is_safe = generate()
        number = int.from_bytes(made, "big")
        drawn = _CLOCK_SEQUENCE | (_NODE ^ _IS_DRAWN if number & _IS_DRAWN else 0)
        return (number ^ (mask & drawn)).to_bytes(_UUID_BYTES, "big"), is_safe

    return generate_time_safe


def _of_multiprocessing() -> list:
    """The key by which processes of a program authenticate each other."""
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return []

    def seed() -> None:
        module.current_process().authkey = os.urandom(32)

    return [seed]
