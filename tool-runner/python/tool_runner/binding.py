"""Binds the arguments of a call, which have names, to the parameters of a tool's function.

Three generations of tools run unmodified: those with the context first, whatever its name, those
without, and those with an annotation for it.
"""

from .errors import Failure
from .protocol import Call
from .signatures import KEYWORD_ONLY, POSITIONAL_ONLY, Parameter, Signature, class_in, signature_of

_CONTEXT_NAMES = ("ctx", "context", "tool_context")
# Members of the context that nothing else is likely to have: not `cancelled`, `deadline`, `log` and
# `state`.
_CONTEXT_MEMBERS = frozenset(
    "a2a_context app_name artifact_exists auth_token call_llm get_auth_token get_config get_config_string "
    "list_artifacts list_output_artifacts load_artifact load_artifact_by_param load_artifact_metadata "
    "load_artifact_text on_cancel partial_result raw_tool_context report_progress save_artifact save_artifact_text "
    "send_signal send_status session_id task_id time_left traceparent tracestate user_id "
    "user_profile volume_mounts".split()
)
_CONFIG_NAME = "tool_config"
_PROVIDER_NAME = "self"
# Annotations that ask for the context. Other names with the first in them mean the first.
_CONTEXT = "ToolContext"
_FACADE = "ToolContextFacade"
_SANDBOX_FACADE = "SandboxToolContextFacade"
_ARTIFACT = "Artifact"
# A parameter annotated with one of these wants data from the caller, never the context.
_DATA_WORDS = frozenset(
    "str int float complex bool bytes list dict tuple set frozenset "
    "List Dict Tuple Set Sequence Iterable Mapping Literal".split()
)


def bind(function: object, call: Call, context: object) -> tuple:
    """The positional and the keyword arguments to call a function with.

    An argument never takes the place of the configuration, which is the operator's. Raises Failure
    for an argument that is missing or that the function does not take.
    """
    signature = signature_of(function)
    if signature is None:
        return (), call.args
    parameters = signature.parameters
    wanting_artifacts = artifact_parameters(signature)
    wanting_context = _context_parameters(signature, call.args, wanting_artifacts)
    injected = {parameter.name: _context_for(kind, context) for parameter, kind in wanting_context}
    tool_config = call.tool_config
    if parameters and parameters[0].name == _PROVIDER_NAME:
        from .providers import provider_of

        tool_config, provider = provider_of(function, call)
        if provider is not None:
            injected[_PROVIDER_NAME] = provider
    if any(each.name == _CONFIG_NAME for each in parameters):
        injected[_CONFIG_NAME] = tool_config
    _refuse_unknown(call, signature, injected)
    values = {**call.args, **injected}
    if wanting_artifacts:
        from .artifact_parameters import artifacts_of

        values.update(artifacts_of(wanting_artifacts, call, signature.namespace))
    missing = [each.name for each in parameters if each.required and each.name not in values]
    if missing:
        raise Failure("EXECUTION_ERROR", f"{call.function}() is missing {_quoted(missing)}")

    rest = signature.leading_rest
    # Only a decorator's function, which hides the tool's own parameters, begins with `*args`.
    if not wanting_context and rest is not None and _DATA_WORDS.isdisjoint(rest.words):
        return [context], values
    by_position = [each for each in parameters if each.kind is POSITIONAL_ONLY]
    return [values.pop(each.name, each.default) for each in by_position], values


def artifact_parameters(signature: Signature) -> "list[Parameter]":
    """The parameters that get artifacts in place of filenames."""
    return [each for each in signature.parameters if _ARTIFACT in each.words]


def hidden_parameters(function: object, signature: Signature, module: object) -> "tuple[set[str], bool]":
    """Names of parameters that are none of a caller's: the context, the configuration, `self`; and
    whether the context's is guessed: an argument of that name is taken for data.
    """
    parameters = signature.parameters
    wanting = _context_parameters(signature, {}, artifact_parameters(signature))
    names = {each.name for each, _ in wanting} | {_CONFIG_NAME}
    is_guess = any(_kind_of(each, signature) is None for each, _ in wanting)
    names.update(each.name for each in parameters if _kind_of(each, signature) is not None)
    if parameters and parameters[0].name == _PROVIDER_NAME:
        from .providers import provider_class

        if provider_class(function, module) is not None:
            names.add(_PROVIDER_NAME)
    return names, is_guess


def _refuse_unknown(call: Call, signature: Signature, injected: dict) -> None:
    accepted = [each.name for each in signature.parameters if each.name not in injected]
    unknown = [
        arg for arg in call.args if arg in injected or not (signature.takes_any_name or arg in accepted)
    ]
    if unknown:
        others = ["any other"] if signature.takes_any_name else []
        takes = ", ".join(accepted + others) or "no arguments"
        text = f"{call.function}() does not take {_quoted(unknown)}; it takes {takes}"
        raise Failure("EXECUTION_ERROR", text)


def _context_for(kind: str, context: object) -> object:
    if kind == _CONTEXT:
        return context
    from secure_tool_runtime.facade import SandboxToolContextFacade, SynchronousFacade

    return SandboxToolContextFacade(context) if kind == _FACADE else SynchronousFacade(context)


def _context_parameters(
    signature: Signature, args: dict, taken: "list[Parameter]"
) -> "list[tuple[Parameter, str]]":
    """The parameters that get the context, with its kind: those annotated with it; else the first
    of its names; else a first parameter that the code uses as a context.
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


def _kind_of(parameter: Parameter, signature: Signature) -> "str | None":
    """The context that an annotation asks for; None without one, "" for an agent's own context."""
    words = parameter.words
    if not any(_CONTEXT in word for word in words):
        return None
    if _FACADE in words:
        return _FACADE
    if _SANDBOX_FACADE in words:
        # A function that cannot await means what the design document means by the name.
        return _FACADE if signature.is_async else _SANDBOX_FACADE
    meant = class_in(parameter.annotation, _CONTEXT) or signature.namespace.get(_CONTEXT)
    is_agents = (getattr(meant, "__module__", None) or "").startswith("google.")
    # No agent's context is here. A tool that can do without gets its default.
    return "" if is_agents and not parameter.required else _CONTEXT


def _quoted(names: "list[str]") -> str:
    noun = "the argument" if len(names) == 1 else "the arguments"
    return noun + " " + ", ".join(f'"{name}"' for name in names)
