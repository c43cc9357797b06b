"""The files in `deploy` and the pages about them say what the program takes."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.needs import needs_checkout, needs_program

import skillshelf
from skillshelf.cli.main import parse

REPOSITORY = Path(__file__).parent.parent
DEPLOY = REPOSITORY / "deploy"
PACKAGE = Path(skillshelf.__file__).parent
PAGES = [REPOSITORY / "docs" / "deploy.md", REPOSITORY / "docs" / "tutorials" / "team-server.md"]


def text_of(name: str) -> str:
    """Return the text of a file to deploy."""
    return (DEPLOY / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The services with PostgreSQL."""
    # By name: its types do not export what it has.
    found: dict[str, Any] = import_module("ryaml").loads(text_of("compose.yaml"))
    return found


@pytest.fixture(scope="module")
def hour() -> ModuleType:
    """The script that runs the tutorial, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("hour", REPOSITORY / "tests" / "long" / "platform_hour.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The container ------------------------------------------------------------------------------------


def test_the_image_starts_the_server_with_options_that_it_takes() -> None:
    text = text_of("Containerfile")
    entry, command = (
        json.loads(re.findall(rf"^{word} (.+)$", text, re.MULTILINE)[0]) for word in ("ENTRYPOINT", "CMD")
    )

    name, values = parse([*entry[1:], *command])

    assert (entry[0], name, values["listen"]) == ("skillshelf", "serve", "0.0.0.0:8000")
    assert re.search(r"^USER (?!0|root)", text, re.MULTILINE)


@needs_checkout
def test_the_image_installs_an_extra_that_exists() -> None:
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")

    (extra,) = re.findall(r"'/src\[(\w+)\]'", text_of("Containerfile"))

    assert f"\n{extra} = [" in project


# Compose ------------------------------------------------------------------------------------------


def test_every_service_of_ours_has_a_command_that_the_program_takes(compose: dict[str, Any]) -> None:
    ours = {name: one for name, one in compose["services"].items() if one["image"] == "skillshelf"}
    parsed = {name: parse(["serve", *map(str, one["command"])])[1] for name, one in ours.items()}

    assert sorted(ours) == ["migrate", "server-1", "server-2"]
    assert [parsed[name]["action"] for name in sorted(ours)] == ["migrate", None, None]
    assert parsed["migrate"]["password_file"] == "/run/secrets/app_password"
    for name, one in ours.items():
        mounted = [f"/run/secrets/{secret}" for secret in one["secrets"]]
        assert parsed[name]["database_file"] in mounted


def test_every_secret_and_volume_that_a_service_names_is_declared(compose: dict[str, Any]) -> None:
    for one in compose["services"].values():
        assert {*one.get("secrets", ())} <= {*compose["secrets"]}
        named = {volume.partition(":")[0] for volume in one.get("volumes", ())}
        assert {volume for volume in named if not volume.startswith(".")} <= {*compose["volumes"]}


def test_servers_start_after_the_migration_and_the_migration_after_the_database(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert services["server-1"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert services["migrate"]["depends_on"]["database"]["condition"] == "service_healthy"
    assert services["server-1"] == services["server-2"]


def test_the_migration_prints_no_password_into_its_log(compose: dict[str, Any]) -> None:
    migrate = compose["services"]["migrate"]

    assert "entrypoint" not in migrate
    assert parse(["serve", *migrate["command"]])[1]["write_address"] == "/tmp/database"


@needs_checkout
def test_the_secrets_beside_compose_are_in_no_image_and_no_commit() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert ignored[1] == "*"
    assert not [line for line in ignored if line.startswith("!deploy")]
    assert "deploy/secrets/" in (REPOSITORY / ".gitignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@needs_program("bash")
def test_the_page_makes_every_secret_that_compose_wants(
    compose: dict[str, Any], hour: ModuleType, tmp_path: Path
) -> None:
    block = hour.trials_of(PAGES[0].read_text(encoding="utf-8"))["secrets"]

    subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, check=True, timeout=30)

    assert {path.name for path in (tmp_path / "secrets").iterdir()} == {*compose["secrets"]}
    password = (tmp_path / "secrets" / "app_password").read_text().strip()
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", password)
    address = (tmp_path / "secrets" / "database").read_text().strip()
    assert address == f"postgresql://skillshelf_app:{password}@database/skillshelf"


# systemd and proxies ------------------------------------------------------------------------------


def unit_command() -> list[str]:
    """Return the words that the unit starts."""
    (line,) = re.findall(r"^ExecStart=(.+)$", text_of("skillshelf.service"), re.MULTILINE)
    return shlex.split(line)


def test_the_unit_starts_the_server_with_options_that_it_takes() -> None:
    program, *words = unit_command()
    name, values = parse(words)

    assert (Path(program).name, name, values["action"]) == ("skillshelf", "serve", None)
    assert values["database_file"] == "%d/database"
    assert "\nLoadCredential=database:" in text_of("skillshelf.service")
    assert values["allow_host"] == ["skills.example.com"]


@pytest.mark.slow
@needs_program("systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "skillshelf.service"
    unit.write_text(text_of("skillshelf.service").replace(unit_command()[0], "/bin/sh"))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, "skillshelf.service" in done.stderr) == (0, False), done.stderr


@pytest.mark.slow
@needs_program("caddy")
def test_caddy_accepts_its_file(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "UPSTREAMS": "one:8000 two:8000"}
    version = subprocess.run(["caddy", "version"], capture_output=True, text=True, env=env, timeout=60, check=True)
    if version.stdout.lstrip("v").startswith("2.6."):
        env["REQUEST_BUFFERS"] = "buffer_requests"
    done = subprocess.run(
        ["caddy", "adapt", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert [one in done.stdout for one in ('"one:8000"', '"two:8000"', '"flush_interval":-1')] == [True] * 3


def test_the_proxies_pass_on_what_the_server_asks_for() -> None:
    nginx = text_of("nginx.conf")

    for needed in ("Host $http_host", "X-Forwarded-For ", "X-Forwarded-Proto ", "proxy_buffering off"):
        assert needed in nginx
    # Caddy sets these headers by itself.
    assert "flush_interval -1" in text_of("Caddyfile")


# The pages ----------------------------------------------------------------------------------------


def commands_in(page: Path) -> list[list[str]]:
    """Return the words of every line of a block that starts the program."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = "".join(re.findall(r"^```(?:sh|text)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    lines = re.findall(r"(?:^|/|\s)skillshelf ((?!/)[a-z]+ .+)$", blocks, re.MULTILINE)
    return [shlex.split(re.split(r" (?:[0-9]?>|&$|\|)", line)[0]) for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_one_that_the_program_takes(page: Path) -> None:
    found = commands_in(page)

    assert len(found) > 5
    for words in found:
        parse(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_sends_the_address_of_a_migration_into_a_file_that_it_empties_first(page: Path) -> None:
    migrations = re.findall(r"^.*skillshelf serve migrate .*$", page.read_text(encoding="utf-8"), re.MULTILINE)

    assert migrations
    assert [line for line in migrations if ">" in line] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_and_metrics_of_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    named = {*re.findall(r"SKILLSHELF_[A-Z_]+", text), *re.findall(r"`(skillshelf_(?!app|backup|owner)\w+)", text)}

    assert named
    assert [name for name in sorted(named) if f'"{name}"' not in sources] == []


@pytest.mark.slow
@needs_program("bash")
@pytest.mark.parametrize("sqlite", [False, True], ids=["postgresql", "sqlite"])
def test_the_steps_of_the_tutorial_and_of_a_restore_are_one_program(hour: ModuleType, *, sqlite: bool) -> None:
    steps = hour.steps_with(install=False, sqlite=sqlite, backup=True)
    program = hour.program_of(steps, {"8000": "1", "8001": "2"})

    assert len(steps) > 12
    assert "pip install" not in program
    subprocess.run(["bash", "-n", "-c", program], check=True, timeout=30)
