"""What a function takes: names, kinds, defaults and annotations of its parameters.

Read from code objects where possible: `inspect` says the same and takes 11 ms to import.
"""

POSITIONAL_ONLY, EITHER, KEYWORD_ONLY = "positional only", "either", "keyword only"
_ANY_NUMBER = "any number"

_TAKES_ANY_NUMBER = 0x04  # CO_VARARGS of the code object's flags
_TAKES_ANY_NAME = 0x08  # CO_VARKEYWORDS
_IS_ASYNC = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR


class Parameter:
    """A named parameter of a function. `words` are the names in its annotation."""

    __slots__ = ("annotation", "default", "kind", "name", "required", "words")

    def __init__(self, name: str, kind: str, required: bool, default: object, annotation: object) -> None:
        self.name = name
        self.kind = kind
        self.required = required
        self.default = default
        self.annotation = annotation
        self.words = words_of(annotation)


class Signature:
    """
    The named parameters of a function, whether it takes any other name, and whether it is `async`.

    `leading_rest` is its `*args` if nothing comes before them, `namespace` what the names in its
    annotations mean.
    """

    __slots__ = ("_code", "is_async", "leading_rest", "namespace", "parameters", "takes_any_name")

    def __init__(
        self,
        parameters: "list[Parameter]",
        leading_rest: "Parameter | None",
        takes_any_name: bool,
        is_async: bool,
        namespace: dict,
        code: object,
    ) -> None:
        self.parameters = parameters
        self.leading_rest = leading_rest
        self.takes_any_name = takes_any_name
        self.is_async = is_async
        self.namespace = namespace
        self._code = code

    def names_in_code(self) -> "set[str]":
        """
        Names of attributes and globals in its code, functions within it included; none where there
        is no code.
        """
        names: "set[str]" = set()
        codes = [self._code] if self._code else []
        for code in codes:
            names.update(code.co_names)
            codes += [each for each in code.co_consts if type(each) is type(code)]
        return names


def signature_of(function: object) -> "Signature | None":
    """What a function takes; None for a callable that does not tell."""
    plain = function
    while type(plain) is _Function and "__signature__" not in plain.__dict__:
        if "__wrapped__" not in plain.__dict__:
            return _signature_of_function(plain)
        plain = plain.__wrapped__
    return _signature_by_inspection(function)


def words_of(annotation: object) -> "frozenset[str]":
    """The names in an annotation, which can be a class, a string or a construct of `typing`.

    Without what `Annotated` adds and the values of `Literal`: these are data, not types.
    """
    if annotation is None:
        return _NO_WORDS
    if type(annotation) is type:
        return frozenset((annotation.__name__,))
    if isinstance(annotation, str):
        return _words_in(annotation)
    arguments = getattr(annotation, "__args__", None)
    if arguments is None:
        forward = getattr(annotation, "__forward_arg__", None)
        name = getattr(annotation, "__name__", None)
        return _words_in(forward or name or repr(annotation))
    origin = getattr(annotation, "__origin__", None)
    name = getattr(origin, "__name__", None) or getattr(origin, "_name", None) or ""
    if name == "Literal":
        return frozenset((name,))
    return frozenset((name,)).union(*map(words_of, arguments))


_Function = type(signature_of)
_NO_WORDS: "frozenset[str]" = frozenset()


def _words_in(text: str) -> "frozenset[str]":
    if "Annotated" in text or "Literal" in text:
        # Every second piece stands in quotes.
        text = " ".join(text.replace("'", '"').split('"')[::2])
    return frozenset(
        "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()
    )


def _signature_of_function(function: object) -> Signature:
    code = function.__code__
    annotations = _annotations_of(function)
    parameters = []

    by_position = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    first_default = len(by_position) - len(defaults)
    for index, name in enumerate(by_position):
        kind = POSITIONAL_ONLY if index < code.co_posonlyargcount else EITHER
        required = index < first_default
        default = None if required else defaults[index - first_default]
        parameters.append(Parameter(name, kind, required, default, annotations.get(name)))

    defaults = function.__kwdefaults__ or {}
    end = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[code.co_argcount : end]:
        default = defaults.get(name)
        parameters.append(
            Parameter(name, KEYWORD_ONLY, name not in defaults, default, annotations.get(name))
        )
    flags = code.co_flags
    leading_rest = None
    if flags & _TAKES_ANY_NUMBER and not by_position:
        name = code.co_varnames[end]
        leading_rest = Parameter(name, _ANY_NUMBER, False, None, annotations.get(name))
    return Signature(
        parameters,
        leading_rest,
        bool(flags & _TAKES_ANY_NAME),
        bool(flags & _IS_ASYNC),
        function.__globals__,
        code,
    )


def _annotations_of(function: object) -> dict:
    try:
        return function.__annotations__
    except NameError:
        # From Python 3.14 on they are evaluated here, and one may name what only a type checker has
        # imported.
        return {}


def _signature_by_inspection(function: object) -> "Signature | None":
    """For classes, methods, partials and other callables that have no code object of their own."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD: EITHER,
        inspect.Parameter.KEYWORD_ONLY: KEYWORD_ONLY,
    }

    def or_none(value: object) -> object:
        return None if value is inspect.Parameter.empty else value

    given = list(signature.parameters.values())
    parameters = [
        Parameter(
            each.name,
            kinds[each.kind],
            each.default is inspect.Parameter.empty,
            or_none(each.default),
            or_none(each.annotation),
        )
        for each in given
        if each.kind in kinds
    ]
    leading_rest = None
    if given and given[0].kind is inspect.Parameter.VAR_POSITIONAL:
        annotation = or_none(given[0].annotation)
        leading_rest = Parameter(given[0].name, _ANY_NUMBER, False, None, annotation)
    takes_any_name = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in given)
    # The function that is called in the end: of a partial, or of an object that can be called.
    plain = inspect.unwrap(function)
    plain = getattr(plain, "func", plain)
    if not hasattr(plain, "__globals__"):
        plain = type(plain).__call__
    is_async = inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)
    namespace = getattr(plain, "__globals__", {})
    code = getattr(plain, "__code__", None)
    return Signature(parameters, leading_rest, takes_any_name, is_async, namespace, code)


def class_in(annotation: object, name: str) -> "type | None":
    """The class of a name in an annotation; None where the annotation has only the name."""
    for argument in getattr(annotation, "__args__", None) or (annotation,):
        if isinstance(argument, type) and argument.__name__ == name:
            return argument
        if argument is not annotation and getattr(argument, "__args__", None):
            found = class_in(argument, name)
            if found:
                return found
    return None
