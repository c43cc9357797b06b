"""What a user says about a model, and the environment, to the name of one that pydantic-ai knows."""

from collections.abc import Mapping

from skillshelf.errors import ConfigurationError

__all__ = ["choose_model"]

KEYS: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-5",
    "OPENAI_API_KEY": "openai:gpt-5",
}
"""Where a key usually lies, and the model that is taken if nobody names one; the first key that is set counts."""

_LOCAL = "OPENAI_BASE_URL"


def choose_model(given: str | None, env: Mapping[str, str]) -> str:
    """The model to talk to; an error says exactly what to set."""
    if given:
        return _on_own_server(given) if env.get(_LOCAL) else _named(given, env)
    if env.get(_LOCAL):
        raise ConfigurationError(f"{_LOCAL} is set, but no model is named; add --model NAME, as that server calls it")
    for key, model in KEYS.items():
        if env.get(key):
            return model
    raise ConfigurationError(
        f"no model to talk to; set {' or '.join(KEYS)}, "
        f"or for a local server with the OpenAI API set {_LOCAL} and add --model NAME"
    )


def _named(given: str, env: Mapping[str, str]) -> str:
    provider, colon, _ = given.partition(":")
    for key, model in KEYS.items():
        if provider == model.partition(":")[0] and not env.get(key):
            raise ConfigurationError(f"{given} needs a key; set {key}")
    if not colon:
        names = ", ".join(KEYS.values())
        raise ConfigurationError(
            f"--model {given}: say whose model it is, for example {names}; or set {_LOCAL} for a local server"
        )
    return given


def _on_own_server(given: str) -> str:
    """A model of the server that the environment names; every such server has chat completions."""
    provider, colon, name = given.partition(":")
    if colon and provider == "openai":
        return f"openai-chat:{name}"
    # `llama3:8b` is a name with a colon in it.
    return given if colon and _is_provider(provider) else f"openai-chat:{given}"


def _is_provider(name: str) -> bool:
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(name)
    except ValueError:
        return False
    except ImportError:
        # Known, and not installed: the error for that is better said when it is used.
        return True
    return True
