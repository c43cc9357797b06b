"""Run real agent hosts on trees and compare what they list and tell their models with the answers of our profiles.

    python tests/hosts/compare.py --bin DIR [--install] [--seed N] [--trees N] [--fixed] [--record FILE] [HOST ...]
    python tests/hosts/compare.py --record FILE --recorded [--seed N] [--trees N] [HOST ...]

Trees are drawn from places, texts and settings; `--fixed` takes those of the tests instead. Before them, one name lies
in all roots of a host, and the copy that it takes is removed until none is left; then come trees with every text and
every place at once. The programs are packages of the npm
registry in DIR/HOST, where `--install` puts them; a host that is not there is skipped by name. Each question gets a
fresh home folder, an environment made from nothing, 90 seconds and no network but loopback, where a server stands for
the model. No key is needed.

`--record` adds each answer to a file, one line a tree, and takes from there what was asked before: a run that was ended
goes on where it was, and a changed row is compared without another question. `--recorded` asks nothing at all.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.host_cases import PLACE_CASES, ROOTS, TEXT_CASES, PlaceCase, TextCase, trust
from support.host_programs import PROGRAMS, Answer, Entry, Program, Question, end_on_signal, find_program, install
from support.host_setting_cases import SWITCH_CASES, TRUST_CASES, build_switch, build_trust
from support.host_trees import Drawn, draw_trees, every_place, every_text, many_skills, one_name_everywhere, put_tree
from support.prompt_server import PromptServer, prompt_server
from support.trees import Machine

from skillshelf.core.environment import Environment
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import SkillFile, Survey, take_survey

NOTHING: Mapping[str, str] = MappingProxyType({})
NOT_RECORDED = "not recorded"
SHOWN = 8
"""Differences of a tree that are printed."""


class Tree(NamedTuple):
    """A function that writes a tree to disk and returns the working directory, and its variables."""

    title: str
    build: Callable[[Machine], Path]
    env: Mapping[str, str] = NOTHING
    has_marks: bool = True
    digest: str = ""


# Trees --------------------------------------------------------------------------------------------


def drawn_trees(host: str, seed: int, count: int) -> Iterator[Tree]:
    """Yield the trees of a seed."""
    for tree in draw_trees(host, seed=seed, count=count):
        yield _as_tree(tree)


def whole_trees(host: str) -> Iterator[Tree]:
    """Yield the trees that have every text or every place of a root at once, or very many skills."""
    for tree in (*every_text(host), *every_place(host), *many_skills(host)):
        yield _as_tree(tree)


def _as_tree(tree: Drawn) -> Tree:
    """Return a drawn tree with the digest of all that is put on disk, by which its answers are found again."""
    content = repr((tree.puts, tree.cwd, sorted(tree.env.items()), tree.trusted))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Tree(tree.title, partial(put_tree, tree), tree.env, digest=digest)


def fixed_trees(host: str) -> Iterator[Tree]:
    """Yield every case of the tests that a host can be asked about; their skills have no marks."""
    for text in TEXT_CASES:
        build = partial(_put_text, text, ROOTS.get(host, ".agents/skills"))
        yield Tree(f"{text.number} {text.title}", build, has_marks=False)
    for place in PLACE_CASES:
        yield Tree(f"{place.number} {place.title}", partial(_put_place, place), has_marks=False)
    for record in (case for case in TRUST_CASES if case.host == host):
        yield Tree(f"trust: {record.title}", partial(_put_setting, partial(build_trust, record)), record.env, False)
    for switch in (case for case in SWITCH_CASES if case.host == host and not PROGRAMS[host].lists_all):
        yield Tree(f"setting: {switch.title}", partial(_put_setting, partial(build_switch, switch)), has_marks=False)


def _put_setting(build: Callable[[Machine], Path], machine: Machine) -> Path:
    build(machine)
    return Path(machine.repo)


def _put_text(case: TextCase, root: str, machine: Machine) -> Path:
    path: Path = machine.repo / root / case.folder / case.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    trust(machine, machine.repo)
    return Path(machine.repo)


def _put_place(case: PlaceCase, machine: Machine) -> Path:
    case.build(machine)
    cwd = Path(machine.base) / case.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    if case.trusted:
        trust(machine, cwd)
    return cwd


# Predictions --------------------------------------------------------------------------------------


class Prediction(NamedTuple):
    """What a profile says about one file; `listed` and `told` are None if that is unknown.

    A file that a host accepts and skillshelf does not read has neither name nor description.
    """

    path: str
    verdict: Verdict
    listed: bool | None
    told: bool | None
    name: str
    description: str
    mark: str
    is_read: bool
    is_cut: bool = False


def predict(host: str, cwd: Path, machine: Machine, env: Mapping[str, str]) -> list[Prediction]:
    """Return the predictions for every file that a survey of all hosts' folders finds."""
    seen = take_survey(Environment(str(cwd), str(machine.home), env), [host])
    return [_prediction(host, seen, skill_file) for skill_file in seen.skill_files]


