"""Models that are played: each makes the calls it is told to, in the form of one framework, and keeps what it gets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

__all__ = ["Player"]

Call = tuple[str, dict[str, Any]]


class Player:
    """The calls still to be made, and what the model was told, offered, asked and answered."""

    def __init__(self, *calls: Call, says: str = "done") -> None:
        self.calls = list(calls)
        self.says = says
        self.instructions: list[str] = []
        self.tools: list[dict[str, Any]] = []
        self.heard: list[str] = []
        self.answers: list[str] = []

    def next(self) -> Call | None:
        """The next call; None when it is time to answer."""
        return self.calls.pop(0) if self.calls else None

    # pydantic-ai ----------------------------------------------------------------------------------

    def pydantic_ai(self) -> Any:
        """The player as pydantic-ai's function model."""
        from pydantic_ai.models.function import FunctionModel

        return FunctionModel(self.__call__, stream_function=self._stream)

    def __call__(self, messages: list[Any], info: Any) -> Any:
        from pydantic_ai import ModelResponse, TextPart, ToolCallPart

        call = self._step(messages, info)
        return ModelResponse(parts=[TextPart(self.says) if call is None else ToolCallPart(*call)])

    async def _stream(self, messages: list[Any], info: Any) -> AsyncIterator[Any]:
        from pydantic_ai.models.function import DeltaToolCall

        call = self._step(messages, info)
        if call is None:
            for word in self.says.split(" "):
                yield word if word == self.says.split(" ")[0] else f" {word}"
        else:
            import json

            yield {0: DeltaToolCall(call[0], json.dumps(call[1]))}

    def _step(self, messages: list[Any], info: Any) -> Call | None:
        self.instructions.append(info.instructions or "")
        self.tools.append({tool.name: tool.parameters_json_schema for tool in info.function_tools})
        last = messages[-1].parts
        self.answers += [part.content for part in last if part.part_kind == "tool-return"]
        if any(part.part_kind == "user-prompt" for part in last):
            self.heard += [
                part.content for message in messages for part in message.parts if part.part_kind == "user-prompt"
            ]
        return self.next()
