"""`skill_run` and `skillshelf run`: who says yes to which script, what is recorded, what a model and a person get."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schemas import SCHEMAS
from support.policies import put
from support.trees import SOURCE, Machine

from skillshelf import Policy, Session
from skillshelf.catalog.load import digest_of
from skillshelf.catalog.tree import skill_tree
from skillshelf.config.permission_rules import PermissionRule
from skillshelf.journal.events import payload_of, type_of
from skillshelf.sandbox.walls import described

UNSANDBOXED = {"run_unsandboxed": True}
"""Allows scripts without a sandbox; where there is one, it is used anyway."""

RUN = {"name": "deploy", "script": "hello.sh"}


def script(machine: Machine, text: str) -> Path:
    """Put a script into `deploy` of the user's folder."""
    path = put(machine.home / ".agents/skills", "deploy").parent / "scripts/hello.sh"
    path.write_text(text)
    return path


def asked(machine: Machine, answer: Any = True) -> tuple[Session, list[Any], list[Any]]:
    """A session that asks, its questions, and its events."""
    questions: list[Any] = []
    events: list[Any] = []

    def confirm(*question: str) -> Any:
        questions.append(question)
        return answer

    return machine.shelf().session(UNSANDBOXED, confirm=confirm, on_event=events.append), questions, events


# Permission ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "confirm", "offered"),
    [
        (None, False, False),
        (None, True, True),
        ("read-only", True, False),
        ("full-auto", False, True),
        ({"allow": [{"tool": "skill_run", "skill_name": "deploy"}]}, False, True),
        ({"allow": [{"tool": "skill_load"}]}, False, False),
        ({"deny": [{"tool": "skill_run"}]}, True, False),
        ({"deny": [{"tool": "skill_run", "skill_name": "deploy"}]}, True, True),
    ],
)
def test_the_tool_is_offered_only_where_the_policy_can_allow_it(
    machine: Machine, policy: Any, confirm: bool, offered: bool
) -> None:
    script(machine, "#!/bin/sh\n")
    session = machine.shelf().session(policy, confirm=(lambda *_: True) if confirm else None)
    assert ("skill_run" in [tool.name for tool in session.tools()]) is offered


@pytest.mark.slow
@pytest.mark.req("S-120", "S-121", "K-31")
def test_a_script_runs_after_somebody_said_yes_to_its_digest(machine: Machine) -> None:
    path = script(machine, '#!/bin/sh\necho "hello $1"\n')
    session, questions, events = asked(machine)

    result = session.call("skill_run", {**RUN, "args": ["big world"]})

    assert result.ok
    assert (result.data["stdout"], result.data["exit_code"]) == ("hello big world\n", 0)
    assert result.text == "scripts/hello.sh of deploy ended with exit code 0.\n--- stdout\nhello big world\n"
    digest = digest_of(path.read_bytes())
    tree = skill_tree(str(path.parent.parent)).digest
    reach = f"(an answer to remember is for every script of this skill, as its files are now: {tree})"
    assert questions == [
        ("skill_run", "deploy", f"a script runs only after the user confirms it: scripts/hello.sh {digest} {reach}")
    ]
    told = payload_of(next(event for event in events if type_of(event) == "permission_decided"))
    assert (told["script"], told["digest"], told["by"]) == ("scripts/hello.sh", digest, "user")