def _prediction(host: str, seen: Survey, skill_file: SkillFile) -> Prediction:
    verdict = judge(skill_file, seen.states[host], seen)
    skill = seen.states[host].by_file.get(skill_file.real_path)
    listed = None if verdict.visible is None else bool(verdict.visible or verdict.verdict == "hidden-from-model")
    is_listed_too = verdict.verdict == "over-budget" or (
        verdict.verdict == "disabled-by-config" and PROGRAMS[host].lists_all
    )
    if is_listed_too and skill is not None:
        listed = True
    name, description = (skill.name, skill.description) if skill else (skill_file.declared or skill_file.folder, "")
    mark = next((word for word in _folded(skill_file.head.decode("utf-8", "replace")).split() if _is_mark(word)), "")
    is_cut = skill is not None and skill.path in seen.states[host].size().cut
    is_read = skill is not None
    mark = mark.strip("[],.")
    return Prediction(skill_file.real_path, verdict, listed, verdict.visible, name, description, mark, is_read, is_cut)


def _is_mark(word: str) -> bool:
    return re.fullmatch(r"mark\d{2,3}q", word.strip("[],.")) is not None


def _folded(text: str) -> str:
    return " ".join(text.split())


# Questions ----------------------------------------------------------------------------------------


class Record:
    """The answers of hosts in a file, one line a tree, with BASE for the folder that the tree was in."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self._answers: dict[str, str] = dict(line.split("\t", 1) for line in lines)

    def answer(self, key: str, base: Path) -> Answer | None:
        """Return what was answered about a tree, as if it were in that folder; None if it was not asked about."""
        kept = self._answers.get(key)
        if kept is None:
            return None
        entries, prompt = json.loads(kept.replace("BASE", str(base)))
        return Answer(None if entries is None else [Entry(*entry) for entry in entries], prompt)

    def add(self, key: str, answer: Answer, base: Path) -> None:
        """Add what was answered about a tree."""
        self._answers[key] = json.dumps([answer.entries, answer.prompt]).replace(str(base), "BASE")
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{key}\t{self._answers[key]}\n")


class Asker(NamedTuple):
    """A host that can be asked: its program, the skills that come with it, and the server for its model."""

    host: str
    path: str
    bins: Path
    model: PromptServer | None
    record: Record
    own: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()

    @property
    def program(self) -> Program:
        """How the host is asked."""
        return PROGRAMS[self.host]

    def ask(self, cwd: Path, home: Path, env: Mapping[str, str] = NOTHING) -> Answer:
        """Return what the host lists of its user's skills, and what it tells its model."""
        if self.model is None:
            return Answer(None, None, NOT_RECORDED)
        question = Question(self.path, self.bins, cwd, home, env, self.model)
        try:
            answer = self.program.ask(question)
        except (OSError, ValueError, LookupError, StopIteration, AttributeError, TypeError) as error:
            return Answer(None, None, f"{type(error).__name__}: {error}"[:200])
        told = None if answer.prompt is None else "\n".join(dict.fromkeys(self._foreign(answer.prompt)))
        if answer.entries is None:
            return answer._replace(prompt=told)
        return Answer([entry for entry in answer.entries if not self._is_own(entry)], told)

    def ask_about(self, tree: Tree, cwd: Path, machine: Machine) -> Answer:
        """Return the answer about a tree, the recorded one if there is one."""
        key = f"{self.host} {self.program.version} {tree.digest}"
        answer = self.record.answer(key, machine.base) if tree.digest else None
        if answer is None:
            answer = self.ask(cwd, machine.home, filled(tree.env, machine))
            if tree.digest and not answer.failed:
                self.record.add(key, answer, machine.base)
        return answer

    def _foreign(self, prompt: str) -> Iterator[str]:
        """Yield the lines of a prompt that are not in that of an empty folder."""
        return (line for line in prompt.splitlines() if line not in self.plain)

    def _is_own(self, entry: Entry) -> bool:
        return entry.name in self.own if entry.path is None else not os.path.isabs(entry.path)


