"""A real registry takes what we publish, a program of others reads it, and every Python makes the same bytes of it.

The registry and `skopeo` must be installed. The last test fetches packages for other versions of Python and runs only
with `SKILLSHELF_REQUIRE=pythons python -m pytest -n 0 tests/long/test_registries.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.docker_registry import docker_registry, needs_docker_registry
from support.needs import REQUIRED, needs_program
from support.trees import SOURCE

pytestmark = [pytest.mark.slow, needs_docker_registry]

PYTHONS = ("/usr/bin/python3", "python3.12", "python3.13", "python3.14")
PACKAGES = ("ryaml", "tantivy", "tomlkit", "wcwidth")
"""What the package itself depends on; it is read from the checkout."""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "multi"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: multi\ndescription: Several files for a test. Use when testing.\n---\n# Multi\n"
    )
    (folder / "scripts/run.sh").write_text("#!/bin/sh\necho hi\n")
    (folder / "scripts/run.sh").chmod(0o755)
    return folder


def publish(python: str, skill: Path, address: str) -> str:
    """Publish with an interpreter, and return the digest of the manifest."""
    words = [python, "-m", "skillshelf", "publish", str(skill), "--to", address, "--allow-http", "--yes"]
    env = {"HOME": str(skill.parent), "PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"artifact +(sha256:[0-9a-f]{64})", done.stdout)
    assert found, done.stdout
    return found[1]


def skopeo(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["skopeo", *words], capture_output=True, text=True, timeout=60, check=False)


@needs_program("skopeo")
def test_skopeo_reads_and_copies_what_we_push(skill: Path, tmp_path: Path) -> None:
    with docker_registry(tmp_path / "registry") as host:
        digest = publish(sys.executable, skill, f"oci://{host}/shop/multi:1.0")
        where = f"docker://{host}/shop/multi:1.0"
        raw = skopeo("inspect", "--raw", "--tls-verify=false", where)
        config = skopeo("inspect", "--config", "--raw", "--tls-verify=false", where)
        copied = skopeo("copy", "--src-tls-verify=false", where, f"dir:{tmp_path}/copy")
        plain = skopeo("inspect", "--tls-verify=false", where)

    assert f"sha256:{hashlib.sha256(raw.stdout.encode()).hexdigest()}" == digest
    assert json.loads(raw.stdout)["artifactType"] == "application/vnd.agentskills.skill.v1"
    assert json.loads(config.stdout)["name"] == "multi"
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "copy/manifest.json").read_text() == raw.stdout
    # Without --raw it describes images that can be run, and says of any other artifact that it is none.
    assert plain.returncode == 0 or "artifact" in plain.stderr


@pytest.mark.skipif("pythons" not in REQUIRED, reason="needs other Pythons and the network: SKILLSHELF_REQUIRE=pythons")
def test_every_python_makes_the_same_manifest(skill: Path, tmp_path: Path) -> None:
    with docker_registry(tmp_path / "registry") as host:
        address = f"oci://{host}/shop/multi"
        digests = {sys.version.split()[0]: publish(sys.executable, skill, f"{address}:this")}
        for number, python in enumerate(filter(shutil.which, PYTHONS)):
            folder = tmp_path / f"python-{number}"
            if subprocess.run([python, "-m", "venv", folder], capture_output=True, check=False).returncode:
                continue
            own = str(folder / "bin/python")
            subprocess.run([own, "-m", "pip", "install", "-q", *PACKAGES], check=True, timeout=600)
            version = subprocess.run([own, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
            digests[version] = publish(own, skill, f"{address}:{number}")

    print("\n".join(f"{version}  {digest}" for version, digest in sorted(digests.items())))
    assert len(digests) >= 2
    assert len(set(digests.values())) == 1
