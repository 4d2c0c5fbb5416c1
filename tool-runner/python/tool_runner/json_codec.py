"""JSON by the C module `_json`, or by `json` where an interpreter has none.

An import of `json` takes a cold call from 56 to 71 ms, where the tool has not imported it.
"""


def _plain(value: object) -> object:
    from .values import plain

    return plain(value)


def encode(value: object, plain: object = _plain) -> bytes:
    """A value as one line of UTF-8 JSON, what JSON lacks by `plain`; NaN and the infinities become
    null. Raises TypeError, ValueError for a circle, RecursionError.
    """
    try:
        text = _encode_strictly(value, plain)
    except ValueError:
        # A number is not finite and becomes null. A circular value raises again.
        text = _encode_strictly(_decode(_encode_leniently(value, plain)), plain)
    # UTF-8 has no lone surrogate; Python's backslash form is JSON's escape.
    return text.encode("utf-8", "backslashreplace")


def decode(document: bytes) -> object:
    """The value of a document in UTF-8; NaN and the infinities are None. Raises ValueError."""
    return _decode(document.decode("utf-8").strip(" \t\n\r"))


def _null(_constant: str) -> None:
    return None


def _accelerated() -> tuple:
    from _json import encode_basestring, make_encoder, make_scanner

    class Decoding:
        """Settings of the scanner, with the names of `json.decoder`."""

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
            # Only `json` has a text for what is wrong.
            value, end = None, -1
        return value if end == len(text) else _portable()[0](text)

    def encoder(allow_nan: bool):
        def encode_text(value: object, plain: object) -> str:
            # In order: markers, default, encoder, indent, separators, sort_keys, skipkeys,
            # allow_nan.
            chunks = make_encoder({}, plain, encode_basestring, None, ":", ",", False, False, allow_nan)
            return "".join(chunks(value, 0))

        return encode_text

    encode_strictly = encoder(allow_nan=False)
    if decode_text('[{"a":1.5}]') != [{"a": 1.5}] or encode_strictly([{"a": 1.5}], _plain) != '[{"a":1.5}]':
        raise ImportError("_json is not the module this code was written for")
    return decode_text, encode_strictly, encoder(allow_nan=True)


def _portable() -> tuple:
    import json

    def encoder(allow_nan: bool):
        def encode_text(value: object, plain: object) -> str:
            return json.JSONEncoder(
                ensure_ascii=False, allow_nan=allow_nan, separators=(",", ":"), default=plain
            ).encode(value)

        return encode_text

    return json.JSONDecoder(parse_constant=_null).decode, encoder(allow_nan=False), encoder(allow_nan=True)


try:
    _decode, _encode_strictly, _encode_leniently = _accelerated()
except (ImportError, AttributeError, TypeError):
    _decode, _encode_strictly, _encode_leniently = _portable()
