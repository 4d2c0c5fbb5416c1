"""What a docstring says of a tool and its parameters, in the styles of Google, NumPy and reST."""

import inspect
import re

# Characters of a docstring that are read.
_MAX_CHARACTERS = 20_000

_GOOGLE_HEADER = re.compile(r"(?:Args|Arguments|Parameters|Params|Attributes|(?:Keyword|Other) \w+):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?")
_NUMPY_HEADER = re.compile(r"(?:Other )?(?:Parameters|Attributes)\s*")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_UNDERLINE = re.compile(r"-{3,}\s*|={3,}\s*")
_FIELD = re.compile(r"[:@](?:param|parameter|arg|argument|key|keyword|ivar)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_OTHER_FIELD = re.compile(r"[:@](?:returns?|rtype|raises?|type|yields?)\b")
_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Params|Attributes|Returns?|Raises|Yields|Examples?|Notes?"
    r"|(?:Keyword|Other) \w+):?\s*"
)


class Docstring:
    """The first paragraph of a docstring, None without one, and texts of parameters by name."""

    def __init__(self, text: object) -> None:
        lines = inspect.cleandoc(text[:_MAX_CHARACTERS]).split("\n") if isinstance(text, str) else []
        self.description = _first_paragraph(lines)
        self.parameters = {**_of_google(lines), **_of_numpy(lines), **_of_fields(lines)}


def _first_paragraph(lines: "list[str]") -> "str | None":
    paragraph = []
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        is_header = _SECTION.fullmatch(line) and (line.rstrip().endswith(":") or _UNDERLINE.fullmatch(following))
        if not line.strip() or is_header or _FIELD.match(line) or _OTHER_FIELD.match(line):
            break
        paragraph.append(line.strip())
    return " ".join(paragraph) or None


def _of_google(lines: "list[str]") -> "dict[str, str]":
    texts: "dict[str, list[str]]" = {}
    indent = name = None
    for line in lines:
        width = len(line) - len(line.lstrip())
        if _GOOGLE_HEADER.fullmatch(line):
            indent, name = 0, None
        elif not line.strip():
            continue
        elif indent is None or width == 0:
            indent = name = None
        else:
            indent = indent or width
            entry = _GOOGLE_ENTRY.fullmatch(line.strip()) if width <= indent else None
            if entry:
                name = entry[1]
                texts[name] = [entry[2] or ""]
            elif name:
                texts[name].append(line.strip())
    return _joined(texts)


def _of_numpy(lines: "list[str]") -> "dict[str, str]":
    texts: "dict[str, list[str]]" = {}
    names: "list[str]" = []
    is_inside = False
    for line, following in zip(lines, [*lines[1:], ""]):
        if _UNDERLINE.fullmatch(line):
            continue
        if _UNDERLINE.fullmatch(following):
            is_inside, names = bool(_NUMPY_HEADER.fullmatch(line)), []
        elif is_inside and line[:1].strip():
            entry = _NUMPY_ENTRY.fullmatch(line)
            names = [each.strip(" *") for each in entry[1].split(",")] if entry else []
            texts.update((name, []) for name in names)
        elif line.strip():
            for name in names:
                texts[name].append(line.strip())
    return _joined(texts)


def _of_fields(lines: "list[str]") -> "dict[str, str]":
    texts: "dict[str, list[str]]" = {}
    name = None
    for line in lines:
        field = _FIELD.match(line)
        if field:
            name = field[1]
            texts[name] = [field[2]]
        elif name and line[:1] in (" ", "\t") and line.strip():
            texts[name].append(line.strip())
        else:
            name = None
    return _joined(texts)


def _joined(texts: "dict[str, list[str]]") -> "dict[str, str]":
    joined = {name: " ".join(filter(None, lines)) for name, lines in texts.items()}
    return {name: text for name, text in joined.items() if text}
