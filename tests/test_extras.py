"""The extras of the package, as `tools/extras.py` reads them; `.ci/run` resolves them."""

from __future__ import annotations

from extras import LARGE, extras_in

EXTRAS = extras_in()


def test_no_other_extra_brings_the_large_program_of_the_claude_sdk() -> None:
    assert any(requirement.startswith("claude-agent-sdk") for requirement in EXTRAS[LARGE])
    others = {name: found for name, found in EXTRAS.items() if name != LARGE}
    assert [name for name, found in others.items() if any("claude" in requirement for requirement in found)] == []


def test_every_framework_has_an_extra_of_its_own_with_the_package_that_its_adapter_imports() -> None:
    packages = {
        "pydantic-ai": "pydantic-ai-slim",
        "langchain": "langchain",
        "openai-agents": "openai-agents",
        "adk": "google-adk",
        "agent-framework": "agent-framework-core",
        "claude": "claude-agent-sdk",
    }
    for extra, package in packages.items():
        assert any(requirement.startswith(package) for requirement in EXTRAS[extra]), extra


def test_an_extra_that_names_others_has_their_requirements() -> None:
    assert set(EXTRAS["tui"]) | set(EXTRAS["docs"]) | set(EXTRAS["mcp"]) <= set(EXTRAS["lint"])
    assert not any(requirement.startswith("skillshelf") for found in EXTRAS.values() for requirement in found)
