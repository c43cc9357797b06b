"""Odd texts of a SKILL.md, and what each released program told of them when it was run on all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

ASKED = ("codex", "claude-code", "opencode", "gemini-cli", "goose", "copilot-cli", "openskills")
"""The programs that were asked about every text; `pi` and `oh-my-pi` about those that name them."""

HIDDEN = "(listed, and kept from the model)"
ON_USE = "(not at its start)"
BODY = "# Head\n\nFirst line\nof a paragraph.\n\nSecond paragraph.\n"


class OddText(NamedTuple):
    """A text, and the description that hosts show: None if they leave the skill out.

    `told` is what most of them show, `but` those that differ; `names` are the names that differ from the folder's.
    """

    title: str
    text: str
    told: str | None
    but: Mapping[str, str | None] = MappingProxyType({})
    names: Mapping[str, str] = MappingProxyType({})

    def told_by(self, host: str) -> str | None:
        """The description that a host shows."""
        return self.but.get(host, self.told)


def fields(text: str) -> str:
    """A SKILL.md with these fields besides its name."""
    return f"---\nname: odd\n{text}---\n{BODY}"


def repaired_by(value: str, **others: str | None) -> OddText:
    """A description that is no YAML, and which some hosts take as it is written."""
    taken = dict.fromkeys(("gemini-cli", "openskills", "claude-code"), value)
    but = {**taken, **{host.replace("_", "-"): told for host, told in others.items()}}
    return OddText(f"description: {value}", fields(f"description: {value}\n"), None, but)


def named(name: str, told: Mapping[str, str | None] = MappingProxyType({}), **names: str) -> OddText:
    """A name that is not that of the folder."""
    text = f"---\nname: {name}\ndescription: It.\n---\n"
    found = {host: name for host in ASKED if host not in ("claude-code", "openskills")}
    return OddText(f"name: {name}", text, "It.", told, {**found, **{h.replace("_", "-"): n for h, n in names.items()}})


def flagged(value: str) -> OddText:
    """A safeguard in a spelling that not all hosts take for true."""
    text = fields(f"description: It.\ndisable-model-invocation: {value}\n")
    but = {"claude-code": HIDDEN, "copilot-cli": None, "pi": "It.", "oh-my-pi": "It."}
    return OddText(f"disable-model-invocation: {value}", text, "It.", but)


ODD_TEXTS = (
    OddText(
        "when_to_use",
        fields("description: It.\nwhen_to_use: Now.\n"),
        "It.",
        {"claude-code": "It. - Now."},
    ),
    *(repaired_by(value) for value in ("* x", "*x* y", "& x y", "| x y", "> x y", "%x y")),
    *(repaired_by(value, claude_code="Head") for value in ("? x y", "- x y", '"x" y')),
    repaired_by("@x y", codex="@x y"),
    OddText(
        "description: !x y",
        fields("description: !x y\n"),
        "y",
        {"opencode": None, "gemini-cli": "!x y", "openskills": "!x y", "pi": "y", "oh-my-pi": "y"},
    ),
    OddText(
        "allowed-tools: *",
        fields("description: It.\nallowed-tools: *\n"),
        None,
        {"gemini-cli": "It.", "openskills": "It.", "claude-code": "It."},
    ),
    OddText(
        "a tab",
        fields("description: It.\nmetadata:\n\tauthor: me\n"),
        "It.",
        {"goose": None, "codex": None, "copilot-cli": None, "pi": None, "oh-my-pi": "It."},
    ),
    OddText("metadata is text", fields("description: It.\nmetadata: none\n"), "It.", {"goose": None, "codex": None}),
    OddText("a version in metadata", fields("description: It.\nmetadata:\n  version: 1\n"), "It."),
    OddText(
        "description: ~",
        fields("description: ~\n"),
        None,
        {"goose": "~", "gemini-cli": "~", "openskills": "~", "claude-code": "Head"},
    ),
    OddText(
        "description without a value",
        fields("description:\n"),
        None,
        {"goose": "", "gemini-cli": "", "openskills": "---", "claude-code": "Head"},
    ),
    OddText(
        'description: ""',
        fields('description: ""\n'),
        "",
        {"openskills": '""', "claude-code": "Head", "codex": None, "opencode": HIDDEN, "pi": None},
    ),
    OddText(
        "no description",
        fields(""),
        "",
        {
            "gemini-cli": None,
            "claude-code": "Head",
            "codex": None,
            "opencode": HIDDEN,
            "pi": None,
            "copilot-cli": "First line of a paragraph. Second paragraph.",
        },
    ),
    OddText(
        "a heading alone",
        "---\nname: odd\n---\n# Head\n",
        "",
        {"gemini-cli": None, "claude-code": "Head", "codex": None, "opencode": HIDDEN},
    ),
    OddText(
        "description: 1.50",
        fields("description: 1.50\n"),
        "1.50",
        {"opencode": None, "claude-code": "1.5", "copilot-cli": None, "pi": None},
    ),
    OddText("description: yes", fields("description: yes\n"), "yes", {"pi": "yes"}),
    *(flagged(value) for value in ('"true"', "yes", "1", "on")),
    OddText(
        "disable-model-invocation: True",
        fields("description: It.\ndisable-model-invocation: True\n"),
        "It.",
        {"claude-code": HIDDEN, "copilot-cli": HIDDEN, "pi": HIDDEN, "oh-my-pi": HIDDEN},
    ),
    OddText('user-invocable: "no"', fields('description: It.\nuser-invocable: "no"\n'), "It.", {"copilot-cli": None}),
    OddText("paths", fields("description: It.\npaths: '*.py'\n"), "It.", {"claude-code": ON_USE}),
    *(OddText(f"paths: {value}", fields(f"description: It.\npaths: {value}\n"), "It.") for value in ("'**'", "[]", "")),
    OddText(
        "no closing fence",
        "---\nname: odd\ndescription: It.\n\n# Head\n\nText.\n",
        None,
        {"openskills": "It.", "claude-code": "---", "pi": None, "oh-my-pi": ""},
    ),
    OddText(
        "no closing fence, and a heading alone",
        "---\nname: odd\ndescription: It.\n# Head\n",
        None,
        {"opencode": "It.", "openskills": "It.", "claude-code": "---"},
    ),
    OddText(
        "a closing fence of dots",
        "---\nname: odd\ndescription: It.\n...\n# Head\n\nText.\n",
        None,
        {"openskills": "It.", "claude-code": "---", "oh-my-pi": ""},
    ),
    OddText(
        "fences of four hyphens",
        "----\nname: odd\ndescription: It.\n----\n# Head\n",
        None,
        {"openskills": "It.", "claude-code": "----", "pi": "It.", "oh-my-pi": "It."},
    ),
    OddText(
        "a closing fence of four hyphens",
        "---\nname: odd\ndescription: It.\n----\n# Head\n",
        "It.",
        {"codex": None, "copilot-cli": None, "pi": "It.", "oh-my-pi": "It."},
    ),
    OddText(
        "CR line ends",
        "---\rname: odd\rdescription: It.\r---\r# Head\r",
        None,
        {
            "goose": "It.",
            "openskills": "It.",
            "pi": "It.",
            "oh-my-pi": "It.",
            "claude-code": "--- name: odd description: It. --- # Head",
        },
    ),
    OddText(
        "keys that are all indented",
        "---\n  name: odd\n  description: It.\n---\n",
        "It.",
        {"goose": None, "openskills": ""},
    ),
    OddText(
        "a key twice",
        fields("description: First.\ndescription: Second.\n"),
        None,
        {"gemini-cli": "Second.", "openskills": "First.", "claude-code": "Second."},
    ),
    OddText("quotes", fields('description: "It."\n'), "It.", {"openskills": '"It."'}),
    OddText(
        "allowed-tools is a map", fields("description: It.\nallowed-tools: {a: b}\n"), "It.", {"copilot-cli": None}
    ),
    OddText("allowed-tools is a list", fields("description: It.\nallowed-tools: [a, b]\n"), "It."),
    OddText(
        "argument-hint is a map", fields("description: It.\nargument-hint: {a: b}\n"), "It.", {"copilot-cli": None}
    ),
    OddText("license is a number", fields("description: It.\nlicense: 3\n"), "It."),
    named("über-tool", {"copilot-cli": None}),
    named("_under", {"copilot-cli": None}),
    named("-hyphen", {"copilot-cli": None}),
    named("c++ tool", {"copilot-cli": None}),
    named("dot.ted_x"),
    named("a:b", gemini_cli="a-b"),
    named("1.5", {"opencode": None, "copilot-cli": None, "pi": "It.", "oh-my-pi": "It."}, pi="odd", oh_my_pi="odd"),
)
