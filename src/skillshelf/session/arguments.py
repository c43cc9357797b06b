"""A body and what the user typed to the body a model gets."""

from collections.abc import Callable, Mapping
from typing import Literal

__all__ = ["MODES", "with_arguments"]

PLACEHOLDER = "$ARGUMENTS"

EmptyArguments = Literal["replace", "keep"]
"""What an empty text does to a placeholder: the plan of one system says nothing happens, its code replaces."""


def with_arguments(body: str, arguments: str, mode: str, *, empty: EmptyArguments) -> str:
    """The body with the arguments in it, as the mode says; nothing else in the body is expanded."""
    return MODES[mode](body, arguments.strip(), empty)


def _none(body: str, arguments: str, empty: EmptyArguments) -> str:
    return body


def _substitute(body: str, arguments: str, empty: EmptyArguments) -> str:
    if PLACEHOLDER in body:
        # One pass: arguments that hold the placeholder are not expanded again.
        return body if not arguments and empty == "keep" else body.replace(PLACEHOLDER, arguments)
    return _append(body, arguments, empty)


def _append(body: str, arguments: str, empty: EmptyArguments) -> str:
    return f"{body.rstrip()}\n\nARGUMENTS: {arguments}\n" if arguments else body


MODES: Mapping[str, Callable[[str, str, EmptyArguments], str]] = {
    "none": _none,
    "substitute": _substitute,
    "append": _append,
    # The form that renders the text writes the line itself.
    "user-line": _none,
}
