"""Write the JSON Schemas that ship with the package: `python tools/schemas.py DIR`."""

import json
import sys
from pathlib import Path
from typing import Any

from skillshelf.core.json_types import (
    CatalogForm,
    ChatForm,
    CheckForm,
    DiffForm,
    DigestForm,
    DoctorForm,
    EvalForm,
    FailureForm,
    HostChoiceForm,
    HostsForm,
    InstallForm,
    InventoryForm,
    JournalPushForm,
    LinkForm,
    LoadErrorForm,
    LogExportForm,
    LogStatsForm,
    LogVerifyForm,
    LogVerifyStoredForm,
    MetadataForm,
    NewForm,
    OutdatedForm,
    PolicyForm,
    PromptForm,
    PublishForm,
    ReleaseActForm,
    ReleasePolicyForm,
    ReplayForm,
    ResourceForm,
    RuleForm,
    RulesForm,
    RunForm,
    SearchForm,
    SearchResultForm,
    ShownForm,
    SiteForm,
    SkillForm,
    SwitchForm,
    SyncForm,
    TeamContentForm,
    TeamForgottenForm,
    TeamMemberForm,
    TeamMembersForm,
    TeamMigrationForm,
    TeamReleasesForm,
    TeamRetentionForm,
    TeamRevokedForm,
    TeamTenantForm,
    TeamTenantsForm,
    TeamTokenForm,
    TeamTokensForm,
    ToolForm,
    TrustForm,
    TrustListForm,
    UninstallForm,
    UseHistoryForm,
    VerifyForm,
    WhyForm,
)
from skillshelf.core.validation import schema_of
from skillshelf.core.values import Scope
from skillshelf.journal.events import EVENTS, MEMBERS
from skillshelf.servers.rpc.methods import METHODS, TO_CLIENT

__all__ = ["FORMS", "RPC_SCHEMA", "SCHEMAS", "write_schemas"]

_HEAD = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def event_schema() -> dict[str, Any]:
    """Return the schema of a journal line: any event, with the members that the journal adds."""
    digits = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    common = {
        "seq": {"type": "integer", "minimum": 0},
        "session": {"type": "string"},
        "ts_ms": {"type": "integer"},
        "prev": digits,
        "sum": digits,
    }
    kinds = []
    for name, kind in EVENTS.items():
        schema = schema_of(kind)
        members = {key: {"description": MEMBERS[key], **member} for key, member in schema["properties"].items()}
        kinds.append(
            {
                "title": name,
                "description": kind.__doc__,
                "type": "object",
                "properties": {"type": {"const": name}, **members, **common},
                "required": ["type", *schema["required"], *common],
                "additionalProperties": False,
            }
        )
    return {"description": "One line of a journal.", "anyOf": kinds}


def rpc_schema() -> dict[str, Any]:
    """Return the schema of a message to `skillshelf rpc`; results and server messages are definitions in it."""
    requests = [
        {
            "title": name,
            "description": method.help,
            "type": "object",
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "id": {"type": ["string", "number", "null"]},
                "method": {"const": name},
                "params": schema_of(method.params),
            },
            "required": ["jsonrpc", "method", *(["params"] if method.params.__required_keys__ else [])],
        }
        for name, method in METHODS.items()
    ]
    results = {f"{name} result": schema_of(method.result) for name, method in {**METHODS, **TO_CLIENT}.items()}
    params = {f"{name} params": schema_of(method.params) for name, method in TO_CLIENT.items()}
    return {"description": "A request or notification of a client.", "anyOf": requests, "$defs": {**results, **params}}


FORMS: dict[str, Any] = {
    "scope": Scope,
    "skill": SkillForm,
    "metadata": MetadataForm,
    "load-error": LoadErrorForm,
    "catalog": CatalogForm,
    "search-result": SearchResultForm,
    "search": SearchForm,
    "usage": UseHistoryForm,
    "show": ShownForm,
    "digest": DigestForm,
    "trust": TrustForm,
    "trust-list": TrustListForm,
    "read": ResourceForm,
    "prompt": PromptForm,
    "tools": list[ToolForm],
    "check": CheckForm,
    "eval": EvalForm,
    "explain": RuleForm,
    "rules": RulesForm,
    "chat": ChatForm,
    "new": NewForm,
    "serve-token": TeamTokenForm,
    "serve-tokens": TeamTokensForm,
    "serve-revoked": TeamRevokedForm,
    "serve-tenant": TeamTenantForm,
    "serve-tenants": TeamTenantsForm,
    "serve-member": TeamMemberForm,
    "serve-members": TeamMembersForm,
    "serve-migrate": TeamMigrationForm,
    "serve-journal": TeamContentForm,
    "serve-retention": TeamRetentionForm,
    "serve-forgotten": TeamForgottenForm,
    "log-push": JournalPushForm,
    "log-show": list[dict[str, Any]],
    "log-verify": LogVerifyForm,
    "log-verify-stored": LogVerifyStoredForm,
    "log-export": LogExportForm,
    "log-stats": LogStatsForm,
    "why": WhyForm,
    "inventory": InventoryForm,
    "hosts": HostsForm,
    "hosts-set": HostChoiceForm,
    "link": LinkForm,
    "doctor": DoctorForm,
    "policy": PolicyForm,
    "site": SiteForm,
    "uninstall": UninstallForm,
    "switch": SwitchForm,
    "sync": SyncForm,
    "install": InstallForm,
    "publish": PublishForm,
    "release": ReleaseActForm,
    "release-list": TeamReleasesForm,
    "release-policy": ReleasePolicyForm,
    "diff": DiffForm,
    "outdated": OutdatedForm,
    "verify": VerifyForm,
    "failure": FailureForm,
    "run": RunForm,
    "log-replay": ReplayForm,
}
"""The type of each `--json` output, by the name of its schema."""

SCHEMAS: dict[str, dict[str, Any]] = {
    name: {**_HEAD, "title": f"skillshelf {name}", **schema_of(form)} for name, form in FORMS.items()
} | {"event": {**_HEAD, "title": "skillshelf event", **event_schema()}}

RPC_SCHEMA = {**_HEAD, "title": "skillshelf rpc", **rpc_schema()}


def write_schemas(folder: Path) -> None:
    """Write one file for each schema."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in {**SCHEMAS, "rpc": RPC_SCHEMA}.items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
