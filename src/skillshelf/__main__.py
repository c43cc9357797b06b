"""Run the command line, as `skillshelf` and as `python -m skillshelf`, without code of the folder it is run in."""

# Only modules that Python has loaded before: all others are imported after `_leave_working_directory`.
import os
import sys


def _leave_working_directory() -> None:
    """Remove the working directory from the import path: a cloned repository may hold a `ryaml.py`.

    `python -m` puts it first, and a relative or empty entry of PYTHONPATH means it wherever one is.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    first = sys.path[:1] if not sys.flags.safe_path else []
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        here = ""
    if first and first[0] != home and (first[0] == "" or os.path.realpath(first[0]) == here):
        del sys.path[0]
    entries = (os.environ.get("PYTHONPATH") or os.sep).split(os.pathsep)
    relative = {"", *(os.path.abspath(entry) for entry in entries if here and not os.path.isabs(entry))} - {home}
    sys.path[:] = [path for path in sys.path if path not in relative]


_leave_working_directory()


def main() -> int:
    """Run the command line of this process and return its exit status."""
    if sys.argv[1:] == ["--version"]:
        from skillshelf import __version__

        try:
            # Without the commands, whose import takes twice as long as starting Python.
            sys.stdout.write(f"skillshelf {__version__}\n")
            sys.stdout.flush()
            return 0
        except (AttributeError, OSError, ValueError):
            # No standard output, or one that fails: the command knows what to say.
            pass
    from skillshelf.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
