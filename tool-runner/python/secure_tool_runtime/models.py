"""
Members that are checked and converted as pydantic does it in lax mode, without pydantic, which
takes 100 ms to import.
"""

import enum
from _collections_abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import dict as Dict
    from collections.abc import Callable, Iterator
    from typing import Any

    from typing_extensions import Self

    # What a check takes: a value, its place, the problems so far.
    Problems = list[tuple[Any, ...]]
    Check = Callable[[object, tuple[object, ...], Problems], Any]

REQUIRED = object()
"""The default of a member that has none."""


class ValidationError(ValueError):
    """
    Members that a model does not take. The text names them and repeats no value, since it reaches
    the caller.
    """

    def __init__(self, title: str, problems: "Problems") -> None:
        self.title: str = title
        self._problems = problems
        count = len(problems)
        lines = [f"{count} validation error{'' if count == 1 else 's'} for {title}"]
        for kind, place, message, value in problems:
            lines.append(".".join(map(str, place)))
            lines.append(f"  {message} [type={kind}, input_type={type(value).__name__}]")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> "tuple[object, ...]":
        return (ValidationError, (self.title, self._problems))

    def error_count(self) -> int:
        """How many members are wrong."""
        return len(self._problems)

    def errors(self, **_options: object) -> "list[dict[str, object]]":
        """`type`, `loc`, `msg` and `input` of each."""
        names = ("type", "loc", "msg", "input")
        return [dict(zip(names, problem)) for problem in self._problems]


class Model:
    """
    Members by keyword; others are ignored. `_fields` has a check and a default for each, in order.

    A check takes a value, its place and the list of problems, and returns what the member becomes.
    """

    __slots__ = ("__dict__", "_fields_set")
    _fields: "Dict[str, tuple[Check, object]]" = {}
    _fields_set: "set[str]"

    def __init__(self, /, **members: object) -> None:
        problems = self._fill(members, ())
        if problems:
            raise ValidationError(type(self).__name__, problems)

    def _fill(self, members: "Mapping[str, object]", place: "tuple[object, ...]") -> "Problems":
        problems: "Problems" = []
        for name, (check, default) in self._fields.items():
            if name in members:
                self.__dict__[name] = check(members[name], (*place, name), problems)
            elif default is REQUIRED:
                problems.append(("missing", (*place, name), "Field required", members))
            else:
                self.__dict__[name] = default() if default is list else default
        self._fields_set = {name for name in self._fields if name in members}
        return problems

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._fields:
            self._fields_set.add(name)
        elif not name.startswith("_"):
            raise ValueError(f'"{type(self).__name__}" object has no field "{name}"')
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __iter__(self) -> "Iterator[tuple[str, Any]]":
        yield from self.__dict__.items()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def __str__(self) -> str:
        return " ".join(self._shown())

    def _shown(self) -> "list[str]":
        return [f"{name}={value!r}" for name, value in self]

    @property
    def model_fields_set(self) -> "set[str]":
        """Names of the members that were given."""
        return self._fields_set

    @classmethod
    def model_validate(cls, members: object, **_options: object) -> "Self":
        """An instance of a dict's members, or the instance itself. Raises ValidationError."""
        problems: "Problems" = []
        made = model_of(cls)(members, (), problems)
        if problems:
            raise ValidationError(cls.__name__, problems)
        return made

    @classmethod
    def model_validate_json(cls, document: "str | bytes", **_options: object) -> "Self":
        """An instance of the members in a JSON document. Raises ValidationError."""
        import json

        try:
            members = json.loads(document)
        except ValueError as error:
            problem = ("json_invalid", (), f"Invalid JSON: {error}", document)
            raise ValidationError(cls.__name__, [problem]) from None
        return cls.model_validate(members)

    @classmethod
    def model_construct(cls, _fields_set: "set[str] | None" = None, **members: object) -> "Self":
        """An instance of members that are not checked."""
        made = cls.__new__(cls)
        for name, (_check, default) in cls._fields.items():
            if name in members or default is not REQUIRED:
                made.__dict__[name] = members.get(name, [] if default is list else default)
        made._fields_set = {name for name in cls._fields if name in members}
        return made

    def model_copy(self, *, update: "Dict[str, Any] | None" = None, deep: bool = False) -> "Self":
        """A copy with other values for some members, which are not checked."""
        import copy

        made = copy.deepcopy(self) if deep else copy.copy(self)
        made._fields_set = {*self._fields_set, *(update or {})}
        made.__dict__.update(update or {})
        return made

    def model_dump(self, *, mode: str = "python", **options: "Any") -> "Dict[str, Any]":
        """The members as a dict, models inside as dicts.

        With `mode="json"` of values that JSON has. `include` and `exclude` name members;
        `exclude_none`, `exclude_unset` and `exclude_defaults` hold inside, too. Raises ValueError
        for what JSON cannot express.
        """
        from .dumping import dumped, for_json

        members = dumped(self, **options)
        return for_json(members) if mode == "json" else members

    def model_dump_json(self, *, indent: "int | None" = None, **options: "Any") -> str:
        """`model_dump(mode="json")` as text."""
        import json

        separators = (",", ":") if indent is None else None
        members = self.model_dump(mode="json", **options)
        return json.dumps(members, indent=indent, separators=separators, ensure_ascii=False)

    # The names that these had before pydantic 2, which deprecates and keeps them.
    parse_obj = model_validate
    parse_raw = model_validate_json
    construct = model_construct
    copy = model_copy
    dict = model_dump
    json = model_dump_json


