"""
How the arguments of a call, which have names, meet a tool's function, which may be written in
several ways.

Three generations of tools exist: those that take the context first whatever its name, those that
take none, and those that say by an annotation which parameter wants it. All three run unmodified.
"""

from .protocol import BadArguments, Call
from .signatures import KEYWORD_ONLY, POSITIONAL_ONLY, Parameter, Signature, class_in, signature_of

_CONTEXT_NAMES = ("ctx", "context", "tool_context")
# What code asks of a context and of no argument: JSON brings no value that has one of these.
_CONTEXT_MEMBERS = frozenset(
    "a2a_context app_name artifact_exists auth_token call_llm get_auth_token get_config get_config_string "
    "list_artifacts list_output_artifacts load_artifact load_artifact_by_param load_artifact_metadata "
    "load_artifact_text raw_tool_context save_artifact save_artifact_text send_signal send_status session_id "
    "task_id user_id user_profile volume_mounts".split()
)
_CONFIG_NAME = "tool_config"
# The first parameter of a function that is registered with a class that provides tools.
_PROVIDER_NAME = "self"
# Annotations that ask for the context; other names with the first of them in it are taken for the
# first.
_CONTEXT = "ToolContext"
_FACADE = "ToolContextFacade"
_SANDBOX_FACADE = "SandboxToolContextFacade"
# An annotation that asks for an artifact.
_ARTIFACT = "Artifact"
# A parameter annotated with one of these wants data from the caller, never the context.
_DATA_WORDS = frozenset(
    "str int float complex bool bytes list dict tuple set frozenset "
    "List Dict Tuple Set Sequence Iterable Mapping Literal".split()
)


def bind(function: object, call: Call, context: object) -> tuple:
    """The positional and the keyword arguments to call a function with.

    Parameters that take the context and one named `tool_config` are filled in, artifact parameters
    get their artifacts, everything else comes from the call's `args`. Raises BadArguments for an
    argument that the function does not take or that is missing. The configuration is the
    operator's: an argument never takes its place.
    """
    signature = signature_of(function)
    if signature is None:
        return (), call.args
    parameters = signature.parameters
    tool_config, provided = call.tool_config, {}
    if parameters and parameters[0].name == _PROVIDER_NAME:
        from .provided import provider_of

        tool_config, provided = provider_of(function, call)
    wanting_artifacts = [each for each in parameters if _ARTIFACT in each.words]
    wanting_context = _context_parameters(signature, call.args, wanting_artifacts)
    injected = {parameter.name: _context_for(kind, context) for parameter, kind in wanting_context}
    injected.update(provided)
    if any(each.name == _CONFIG_NAME for each in parameters):
        injected[_CONFIG_NAME] = tool_config
    accepted = [each.name for each in parameters if each.name not in injected]

    unknown = [
        arg for arg in call.args if arg in injected or not (signature.takes_any_name or arg in accepted)
    ]
    if unknown:
        others = ["any other"] if signature.takes_any_name else []
        takes = ", ".join(accepted + others) or "no arguments"
        raise BadArguments(f"{call.function}() does not take {_quoted(unknown)}; it takes {takes}")
    values = {**call.args, **injected}
    if wanting_artifacts:
        from .artifact_parameters import artifacts_of

        values.update(artifacts_of(wanting_artifacts, call, signature.namespace))
    missing = [each.name for each in parameters if each.required and each.name not in values]
    if missing:
        raise BadArguments(f"{call.function}() is missing {_quoted(missing)}")

    if not wanting_context and _is_open(signature.leading_rest):
        return [context], values
    by_position = [each for each in parameters if each.kind is POSITIONAL_ONLY]
    return [values.pop(each.name, each.default) for each in by_position], values


def _context_for(kind: str, context: object) -> object:
    """
    The context of a kind: `ToolContext`, `ToolContextFacade`, or `SandboxToolContextFacade` without
    await.
    """
    if kind == _CONTEXT:
        return context
    from secure_tool_runtime.facade import SandboxToolContextFacade, SynchronousFacade

    return SandboxToolContextFacade(context) if kind == _FACADE else SynchronousFacade(context)


def _context_parameters(
    signature: Signature, args: dict, taken: "list[Parameter]"
) -> "list[tuple[Parameter, str]]":
    """
    Those that an annotation names; else one that is named for it; else a first one that the code
    uses as one.

    With each, which of the contexts it wants.
    """
    annotated = [(each, _kind_of(each, signature)) for each in signature.parameters]
    wanting = [(each, kind) for each, kind in annotated if kind]
    if wanting:
        return wanting
    first = signature.parameters[0] if signature.parameters else None
    open_to_context = [
        each
        for each, kind in annotated
        if kind is None
        and each not in taken
        and each.name not in args
        and each.name not in (_CONFIG_NAME, _PROVIDER_NAME)
        and (each.required or (each is first and each.annotation is None))
        and _DATA_WORDS.isdisjoint(each.words)
    ]
    named = [each for each in open_to_context if each.name in _CONTEXT_NAMES]
    if named:
        return [(named[0], _CONTEXT)]
    takes_context = (
        first in open_to_context
        and first.required
        and first.kind is not KEYWORD_ONLY
        and (first.name.startswith("_") or not _CONTEXT_MEMBERS.isdisjoint(signature.names_in_code()))
    )
    return [(first, _CONTEXT)] if takes_context else []


def _is_open(rest: "Parameter | None") -> bool:
    """
    Whether `*args` get the context: a decorator's function that only passes on says nothing else of
    the tool's.
    """
    return rest is not None and _DATA_WORDS.isdisjoint(rest.words)


def _kind_of(parameter: Parameter, signature: Signature) -> "str | None":
    """
    Which context an annotation asks for; None where it says nothing, "" where it means another one.
    """
    words = parameter.words
    if not any(_CONTEXT in word for word in words):
        return None
    if _FACADE in words:
        return _FACADE
    if _SANDBOX_FACADE in words:
        # To a function that cannot await, the name means what the design document means by it.
        return _FACADE if signature.is_async else _SANDBOX_FACADE
    # The context of an agent's process, which is not here: a tool that can do without it gets none,
    # as it ever did.
    is_agents = _module_of(_CONTEXT, parameter.annotation, signature.namespace).startswith("google.")
    return "" if is_agents and not parameter.required else _CONTEXT


def _module_of(name: str, annotation: object, namespace: dict) -> str:
    meant = class_in(annotation, name) or namespace.get(name)
    return getattr(meant, "__module__", None) or ""


def _quoted(names: "list[str]") -> str:
    noun = "the argument" if len(names) == 1 else "the arguments"
    return noun + " " + ", ".join(f'"{name}"' for name in names)
