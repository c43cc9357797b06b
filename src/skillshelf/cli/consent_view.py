"""Show what the security rules found in skills of a stranger, and ask whether to go on."""

from typing import TYPE_CHECKING

from skillshelf.core.console import ask, can_ask, note
from skillshelf.errors import PermissionDenied

if TYPE_CHECKING:
    from skillshelf.lint.consent import Consent

__all__ = ["refusal", "require_consent", "show_findings"]


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