def asker(host: str, bins: Path, model: PromptServer | None, record: Record | None = None) -> Asker | None:
    """Return a host that is installed, with the names of the skills that it brings; None if it is not."""
    record = record or Record(None)
    if model is None:
        return Asker(host, "", bins, None, record)
    path = find_program(host, bins)
    if path is None:
        return None
    plain = Asker(host, path, bins, model, record)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(Path(folder).resolve())
        answer = plain.ask(machine.repo, machine.home)
    own = frozenset(entry.name for entry in answer.entries or ())
    return plain._replace(own=own, plain=frozenset((answer.prompt or "").splitlines()))


# Comparison ---------------------------------------------------------------------------------------


class Result(NamedTuple):
    """The outcome for one tree: `right`, `wrong`, `unknown` (nothing was predicted) or `no answer`."""

    title: str
    outcome: str
    differences: tuple[str, ...] = ()
    files: int = 0
    unknown: int = 0
    taken: tuple[str, ...] = ()


def compare_tree(asked: Asker, tree: Tree) -> Result:
    """Ask a host about one tree, a second time if it gives no answer."""
    for _ in range(2):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            machine = Machine(Path(folder).resolve())
            cwd = tree.build(machine)
            env = filled(tree.env, machine)
            predictions = predict(asked.host, cwd, machine, env)
            answer = asked.ask_about(tree, cwd, machine)
            if not answer.failed:
                differences = list(differences_of(predictions, answer, machine.base, has_marks=tree.has_marks))
                break
    unknown = sum(prediction.listed is None for prediction in predictions)
    if answer.failed:
        return Result(tree.title, "no answer", (answer.failed,), len(predictions), unknown)
    outcome = "unknown" if predictions and unknown == len(predictions) else "wrong" if differences else "right"
    taken = _taken(predictions, answer)
    return Result(tree.title, outcome, tuple(differences), len(predictions), unknown, taken)


def filled(env: Mapping[str, str], machine: Machine) -> dict[str, str]:
    """Return the variables of a tree on disk."""
    return {name: value.replace("BASE", str(machine.base)) for name, value in env.items()}


def differences_of(predictions: list[Prediction], answer: Answer, base: Path, *, has_marks: bool) -> Iterator[str]:
    """Yield each statement about a file that the program contradicts."""
    if answer.entries is not None:
        if any(entry.path for entry in answer.entries):
            yield from _by_path(predictions, answer.entries, base)
        elif has_marks and any(entry.description for entry in answer.entries):
            yield from _by_mark(predictions, answer.entries)
        else:
            yield from _by_name(predictions, answer.entries)
    if answer.prompt is not None and has_marks:
        yield from _by_prompt(predictions, _folded(html.unescape(answer.prompt)))


def _said(prediction: Prediction) -> str:
    return f"{prediction.mark or prediction.name} ({prediction.verdict.verdict})"


def _by_path(predictions: list[Prediction], entries: list[Entry], base: Path) -> Iterator[str]:
    inside = [(_real_path(entry, predictions), entry) for entry in entries]
    listed = {path: entry for path, entry in inside if path.startswith(str(base))}
    for prediction in predictions:
        entry = listed.pop(prediction.path, None)
        if prediction.listed is None:
            continue
        if prediction.listed != (entry is not None):
            yield f"{_said(prediction)}: {'listed' if entry else 'not listed'}"
        elif entry is not None:
            yield from _entry_differences(prediction, entry)
    for path in listed:
        yield f"{os.path.relpath(path, base)}: listed, and no survey found it"


