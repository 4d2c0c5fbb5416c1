"""JSON without the `json` package.

`import json` takes about 6 ms, most of it for `re` and `enum`, in a process whose whole start takes
10: it would be the most expensive thing the runner does. The package is a thin layer over the C
module `_json`, which loads in 0.2 ms and is used here directly. Where an interpreter has no such
module, `json` does the work.
"""


def encode(value: object) -> bytes:
    """A value as one line of UTF-8 JSON.

    As `json.dumps(value, default=plain)`, where `plain` is that of `values.py`, with two
    differences: NaN and the infinities, which JSON does not have, become null; text is not escaped
    to ASCII. Raises TypeError for a key that is not a plain value and for a value that is still to
    come, ValueError for a circular value and RecursionError for one that is nested too deeply.
    """
    try:
        text = _encode_strictly(value)
    except ValueError:
        # Either a number is not finite, and the detour makes it null, or the value is circular, and
        # it raises again.
        text = _encode_strictly(_decode(_encode_leniently(value)))
    # A lone surrogate has no UTF-8; inside a JSON string, Python's backslash form of it is JSON's
    # escape.
    return text.encode("utf-8", "backslashreplace")


def decode(document: bytes) -> object:
    """
    The value of a JSON document in UTF-8; NaN and the infinities read as None. Raises ValueError.
    """
    return _decode(document.decode("utf-8").strip(" \t\n\r"))


def _null(_constant: str) -> None:
    return None


def _plain(value: object) -> object:
    from .values import plain

    return plain(value)


def _accelerated() -> tuple:
    from _json import encode_basestring, make_encoder, make_scanner

    class Decoding:
        """What the scanner asks of its owner; named as in `json.decoder`."""

        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = staticmethod(_null)

    scan = make_scanner(Decoding)

    def decode_text(text: str) -> object:
        try:
            value, end = scan(text, 0)
        except (StopIteration, SystemError, ValueError):
            # The scanner has words for what is wrong only where `json.decoder` is loaded.
            value, end = None, -1
        return value if end == len(text) else _portable()[0](text)

    def encoder(allow_nan: bool):
        def encode_text(value: object) -> str:
            # In order: markers, default, encoder, indent, separators, sort_keys, skipkeys,
            # allow_nan.
            chunks = make_encoder({}, _plain, encode_basestring, None, ":", ",", False, False, allow_nan)
            return "".join(chunks(value, 0))

        return encode_text

    encode_strictly = encoder(allow_nan=False)
    if decode_text('[{"a":1.5}]') != [{"a": 1.5}] or encode_strictly([{"a": 1.5}]) != '[{"a":1.5}]':
        raise ImportError("_json is not the module this code was written for")
    return decode_text, encode_strictly, encoder(allow_nan=True)


def _portable() -> tuple:
    import json

    def encoder(allow_nan: bool):
        return json.JSONEncoder(
            ensure_ascii=False, allow_nan=allow_nan, separators=(",", ":"), default=_plain
        ).encode

    return json.JSONDecoder(parse_constant=_null).decode, encoder(allow_nan=False), encoder(allow_nan=True)


try:
    _decode, _encode_strictly, _encode_leniently = _accelerated()
except (ImportError, AttributeError, TypeError):
    _decode, _encode_strictly, _encode_leniently = _portable()
