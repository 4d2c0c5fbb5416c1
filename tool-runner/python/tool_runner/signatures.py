"""What a function takes: names, kinds, defaults and annotations of its parameters.

Read from code objects where there are some: an import of `inspect` takes a cold call from 56 to
81 ms, where the tool has not imported it.
"""

POSITIONAL_ONLY, EITHER, KEYWORD_ONLY = "positional only", "either", "keyword only"
_ANY_NUMBER = "any number"

# Flags of code objects, as `inspect` has them.
_CO_VARARGS, _CO_VARKEYWORDS, _CO_ASYNC = 0x04, 0x08, 0x80 | 0x200


class Parameter:
    """A named parameter of a function. `words` are the names in its annotation."""

    def __init__(self, name: str, kind: str, required: bool, default: object, annotation: object) -> None:
        self.name = name
        self.kind = kind
        self.required = required
        self.default = default
        self.annotation = annotation
        self.words = words_of(annotation)


class Signature:
    """What a function takes. `leading_rest` is its `*args` if no parameter comes before them,
    `namespace` has the meaning of names in its annotations.
    """

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
        """Names of attributes and globals in its code, functions within it included."""
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
            return _signature_of_code(plain)
        plain = plain.__wrapped__
    return _signature_by_inspection(function)


def words_of(annotation: object) -> "frozenset[str]":
    """The names in an annotation, which is a class, a string or a construct of `typing`.

    Without what `Annotated` adds and the values of `Literal`: these are data, not types.
    """
    if annotation is None:
        return frozenset()
    if type(annotation) is type:
        return frozenset((annotation.__name__,))
    if isinstance(annotation, str):
        return _words_in(annotation)
    arguments = getattr(annotation, "__args__", None)
    if arguments is None:
        forward = getattr(annotation, "__forward_arg__", None)
        return _words_in(forward or getattr(annotation, "__name__", None) or repr(annotation))
    origin = getattr(annotation, "__origin__", None)
    name = getattr(origin, "__name__", None) or getattr(origin, "_name", None) or ""
    return frozenset((name,)).union(*([] if name == "Literal" else map(words_of, arguments)))


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


_Function = type(signature_of)


def _words_in(text: str) -> "frozenset[str]":
    if "Annotated" in text or "Literal" in text:
        # Every second piece stands in quotes.
        text = " ".join(text.replace("'", '"').split('"')[::2])
    letters = (letter if letter.isalnum() or letter == "_" else " " for letter in text)
    return frozenset("".join(letters).split())


def _signature_of_code(function: object) -> Signature:
    code = function.__code__
    annotations = _annotations_of(function)
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    defaults = dict(zip(reversed(code.co_varnames[:count]), reversed(function.__defaults__ or ())))
    defaults.update(function.__kwdefaults__ or {})
    kinds = [POSITIONAL_ONLY] * code.co_posonlyargcount
    kinds += [EITHER] * (count - len(kinds)) + [KEYWORD_ONLY] * code.co_kwonlyargcount
    parameters = [
        Parameter(name, kind, name not in defaults, defaults.get(name), annotations.get(name))
        for name, kind in zip(code.co_varnames, kinds)
    ]
    leading_rest = None
    if code.co_flags & _CO_VARARGS and count == 0:
        name = code.co_varnames[end]
        leading_rest = Parameter(name, _ANY_NUMBER, False, None, annotations.get(name))
    takes_any_name, is_async = (bool(code.co_flags & flag) for flag in (_CO_VARKEYWORDS, _CO_ASYNC))
    return Signature(
        parameters, leading_rest, takes_any_name, is_async, function.__globals__, code
    )


def _annotations_of(function: object) -> dict:
    try:
        return function.__annotations__
    except NameError:
        # Python 3.14 evaluates them here. A name may be there for type checkers only.
        return {}


def _signature_by_inspection(function: object) -> "Signature | None":
    """For classes, methods, partials and other callables without a code object."""
    import inspect

    try:
        given = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD: EITHER,
        inspect.Parameter.KEYWORD_ONLY: KEYWORD_ONLY,
        inspect.Parameter.VAR_POSITIONAL: _ANY_NUMBER,
    }
    parameters = [
        Parameter(
            each.name,
            kinds[each.kind],
            each.default is each.empty and each.kind is not each.VAR_POSITIONAL,
            None if each.default is each.empty else each.default,
            None if each.annotation is each.empty else each.annotation,
        )
        for each in given
        if each.kind in kinds
    ]
    leading_rest = parameters[0] if parameters and parameters[0].kind is _ANY_NUMBER else None
    # The function that is called in the end: of a partial, or of an object that can be called.
    plain = inspect.unwrap(function)
    plain = getattr(plain, "func", plain)
    if not hasattr(plain, "__globals__"):
        plain = type(plain).__call__
    return Signature(
        [each for each in parameters if each.kind is not _ANY_NUMBER],
        leading_rest,
        any(each.kind is each.VAR_KEYWORD for each in given),
        inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain),
        getattr(plain, "__globals__", {}),
        getattr(plain, "__code__", None),
    )
