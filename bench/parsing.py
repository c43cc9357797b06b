"""How fast frontmatter is parsed: `python bench/parsing.py PARSER ROOT` times one pass over all of ROOT's skills.

The documents are read before the clock starts. CPU time, the smallest of five passes.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ours() -> Callable[[bytes], Any]:
    """Do what a scan does with the head of a file: find the fences, parse, apply limits, check its form."""
    from skillshelf.catalog.document import parse

    return lambda head: parse(head, whole=False)


def ryaml() -> Callable[[bytes], Any]:
    """The YAML parser below ours, alone."""
    import ryaml

    return lambda head: ryaml.loads(_text(head))


def pyyaml_c() -> Callable[[bytes], Any]:
    """PyYAML with libyaml."""
    import yaml

    return lambda head: yaml.load(_text(head), yaml.CSafeLoader)


def pyyaml() -> Callable[[bytes], Any]:
    """PyYAML as `yaml.safe_load` uses it."""
    import yaml

    return lambda head: yaml.safe_load(_text(head))


def ruamel() -> Callable[[bytes], Any]:
    """ruamel.yaml's safe loader."""
    from ruamel.yaml import YAML

    loader = YAML(typ="safe")
    return lambda head: loader.load(_text(head))


PARSERS = {"ours": ours, "ryaml": ryaml, "pyyaml-c": pyyaml_c, "pyyaml": pyyaml, "ruamel": ruamel}


def _text(head: bytes) -> str:
    return head[4 : head.index(b"\n---", 4)].decode("utf-8")


def measure(name: str, root: Path) -> dict[str, float]:
    """Documents and megabytes of frontmatter in a second."""
    heads = [path.read_bytes()[:4096] for path in sorted(root.glob("*/SKILL.md"))]
    parse = PARSERS[name]()
    passes = []
    for _ in range(5):
        start = time.process_time()
        for head in heads:
            parse(head)
        passes.append(time.process_time() - start)
    size = sum(len(_text(head).encode()) for head in heads)
    return {"documents": len(heads) / min(passes), "megabytes": size / 1e6 / min(passes)}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
