"""Show what the security rules found in skills of a stranger, and ask whether to go on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skillshelf.cli.command_table import command_again
from skillshelf.core.console import ask, can_ask, note
from skillshelf.errors import PermissionDenied

if TYPE_CHECKING:
    from skillshelf.lint.consent import Consent

__all__ = ["agreed", "refusal", "require_consent", "show_findings"]


def show_findings(consent: "Consent", folder: str) -> None:
    """Show each finding on a line of its own, with its path from a folder."""
    for line in consent.lines(folder):
        note(line)


def refusal(consent: "Consent", message: str, command: str, rules: tuple[str, ...]) -> PermissionDenied:
    """Return the error of something that is not done because of findings; it names the command that does it."""
    error = PermissionDenied(
        f"{message} have findings of security rules{consent.warning} "
        f"(after you have read them: {command} --accept-rule {','.join(rules)})"
    )
    error.findings = tuple(consent.rows())
    return error


def require_consent(
    consent: "Consent", question: str, refused: PermissionDenied, *, asks: bool, no: PermissionDenied
) -> None:
    """Ask whether to go on in spite of findings that were shown; raise one of the errors if nobody agrees."""
    if not (asks and can_ask()):
        raise refused
    if not ask(f"{question} in spite of these findings{consent.warning}? [y/N] "):
        no.findings = tuple(consent.rows())
        raise no


def agreed(
    values: Mapping[str, Any],
    command: str,
    question: str,
    consent: "Consent | None" = None,
    folder: str = "",
    *,
    done: str = "published",
) -> bool:
    """Return whether the user agrees to what was shown; `--yes` never accepts findings of severity error.

    `folder` is where paths of findings start, `done` is what was not done with files that have such findings.
    """
    again = command_again(values, command, yes=True)
    if consent is not None:
        show_findings(consent, folder)
        if consent.errors and (values["yes"] or values["json"] or not can_ask()):
            raise refusal(consent, f"nothing was {done}: the files", again, consent.errors)
    if values["yes"]:
        return True
    if values["json"] or not can_ask():
        note(f"nothing was written; to do this: {again}")
        return False
    spite = f" in spite of these findings{consent.warning}" if consent is not None and consent.rules else ""
    if ask(f"{question}{spite}? [y/N] "):
        return True
    note("nothing was written")
    return False
