"""What the MCP server prints for people: a line for each kind, and no traceback of a library."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading

import pytest

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")

import anyio
from starlette.requests import ClientDisconnect

from skillshelf.servers.mcp.notices import library_notices, limit_notice


def log(name: str, error: Exception, words: str = "Error handling %s request") -> None:
    """Let a library log an error with its traceback."""
    try:
        raise error
    except Exception:
        logging.getLogger(name).exception(words, "POST")


def test_a_limit_is_reported_once_for_many_times(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(100):
        limit_notice("A_LIMIT_OF_THIS_TEST", "something was closed")

    assert capfd.readouterr().err == "skillshelf: limit A_LIMIT_OF_THIS_TEST reached: something was closed\n"


def test_a_problem_in_a_library_is_one_line_for_each_kind(capfd: pytest.CaptureFixture[str]) -> None:
    with library_notices():
        for number in range(50):
            log("mcp.server.streamable_http", ValueError(f"line\n{number}"))
            log("uvicorn.error", ValueError("other"))
            log("mcp.server.runner", KeyError("third"))

    assert capfd.readouterr().err.splitlines() == [
        "skillshelf: problem in the library mcp: Error handling … request: ValueError: line 0",
        "skillshelf: problem in the library uvicorn: Error handling … request: ValueError: other",
        "skillshelf: problem in the library mcp: Error handling … request: KeyError: 'third'",
    ]


def test_a_problem_of_each_session_is_one_kind(capfd: pytest.CaptureFixture[str]) -> None:
    with library_notices():
        for number in range(50):
            logging.getLogger("mcp.server.streamable_http_manager").error(f"Session {number:032x} crashed in a test")

    assert capfd.readouterr().err == "skillshelf: problem in the library mcp: Session … crashed in a test\n"


@pytest.mark.parametrize(
    "error",
    [ClientDisconnect(), ConnectionResetError(), ExceptionGroup("group", [anyio.ClosedResourceError()])],
    ids=["left", "reset", "group"],
)
def test_a_client_that_leaves_is_no_problem(capfd: pytest.CaptureFixture[str], error: Exception) -> None:
    with library_notices():
        log("mcp.server.streamable_http", error)

    assert capfd.readouterr().err == ""


def test_tasks_and_threads_that_fail_print_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    async def fail() -> None:
        raise LookupError("in a task")

    async def forget() -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task
        gc.collect()

    def fail_in_thread() -> None:
        raise LookupError("in a thread")

    with library_notices():
        asyncio.run(forget())
        thread = threading.Thread(target=fail_in_thread)
        thread.start()
        thread.join()

    lines = capfd.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["in a task", "in a thread"]
    assert all(line.startswith("skillshelf: problem in the library ") for line in lines)


def test_the_loggers_are_as_before_when_the_server_has_ended() -> None:
    loggers = [logging.getLogger(name) for name in ("mcp", "uvicorn", "asyncio")]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    with library_notices():
        pass

    assert [(logger.handlers, logger.propagate) for logger in loggers] == before