def text(value: object, place: "tuple[object, ...]", problems: "Problems") -> "str | None":
    """Check for `str`; bytes in UTF-8 become text."""
    plain = value.value if isinstance(value, enum.Enum) else value
    if isinstance(plain, str):
        return str.__str__(plain)
    if not isinstance(plain, (bytes, bytearray)):
        problems.append(("string_type", place, "Input should be a valid string", value))
        return None
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError:
        message = "Input should be a valid string, unable to parse raw data as a unicode string"
        problems.append(("string_unicode", place, message, value))
        return None


def text_or_bytes(
    value: object, place: "tuple[object, ...]", problems: "Problems"
) -> "str | bytes | None":
    """Check for `Union[str, bytes]`."""
    if isinstance(value, bytes):
        return bytes(value)
    failed: "Problems" = []
    found = text(value, (*place, "str"), failed)
    if failed and isinstance(value, bytearray):
        return bytes(value)
    if failed:
        message = "Input should be a valid bytes"
        problems += [*failed, ("bytes_type", (*place, "bytes"), message, value)]
    return found


def one_of(choices: "type[enum.Enum]") -> "Check":
    """Check for the values of an enumeration; a member of it becomes its value."""

    def check(value: object, place: "tuple[object, ...]", problems: "Problems") -> object:
        found = text(value, place, [])
        values = [each.value for each in choices]
        if found not in values:
            named = ", ".join(map(repr, values[:-1]))
            message = f"Input should be {named} or {values[-1]!r}"
            problems.append(("enum", place, message, value))
        return found

    return check


def text_keyed(
    value: object, place: "tuple[object, ...]", problems: "Problems"
) -> "dict[str | None, object] | None":
    """Check for `Dict[str, Any]`; any mapping becomes a dict."""
    if not isinstance(value, Mapping):
        problems.append(("dict_type", place, "Input should be a valid dictionary", value))
        return None
    found = {}
    for key in value:
        part = key if isinstance(key, (str, int)) else repr(key)
        found[text(key, (*place, part, "[key]"), problems)] = value[key]
    return found


def list_of(check: "Check") -> "Check":
    """
    Check for `List[…]`; whatever can be iterated over becomes a list, but for text and mappings.
    """

    def check_list(
        value: "Any", place: "tuple[object, ...]", problems: "Problems"
    ) -> "list[object] | None":
        is_one = isinstance(value, (str, bytes, bytearray, memoryview, Mapping))
        if is_one or not hasattr(type(value), "__iter__"):
            problems.append(("list_type", place, "Input should be a valid list", value))
            return None
        return [check(each, (*place, index), problems) for index, each in enumerate(value)]

    return check_list


def optional(check: "Check") -> "Check":
    """Check for `Optional[…]`."""

    def check_optional(
        value: object, place: "tuple[object, ...]", problems: "Problems"
    ) -> object:
        return None if value is None else check(value, place, problems)

    return check_optional


def model_of(model: "type[Model]") -> "Check":
    """
    Check for a model. What has a model's first members is taken for one: of another package, or the
    tool's own.
    """
    required = [name for name, (_check, default) in model._fields.items() if default is REQUIRED]

    def check(value: object, place: "tuple[object, ...]", problems: "Problems") -> object:
        if isinstance(value, model):
            return value
        if isinstance(value, dict):
            made = model.__new__(model)
            problems += made._fill(value, place)
            return made
        if not required or not all(hasattr(value, name) for name in required):
            message = f"Input should be a valid dictionary or instance of {model.__name__}"
            problems.append(("model_type", place, message, value))
        return value

    return check
