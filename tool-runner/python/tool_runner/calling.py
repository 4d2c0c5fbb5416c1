"""How the arguments of a call, which have names, meet a tool's function, which may be written in several ways.

Three generations of tools exist: those that take the context first whatever its name, those that take none, and
those that say by an annotation which parameter wants it. All three run unmodified.
"""

POSITIONAL_ONLY, EITHER, KEYWORD_ONLY = "positional only", "either", "keyword only"

_TAKES_ANY_NAME = 0x08  # CO_VARKEYWORDS of the code object's flags
_CONTEXT_NAMES = ("ctx", "context", "tool_context")
# Part of the name of every context class: ToolContext, ToolContextFacade, SandboxToolContextFacade.
_CONTEXT_CLASS = "ToolContext"
_CONFIG_NAME = "tool_config"
# A parameter annotated with one of these wants data from the caller, never the context.
_DATA_WORDS = frozenset(
    "str int float complex bool bytes list dict tuple set frozenset "
    "List Dict Tuple Set Sequence Iterable Mapping Literal".split()
)


class BadArguments(Exception):
    """The arguments do not fit the function. The text names function and argument and may be published."""


class Parameter:
    """A named parameter of a function."""

    __slots__ = ("annotation", "default", "kind", "name", "required")

    def __init__(self, name: str, kind: str, required: bool, default: object, annotation: object) -> None:
        self.name = name
        self.kind = kind
        self.required = required
        self.default = default
        self.annotation = annotation


def bind(name: str, function: object, args: dict, context: object, tool_config: dict) -> tuple:
    """The positional and the keyword arguments to call a function with.

    `name` is what the manifest calls the function. A parameter that takes the context and one named `tool_config`
    are filled in; everything else comes from `args`. Raises BadArguments for an argument that the function does
    not take or that is missing.
    """
    signature = signature_of(function)
    if signature is None:
        return (), args
    parameters, takes_any_name = signature
    injected = {parameter.name: context for parameter in _context_parameters(parameters, args)}
    if _CONFIG_NAME not in args and any(parameter.name == _CONFIG_NAME for parameter in parameters):
        injected[_CONFIG_NAME] = tool_config
    accepted = [parameter.name for parameter in parameters if parameter.name not in injected]

    unknown = [] if takes_any_name else [arg for arg in args if arg not in accepted]
    if unknown:
        takes = ", ".join(accepted) or "no arguments"
        raise BadArguments(f"{name}() does not take {_quoted(unknown)}; it takes {takes}")
    values = {**args, **injected}
    missing = [each.name for each in parameters if each.required and each.name not in values]
    if missing:
        raise BadArguments(f"{name}() is missing {_quoted(missing)}")

    by_position = [each for each in parameters if each.kind is POSITIONAL_ONLY]
    return [values.pop(each.name, each.default) for each in by_position], values


def signature_of(function: object) -> "tuple[list[Parameter], bool] | None":
    """The named parameters and whether any other name is taken too; None for a callable that does not tell."""
    plain = function
    while type(plain) is _Function and "__signature__" not in plain.__dict__:
        if "__wrapped__" not in plain.__dict__:
            return _signature_of_function(plain)
        plain = plain.__wrapped__
    return _signature_by_inspection(function)


_Function = type(signature_of)


def _signature_of_function(function: object) -> tuple:
    """Reads the code object: `inspect` says the same and takes 11 ms to import."""
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
    for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
        default = defaults.get(name)
        parameters.append(
            Parameter(name, KEYWORD_ONLY, name not in defaults, default, annotations.get(name))
        )
    return parameters, bool(code.co_flags & _TAKES_ANY_NAME)


def _annotations_of(function: object) -> dict:
    try:
        return function.__annotations__
    except NameError:
        # From Python 3.14 on they are evaluated here, and one may name what only a type checker has imported.
        return {}


def _signature_by_inspection(function: object) -> "tuple | None":
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
    return parameters, any(each.kind is inspect.Parameter.VAR_KEYWORD for each in given)


def _context_parameters(parameters: "list[Parameter]", args: dict) -> "list[Parameter]":
    """Those that an annotation names; else one that is named for it; else a first one that nothing else fills."""
    annotated = [each for each in parameters if _CONTEXT_CLASS in _annotation_text(each.annotation)]
    if annotated:
        return annotated
    open_to_context = [
        each for each in parameters if each.name not in args and not _is_data(each.annotation)
    ]
    named = [each for each in open_to_context if each.name in _CONTEXT_NAMES]
    if named:
        return named[:1]
    first = parameters[0] if parameters else None
    takes_context = (
        first in open_to_context
        and first.required
        and first.kind is not KEYWORD_ONLY
        and first.name != _CONFIG_NAME
    )
    return [first] if takes_context else []


def _is_data(annotation: object) -> bool:
    text = _annotation_text(annotation)
    words = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()
    return not _DATA_WORDS.isdisjoint(words)


def _annotation_text(annotation: object) -> str:
    """An annotation as its author may have written it: it can be a class, a string or a construct of `typing`."""
    if annotation is None:
        return ""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type):
        return annotation.__name__
    return repr(annotation)


def _quoted(names: "list[str]") -> str:
    noun = "the argument" if len(names) == 1 else "the arguments"
    return noun + " " + ", ".join(f'"{name}"' for name in names)
