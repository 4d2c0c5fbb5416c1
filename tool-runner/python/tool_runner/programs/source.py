"""The source text of a program: its code, and the module that it runs as."""

# `_ast` without the classes of `ast` that visit trees, whose import takes 6 ms.
import _ast
import sys

from ..errors import Failure

# In tracebacks. No file has this name, and `linecache` takes it for one.
NAME = "<program>.py"
_CO_COROUTINE = 0x80  # Flag of code objects (inspect.CO_COROUTINE).


class Source:
    """A source text; the loader that `linecache` asks for it, too."""

    def __init__(self, text: str) -> None:
        # Python itself takes the byte order mark of a file only.
        self.text = text.removeprefix("\ufeff")
        self.lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def get_source(self, _name: str) -> str:
        """As importlib wants it."""
        return self.text

    def module(self) -> object:
        """A new module for the program: classes and functions in it can be found and pickled."""
        module = type(sys)("__main__")
        module.__loader__ = self
        return module

    def compiled(self) -> "list[object]":
        """Code of the statements and, where the last one is an expression, of this. Raises Failure
        for a syntax error.
        """
        try:
            tree = _compile(self.text, "exec", _ast.PyCF_ONLY_AST)
            if not tree.body or not isinstance(tree.body[-1], _ast.Expr):
                return [_compile(tree, "exec")]
            last = _ast.Expression(tree.body.pop().value)
            return [_compile(tree, "exec"), _compile(last, "eval")]
        except SyntaxError as error:
            raise _failure_of(error) from None
        except (ValueError, OverflowError, RecursionError, MemoryError) as error:
            # Of a text that is nested too deeply, or that is not Unicode.
            reason = str(error) or "the source is too complex to parse"
            raise Failure("EXECUTION_ERROR", f"SyntaxError: {reason}") from None


def awaits(code: object) -> bool:
    """Whether the value of a code is a coroutine, to be awaited."""
    return bool(code.co_flags & _CO_COROUTINE)


def _compile(source: object, mode: str, flags: int = 0) -> object:
    flags |= _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return compile(source, NAME, mode, flags, dont_inherit=True)


def _failure_of(error: SyntaxError) -> Failure:
    text = f"{type(error).__name__}: {error.msg}"
    if not error.lineno:
        return Failure("EXECUTION_ERROR", text)
    place = {"line": error.lineno, "column": max(error.offset or 1, 1)}
    text += f" (line {place['line']}, column {place['column']})"
    return Failure("EXECUTION_ERROR", text, data=place)