def _real_path(entry: Entry, predictions: list[Prediction]) -> str:
    """Return the real file of an entry; a host that names the real folder of a linked SKILL.md means the file there."""
    path = os.path.realpath(entry.path or "")
    if os.path.exists(path):
        return path
    there = [one.path for one in predictions if os.path.dirname(one.path) == os.path.dirname(path)]
    return there[0] if len(there) == 1 else next((one for one in there if entry.name in os.path.basename(one)), path)


def _entry_differences(prediction: Prediction, entry: Entry) -> Iterator[str]:
    if not prediction.is_read:
        return
    if entry.name != prediction.name:
        yield f"{_said(prediction)}: called {entry.name!r}, not {prediction.name!r}"
    says, predicted = _folded(entry.description or ""), _folded(prediction.description)
    if prediction.verdict.verdict == "description-cut":
        says, predicted = says[:100], predicted[:100]
    if entry.description is not None and says != predicted:
        yield f"{_said(prediction)}: says {entry.description[:70]!r}, not {prediction.description[:70]!r}"
    if entry.hidden is not None and prediction.told is not None and entry.hidden == prediction.told:
        yield f"{_said(prediction)}: {'kept from' if entry.hidden else 'told to'} the model"


def _by_mark(predictions: list[Prediction], entries: list[Entry]) -> Iterator[str]:
    rest = list(entries)
    # An entry without a mark is that of the skill which is said to have the name.
    for prediction in sorted(predictions, key=lambda one: not one.listed):
        found = [entry for entry in rest if prediction.mark and prediction.mark in (entry.description or "")]
        found = found or [
            entry for entry in rest if entry.name == prediction.name and "mark" not in (entry.description or "")
        ]
        rest = [entry for entry in rest if entry not in found[:1]]
        if prediction.listed is None:
            continue
        if prediction.listed != bool(found):
            yield f"{_said(prediction)}: {'listed' if found else 'not listed'}"
        elif found:
            yield from _entry_differences(prediction, found[0])
    for entry in rest:
        yield f"{entry.name}: listed, and no survey found it"


def _by_name(predictions: list[Prediction], entries: list[Entry]) -> Iterator[str]:
    listed = {entry.name for entry in entries}
    unknown = {prediction.name for prediction in predictions if prediction.listed is None}
    predicted = {prediction.name for prediction in predictions if prediction.listed}
    for name in sorted((listed ^ predicted) - unknown):
        yield f"{name}: {'listed' if name in listed else 'not listed'}"


def _by_prompt(predictions: list[Prediction], prompt: str) -> Iterator[str]:
    for prediction in predictions:
        if prediction.told is None:
            continue
        is_there = prediction.mark in prompt if prediction.mark else False
        if not prediction.told and is_there:
            yield f"{_said(prediction)}: told to the model"
        if prediction.told and prediction.is_read:
            # Some hosts write their list with marks of their own for `<` and `&`.
            says = _folded(prediction.description)
            if prediction.verdict.verdict == "description-cut":
                says = prediction.name
            if prediction.is_cut and len(prediction.description) > 60 and _folded(prediction.description) in prompt:
                yield f"{_said(prediction)}: told to the model whole"
            if (says or prediction.name) not in prompt:
                yield f"{_said(prediction)}: not told to the model as {(says or prediction.name)[:70]!r}"


# One name in all roots ----------------------------------------------------------------------------


def orders(asked: Asker) -> Iterator[Result]:
    """Ask about one name in all roots of a host, each time without the copies that it took before."""
    for below in (False, True):
        whole = one_name_everywhere(asked.host, below=below)
        left = list(whole.skills)
        while left:
            tree = _without(whole, left)
            result = compare_tree(asked, _as_tree(tree))
            yield result
            rest = [path for path in left if not any(taken.endswith(f"/{path}") for taken in result.taken)]
            left = rest if len(rest) < len(left) else []


