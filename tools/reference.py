"""Generate the Python reference from the signatures and docstrings of every public name.

The source is read, not imported: what a signature says does not depend on the version of Python that runs this.
"""

import ast
import functools
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import skillshelf
from skillshelf import errors

__all__ = ["python_reference", "undocumented"]

_GROUPS = {
    "Opening a shelf": ("shelf",),
    "The catalog": ("core", "catalog"),
    "Sources": ("install",),
    "Search": ("search",),
    "Conversations": ("session",),
    "The journal": ("journal",),
    "Profiles": ("config",),
    "Names of the described systems": ("adapters",),
    "Exceptions": ("errors",),
}
"""The sections of the page, and the packages whose public names stand in each."""

_MADE_BY = {"Shelf": "open_shelf", "Session": "Shelf.session", "AgentSession": "AgentSession.create"}
"""Classes that a caller does not construct, with the call that returns one."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Node: TypeAlias = _Function | ast.ClassDef | ast.Assign | ast.AnnAssign


def python_reference() -> str:
    """Return the reference of all public names, by section and in alphabetical order."""
    sections = [f"## {title}\n\n" + "\n\n".join(_entries(packages)) for title, packages in _GROUPS.items()]
    return "\n\n".join(sections)


def undocumented() -> list[str]:
    """Return every public name, method and property without a docstring."""
    missing = []
    for name in _public_names():
        node, doc = _definition(name)
        missing += [] if doc else [name]
        if isinstance(node, ast.ClassDef):
            missing += [f"{name}.{method.name}" for method in _methods(node) if not ast.get_docstring(method)]
    return missing


def _public_names() -> list[str]:
    return [name for name in skillshelf.__all__ if name != "__version__"]


def _home(name: str) -> str:
    """Return the module that defines a public name; a type alias does not know its own."""
    value = getattr(skillshelf, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return value.__module__
    imports = (node for node in ast.walk(_module("skillshelf")) if isinstance(node, ast.ImportFrom))
    return next(str(node.module) for node in imports if name in {alias.name for alias in node.names})


def _entries(packages: tuple[str, ...]) -> Iterator[str]:
    for name in _public_names():
        if _home(name).split(".")[1] in packages:
            node, doc = _definition(name)
            yield f"### `{name}`\n\n" + "\n\n".join(_entry(name, node, doc))


def _entry(name: str, node: _Node, doc: str) -> Iterator[str]:
    if isinstance(node, _Function):
        yield f"```text\n{_signature(node, name, width=100)}\n```"
        yield doc
    elif isinstance(node, ast.ClassDef):
        yield from _class(name, node, doc)
    else:
        assert node.value
        yield doc
        yield f"```text\n{name} = {_wrapped_union(ast.unparse(node.value))}\n```"


def _class(name: str, node: ast.ClassDef, doc: str) -> Iterator[str]:
    yield f"{doc}\n\n{_status(name)}".strip()
    fields = [*_fields(node), *_attributes(node)]
    constructor = next((item for item in node.body if isinstance(item, _Function) and item.name == "__init__"), None)
    if name in _MADE_BY:
        yield f"Returned by `{_MADE_BY[name]}`; do not construct it yourself."
    elif constructor:
        yield f"```text\n{_signature(constructor, name, width=100)}\n```"
    if fields:
        yield "Fields:\n\n```text\n" + "\n".join(fields) + "\n```"
    if methods := [_method(method) for method in _methods(node)]:
        yield "\n\n".join(methods)


def _status(name: str) -> str:
    """Return the code and exit status of an exception, where `errors` has a table of them."""
    kind = getattr(skillshelf, name)
    tables = [value for value in vars(errors).values() if isinstance(value, Mapping) and errors.SkillError in value]
    if not tables or not (inspect.isclass(kind) and issubclass(kind, errors.SkillError)):
        return ""
    code, status = next(tables[0][base] for base in kind.__mro__ if base in tables[0])
    return f"Code `{code}`, exit status {int(status)}."


def _fields(node: ast.ClassDef) -> list[str]:
    """Return the public fields that the body of a class declares."""
    lines = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
            default = f" = {_short(item.value)}" if item.value else ""
            lines.append(f"{ast.unparse(item.target)}: {_type(item.annotation)}{default}")
    return lines


def _attributes(node: ast.ClassDef) -> list[str]:
    """Return the public attributes that the constructor of a class sets."""
    constructor = next((item for item in node.body if isinstance(item, _Function) and item.name == "__init__"), None)
    if constructor is None:
        return []
    parameters = {
        argument.arg: argument.annotation
        for argument in (*constructor.args.args, *constructor.args.kwonlyargs)
        if argument.annotation
    }
    lines = []
    for item in ast.walk(constructor):
        target = item.targets[0] if isinstance(item, ast.Assign) else getattr(item, "target", None)
        if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
            annotation = item.annotation if isinstance(item, ast.AnnAssign) else parameters.get(target.attr)
            lines.append(f"{target.attr}: {_type(annotation)}" if annotation else target.attr)
    return lines


def _methods(node: ast.ClassDef) -> list[_Function]:
    return [item for item in node.body if isinstance(item, _Function) and not item.name.startswith("_")]


def _method(node: _Function) -> str:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if "property" in decorators:
        head = f"`{node.name}: {_type(node.returns)}`" if node.returns else f"`{node.name}`"
    else:
        kind = next((f"{word} " for word in ("classmethod", "staticmethod") if word in decorators), "")
        head = f"{kind}`{_signature(node, node.name)}`"
    doc = ast.get_docstring(node) or ""
    return f"- {head}\n\n" + "\n".join(f"  {line}".rstrip() for line in doc.splitlines())


def _signature(node: _Function, name: str, *, width: int | None = None) -> str:
    """Return the call of a function; one longer than `width` has a line for each parameter."""
    bound = {"self", "cls"} & {argument.arg for argument in node.args.args[:1]}
    parameters = list(_parameters(node.args))[1 if bound else 0 :]
    coroutine = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    returns = f" -> {_type(node.returns)}" if node.returns and node.name != "__init__" else ""
    line = f"{coroutine}{name}({', '.join(parameters)}){returns}"
    if width is None or len(line) <= width:
        return line
    return f"{coroutine}{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){returns}"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    hint = f": {_type(argument.annotation)}" if argument.annotation else ""
    equals = " = " if hint else "="
    return f"{argument.arg}{hint}" + (f"{equals}{_short(default)}" if default else "")


def _type(annotation: ast.expr) -> str:
    """Return an annotation without the quotes of a forward reference."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation)


def _short(value: ast.expr) -> str:
    text = ast.unparse(value)
    return text if len(text) <= 40 else "..."


def _wrapped_union(text: str) -> str:
    return text.replace(" | ", "\n    | ") if len(text) > 100 else text


@functools.cache
def _module(name: str) -> ast.Module:
    spec = importlib.util.find_spec(name)
    assert spec
    assert spec.origin
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _definition(name: str) -> tuple[_Node, str]:
    """Return the statement that defines a public name, and its docstring."""
    body = _module(_home(name)).body
    for number, node in enumerate(body):
        if isinstance(node, _Function | ast.ClassDef) and node.name == name:
            return node, ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                after = body[number + 1] if number + 1 < len(body) else None
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                return node, inspect.cleandoc(str(after.value.value)) if is_text else ""  # type: ignore[union-attr]
    raise LookupError(f"{name} is not defined in {_home(name)}")
