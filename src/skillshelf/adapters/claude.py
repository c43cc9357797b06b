"""Offer skills to the Claude Agent SDK (extra `claude`), in the process of the program: tools, and a system prompt."""

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, McpSdkServerConfig, SdkMcpTool
from mcp.server import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent
from mcp_types import Tool as McpTool

from skillshelf.adapters.conversations import ConversationTools, SameObject, Target, conversations_of
from skillshelf.core.limits import CONVERSATIONS_KEPT
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult

__all__ = ["ClaudeSkillServer", "skill_instructions", "skill_options", "skill_tools"]

_TOOL_USE_ID = "claudecode/toolUseId"
"""The member of a call's metadata that names the `tool_use` block of the model."""


class ClaudeSkillServer:
    """The skills of a shelf or of one session, as an MCP server in this process.

    With a shelf each conversation of Claude Code, by its session id, and each sub-agent in it has a session of its own,
    which `session_for(run)` gives; `target_options` are those of `shelf.session`. Messages cannot be seen from here, so
    every load sends the text.
    """

    def __init__(self, target: Target, *, name: str = "skills", **target_options: Any) -> None:
        self.name = name
        self.conversations = conversations_of(target, **target_options)
        self._uses: OrderedDict[str, Hashable] = OrderedDict()
        server: Server[Any] = Server(name, on_list_tools=self._list, on_call_tool=self._call)
        self.config = McpSdkServerConfig(type="sdk", name=name, instance=server)
        self.hook = HookMatcher(matcher=f"mcp__{name}__.*", hooks=[self._note])

    def session_for(self, run: Mapping[str, Any] | str) -> Session:
        """Return the session of a conversation: of what a hook gets, or of a session id of Claude Code."""
        return self.conversations.session_for(key=_key(run))

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """Return options with the server, its tools allowed, and the current catalog after the system prompt."""
        given = options or ClaudeAgentOptions()
        servers = given.mcp_servers if isinstance(given.mcp_servers, dict) else {}
        tools = [f"mcp__{self.name}__{tool.name}" for tool in self.conversations.current_tools()]
        hooks = dict(given.hooks or {})
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), self.hook]
        return replace(
            given,
            mcp_servers={**servers, self.name: self.config},
            allowed_tools=[*given.allowed_tools, *tools],
            hooks=hooks,
            system_prompt=self._system_prompt(given.system_prompt),
        )

    def _system_prompt(self, given: Any) -> Any:
        if given is None or isinstance(given, str):
            return self.conversations.system_prompt(given or "")
        member = "prompt" if given["type"] == "custom" else "append"
        return {**given, member: self.conversations.system_prompt(given.get(member) or "")}

    async def _note(self, given: Any, use: str | None, context: Any) -> Any:
        """Remember the conversation of a call, which the call itself does not name."""
        if use:
            self._uses[use] = _key(given)
            while len(self._uses) > CONVERSATIONS_KEPT:
                self._uses.popitem(last=False)
        return {}

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        tools = [
            McpTool(name=tool.name, description=tool.description, input_schema=copy.deepcopy(dict(tool.input_schema)))
            for tool in await asyncio.to_thread(self.conversations.current_tools)
        ]
        return ListToolsResult(tools=tools)

    async def _call(self, context: Any, params: Any) -> CallToolResult:
        use = str((params.meta or {}).get(_TOOL_USE_ID))
        # Without the hook at least the connections are told apart, one for each query or client.
        key = self._uses.pop(use, None) or SameObject(context.session)
        result = await self.conversations.acall(params.name, params.arguments or {}, key=key)
        return CallToolResult(content=[TextContent(type="text", text=result.text)], is_error=not result.ok)


def skill_options(
    target: Target, options: ClaudeAgentOptions | None = None, *, name: str = "skills", **target_options: Any
) -> ClaudeAgentOptions:
    """Return options for `query` or `ClaudeSDKClient` with skills; make them anew for skills that are added later."""
    return ClaudeSkillServer(target, name=name, **target_options).options(options)


def skill_tools(target: Target, **target_options: Any) -> ConversationTools[SdkMcpTool[Any]]:
    """Return the tools for `create_sdk_mcp_server`; no call knows its conversation, so each is one of its own."""
    conversations = conversations_of(target, **target_options)

    def sdk_tool(tool: Tool) -> SdkMcpTool[Any]:
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            return _answer(await conversations.acall(tool.name, arguments))

        return SdkMcpTool(tool.name, tool.description, copy.deepcopy(dict(tool.input_schema)), call)

    tools = [sdk_tool(tool) for tool in conversations.fixed_tools()]
    return ConversationTools(tools, lambda run: conversations.session_for(key=_key(run)))


def skill_instructions(target: Target, base: str = "", **target_options: Any) -> str:
    """Return the value for `ClaudeAgentOptions(system_prompt=...)`, with the skills that there are now."""
    return conversations_of(target, **target_options).system_prompt(base)


def _answer(result: ToolResult) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": result.text}], "is_error": not result.ok}


def _key(run: Mapping[str, Any] | str) -> Hashable:
    if isinstance(run, str):
        return (run, "")
    return (run["session_id"], run.get("agent_id") or "")
