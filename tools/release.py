"""Build a release and prove it: `python tools/release.py DIST` writes the sdist and the wheel to DIST.

The commit that is checked out is built twice, in two folders; both results must be equal byte by byte. The metadata is
checked, the wheel is installed into an empty environment outside the checkout, and the fast tests run against it.
Needs `pip install 'skillshelf[release]'`.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def main() -> int:
    """Build, compare, check, install and test; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="the folder for the two files; must be empty or missing")
    parser.add_argument("--skip-tests", action="store_true", help="build and compare only")
    options = parser.parse_args()
    if options.dist.exists() and any(options.dist.iterdir()):
        parser.error(f"{options.dist} is not empty")
    with tempfile.TemporaryDirectory() as folder:
        first, second = (build(Path(folder, name)) for name in ("first", "second"))
        if digests(first) != digests(second):
            print(f"the two builds differ:\n{digests(first)}\n{digests(second)}", file=sys.stderr)
            return 1
        run([sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(first.iterdir()))], Path(folder))
        if not options.skip_tests:
            test_wheel(first, Path(folder))
        options.dist.mkdir(parents=True, exist_ok=True)
        for file in first.iterdir():
            shutil.copy2(file, options.dist)
    for name, digest in digests(options.dist).items():
        print(f"{digest}  {name}")
    return 0


def build(folder: Path) -> Path:
    """Build the checked-out commit in a folder of its own; return the folder with the two files."""
    folder.mkdir()
    archive = folder / "source.tar"
    run(["git", "archive", "--format=tar", f"--output={archive}", "HEAD"], REPOSITORY)
    shutil.unpack_archive(archive, folder / "source")
    time = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    # A wheel for every platform; one with the extension is built where it is used (CONTRIBUTING.md).
    environment = {**os.environ, "SOURCE_DATE_EPOCH": time.stdout.strip(), "SKILLSHELF_NATIVE": "off"}
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(folder / "source")]
    run(words, folder, environment)
    return folder / "dist"


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def test_wheel(dist: Path, folder: Path) -> None:
    """Install the wheel where there is no source, and run the fast tests of the sdist against it."""
    (wheel,) = dist.glob("*.whl")
    (sdist,) = dist.glob("*.tar.gz")
    venv.create(folder / "environment", with_pip=True)
    python = str(folder / "environment/bin/python")
    run([python, "-m", "pip", "install", "--quiet", f"{wheel}[test]"], folder)
    shutil.unpack_archive(sdist, folder / "unpacked")
    (tests,) = (folder / "unpacked").iterdir()
    shutil.rmtree(tests / "src")
    # Only the extra `test` is installed: tests that need another one skip by name.
    run([python, "-m", "pytest", "-m", "not slow and not heavy"], tests, {**os.environ, "SKILLSHELF_REQUIRE": ""})


def run(words: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    """Run a program and show it; raise if it fails."""
    print("+", " ".join(words), flush=True)
    subprocess.run(words, cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