@pytest.mark.req("S-06", "S-120")
def test_nothing_runs_without_a_yes(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho ran\n")
    session, questions, events = asked(machine, answer=False)
    session.call("skill_load", {"name": "deploy"})
    session.call("skill_read", {"uri": "skill://deploy/scripts/hello.sh"})
    session.command("/skill:deploy")
    assert questions == []

    result = session.call("skill_run", RUN)

    assert result.error is not None
    assert result.error.code == "denied"
    assert [type_of(event) for event in events[-3:]] == ["tool_started", "permission_decided", "tool_failed"]
    assert "ran" not in json.dumps([payload_of(event) for event in events if type_of(event) == "tool_stdout"])


@pytest.mark.slow
def test_a_remembered_yes_is_for_these_files_and_is_no_rule(machine: Machine) -> None:
    path = script(machine, "#!/bin/sh\necho one\n")
    session, questions, _ = asked(machine, answer="remember")
    session.call("skill_run", RUN)
    session.call("skill_run", RUN)
    assert len(questions) == 1
    assert asked(machine, answer=False)[0].call("skill_run", RUN).ok
    (path.parent / "helper.sh").write_text("echo other\n")

    session.call("skill_run", RUN)

    assert len(questions) == 2
    assert not (machine.home / ".config").exists()


@pytest.mark.parametrize("name", ["../SKILL.md", "/bin/sh", "scripts/../../x", "", "no-such.sh", "a\0b"])
def test_only_scripts_of_the_skill_can_be_named(machine: Machine, name: str) -> None:
    script(machine, "#!/bin/sh\n")
    session, questions, _ = asked(machine)
    assert not session.call("skill_run", {"name": "deploy", "script": name}).ok
    assert questions == []


@pytest.mark.parametrize("args", ["x", [1], {"a": "b"}, [["x"]]])
def test_arguments_are_a_list_of_texts(machine: Machine, args: Any) -> None:
    script(machine, "#!/bin/sh\n")
    session, questions, _ = asked(machine)
    result = session.call("skill_run", {**RUN, "args": args})
    assert result.error is not None
    assert result.error.code == "invalid_params"
    assert questions == []


# Frames -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("K-12", "K-50")
def test_output_is_told_in_frames_and_a_script_that_fails_has_ended(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho out\necho err >&2\necho more\nexit 3\n")
    session, _, events = asked(machine)

    result = session.call("skill_run", RUN)
    text = result.text.encode()

    frames = [(type_of(event), payload_of(event)) for event in events if type_of(event).startswith("tool_")][1:]
    # Which parts of the sandbox there are is a matter of the machine.
    assert frames[-1][1].pop("missing", []) == result.data["missing"]
    assert frames == [
        ("tool_stdout", {"tool_id": "t1", "chunk": "out\nmore\n"}),
        ("tool_stderr", {"tool_id": "t1", "chunk": "err\n"}),
        ("tool_ended", {"tool_id": "t1", "exit_code": 3, "text_digest": digest_of(text), "text_bytes": len(text)}),
    ]
    assert result.error is not None
    assert (result.error.code, result.data["stderr"]) == ("failed", "err\n")


@pytest.mark.slow
@pytest.mark.req("K-50")
def test_much_output_is_cut_said_and_kept_whole(machine: Machine, tmp_path: Path) -> None:
    script(machine, "#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x\n")
    path = tmp_path / "run.jsonl"
    policy = {"allow": [{"tool": "skill_run"}], **UNSANDBOXED}
    with machine.shelf().session(policy, journal=path) as session:
        result = session.call("skill_run", RUN)
        whole = session.recall(result.data["ref"])

    assert result.data["truncated"] is True
    assert result.text.endswith(f"[cut; ref={result.data['ref']}]")
    assert whole.endswith("[output cut; 300000 and 0 bytes in all]")
    assert Path(result.data["artifact"]).stat().st_size == 300000
    ended = next(json.loads(line) for line in path.read_text().splitlines() if '"tool_ended"' in line)
    data = Path(result.data["artifact"]).read_bytes()
    kept = {"path": result.data["artifact"], "bytes": 300000, "digest": digest_of(data)}
    assert (ended["truncated"], ended["artifacts"]) == (True, [kept])


@pytest.mark.slow
def test_what_is_kept_without_a_journal_goes_with_the_session(machine: Machine) -> None:
    script(machine, "#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x\n")
    session, _, _ = asked(machine)
    artifact = Path(session.call("skill_run", RUN).data["artifact"])
    existed = artifact.exists()
    session.close()
    assert (existed, artifact.exists()) == (True, False)


@pytest.mark.slow
def test_a_session_that_is_never_closed_leaves_no_folder_behind(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho ran\n")
    temporary = machine.base / "tmp"
    temporary.mkdir()
    program = (
        "import skillshelf, sys\n"
        f"shelf = skillshelf.open_shelf({str(machine.repo)!r}, home={str(machine.home)!r}, env={{}})\n"
        "policy = {'allow': [{'tool': 'skill_run'}], 'run_unsandboxed': True}\n"
        "session = shelf.session(policy)\n"
        f"assert session.call('skill_run', {RUN!r}).ok\n"
    )

    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(temporary)}, check=False)

    assert (done.returncode, list(temporary.iterdir())) == (0, [])


# The command --------------------------------------------------------------------------------------

ALLOWED = "permissions.allow = [{ tool = 'skill_run', skill_name = 'deploy' }]\npermissions.run.unsandboxed = true\n"


@pytest.mark.slow
def test_without_a_terminal_and_a_rule_the_command_runs_nothing(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho ran\n")
    done = machine.run("run", "deploy", "hello.sh")
    assert (done.returncode, done.stdout) == (4, "")
    assert "there is no way to ask the user" in done.stderr
    assert 'permissions.allow = [{ tool = "skill_run", skill_name = "deploy" }]' in done.stderr


@pytest.mark.slow
def test_the_command_the_json_and_the_journal_say_what_a_script_ran_without(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho out\n")
    machine.configure(ALLOWED + "permissions.run.seccomp = 'off'\n")

    done = machine.run("run", "deploy", "hello.sh", "--journal", "run.jsonl")
    shown = machine.run_json("run", "deploy", "hello.sh")
    ended = [event for event in machine.run_json("log", "show", "run.jsonl") if event["type"] == "tool_ended"]
    replayed = machine.run("log", "replay", "run.jsonl")

    assert "seccomp" in shown["missing"]
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert done.stderr == f"skillshelf: it ran without {described(shown['missing'])}\n"
    assert "seccomp (system calls that a script does not need are refused)" in done.stderr
    assert [event["missing"] for event in ended] == [shown["missing"]]
    assert replayed.returncode == 0


@pytest.mark.slow
def test_a_part_of_the_sandbox_that_the_configuration_requires_is_not_waived_by_a_policy(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho out\n")
    machine.configure(ALLOWED + "permissions.run.require = ['seccomp']\npermissions.run.seccomp = 'off'\n")

    done = machine.run("run", "deploy", "hello.sh")
    policy = Policy(allow=(PermissionRule("skill_run"),), run_unsandboxed=True, run_seccomp="off")
    result = machine.shelf().session(policy).call("skill_run", RUN)

    assert (done.returncode, done.stdout) == (4, "")
    assert "requires a part of the sandbox that is missing: seccomp (" in done.stderr
    assert result.error is not None
    assert (result.error.code, "missing: seccomp (" in result.error.message) == ("denied", True)


@pytest.mark.slow
def test_with_a_rule_the_command_passes_words_output_and_failure_on(machine: Machine) -> None:
    script(machine, '#!/bin/sh\nfor word; do echo "<$word>"; done\necho oops >&2\nexit 3\n')
    machine.configure(ALLOWED)

    done = machine.run("run", "deploy", "scripts/hello.sh", "a b", "--flag", "-x")
    after = machine.run("run", "--home", str(machine.home), "deploy", "hello.sh", "--", "--json", "--")

    assert (done.returncode, done.stdout) == (1, "<a b>\n<--flag>\n<-x>\n")
    said = [line for line in done.stderr.splitlines() if not line.startswith("skillshelf: it ran without ")]
    assert said == ["oops", "skillshelf: scripts/hello.sh ended with exit code 3"]
    assert after.stdout.startswith("<--json>\n<-->\n")


@pytest.mark.slow
def test_the_command_gives_json(machine: Machine) -> None:
    script(machine, "#!/bin/sh\necho hello\n")
    machine.configure(ALLOWED)
    form = machine.run_json("run", "deploy", "hello.sh")
    Draft202012Validator(SCHEMAS["run"]).validate(form)
    assert (form["stdout"], form["exit_code"], form["artifact"]) == ("hello\n", 0, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"),
    [(["nonsense", "hello.sh"], 3), (["deploy", "nothing.sh"], 3), (["deploy"], 2), ([], 2), (["deploy", "../x"], 2)],
)
def test_the_command_says_what_is_missing(machine: Machine, words: list[str], status: int) -> None:
    script(machine, "#!/bin/sh\n")
    machine.configure(ALLOWED)
    done = machine.run("run", *words)
    assert done.returncode == status
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 4), ("\n", 4)])
def test_in_a_terminal_the_command_asks_and_shows_the_digest(machine: Machine, answer: str, status: int) -> None:
    path = script(machine, "#!/bin/sh\necho ran\n")
    machine.configure("permissions.run.unsandboxed = true\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "skillshelf", "run", "deploy", "hello.sh", "--home", str(machine.home)],
        cwd=machine.repo,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": "/nonexistent"},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, answer.encode())
    output = process.communicate(timeout=60)[0]
    os.close(ours)

    assert (process.returncode, output) == (status, b"ran\n" if status == 0 else b"")
    assert digest_of(path.read_bytes()).encode() in shown


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_records_it_and_leaves_nothing(machine: Machine, number: signal.Signals) -> None:
    script(machine, "#!/bin/sh\necho begun\nexec sleep 600\n")
    machine.configure(ALLOWED)
    temporary = machine.base / "tmp"
    temporary.mkdir()
    words = ["run", "deploy", "hello.sh", "--home", str(machine.home), "--journal", "run.jsonl"]

    def heed() -> None:
        # Whoever runs these tests may ignore the signal, as `nohup` does, and a command would then ignore it too.
        signal.signal(number, signal.SIG_DFL)

    with subprocess.Popen(
        [sys.executable, "-m", "skillshelf", *words],
        cwd=machine.repo,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        preexec_fn=heed,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)

    assert process.returncode == 128 + number
    events = [json.loads(line)["type"] for line in (machine.repo / "run.jsonl").read_text().splitlines()]
    assert events[-2:] == ["tool_failed", "session_ended"]
    assert list(temporary.iterdir()) == []