def _without(tree: Drawn, left: list[str]) -> Drawn:
    puts = tuple(put for put in tree.puts if put.path not in tree.skills or put.path in left)
    return tree._replace(title=f"{tree.title}: {len(left)} left", puts=puts, skills=tuple(left))


def _taken(predictions: list[Prediction], answer: Answer) -> tuple[str, ...]:
    """Return the files that a host tells its model of or lists."""
    shown = (answer.prompt or "") + " ".join(entry.description or "" for entry in answer.entries or ())
    paths = {os.path.realpath(entry.path) for entry in answer.entries or () if entry.path}
    return tuple(one.path for one in predictions if (one.mark and one.mark in shown) or one.path in paths)


# Command ------------------------------------------------------------------------------------------


def report(host: str, results: list[Result]) -> str:
    """Return one line about a host, and one for each tree that is wrong or has no answer."""
    counts = {name: sum(one.outcome == name for one in results) for name in ("right", "wrong", "unknown", "no answer")}
    files, unknown = sum(one.files for one in results), sum(one.unknown for one in results)
    lines = [
        f"{host} {PROGRAMS[host].version}: {len(results)} trees, "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
        + f"; {unknown} of {files} files unknown"
    ]
    for one in results:
        if one.outcome in ("wrong", "no answer"):
            lines += [f"  {one.outcome}: {one.title}", *(f"      {said}" for said in one.differences[:SHOWN])]
            lines += [f"      and {len(one.differences) - SHOWN} more"] if len(one.differences) > SHOWN else []
    return "\n".join(lines)


def main() -> int:
    """Compare every host that is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", choices=[*PROGRAMS, []], metavar="HOST")
    parser.add_argument("--bin", type=Path, help="the folder with a package of each host")
    parser.add_argument("--install", action="store_true", help="install missing packages from the npm registry first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trees", type=int, default=200, help="how many trees are drawn for a host")
    parser.add_argument("--fixed", action="store_true", help="the trees of the tests instead of drawn ones")
    parser.add_argument("--number", type=int, help="the drawn tree of this number alone")
    parser.add_argument("--record", type=Path, help="the file of the answers so far, to which new ones are added")
    parser.add_argument("--recorded", action="store_true", help="ask nothing, compare what is recorded")
    given = parser.parse_args()
    if not (given.recorded and given.record) and given.bin is None:
        parser.error("--bin is needed, or --record with --recorded")
    end_on_signal()
    hosts, bins = given.hosts or [*PROGRAMS], (given.bin or Path()).resolve()
    for problem in install(hosts, bins) if given.install else ():
        print(problem, flush=True)
    found, record = {}, Record(given.record)
    with prompt_server() as model:
        for host in hosts:
            asked = asker(host, bins, None if given.recorded else model, record)
            if asked is None:
                print(f"{host}: skipped, {PROGRAMS[host].package} is not in {given.bin}", flush=True)
                continue
            found[host] = list(results(asked, given))
            print(report(host, found[host]), flush=True)
    return int(any(one.outcome == "wrong" for rows in found.values() for one in rows))


def results(asked: Asker, given: argparse.Namespace) -> Iterator[Result]:
    """Yield what comes of every tree that the options name."""
    found = orders(asked) if not given.fixed and given.number is None else iter(())
    drawn = (compare_tree(asked, tree) for tree in _trees(asked.host, given))
    for result in itertools.chain(found, drawn):
        if result.differences != (NOT_RECORDED,):
            yield result


def _trees(host: str, given: argparse.Namespace) -> Iterator[Tree]:
    if given.fixed:
        yield from fixed_trees(host)
    elif given.number is not None:
        drawn = drawn_trees(host, given.seed, given.number + 1)
        yield from (tree for tree in drawn if tree.title.startswith(f"{given.number}:"))
    else:
        yield from whole_trees(host)
        yield from drawn_trees(host, given.seed, given.trees)


if __name__ == "__main__":
    sys.exit(main())
