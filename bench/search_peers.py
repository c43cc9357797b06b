"""The peers' answers to queries over the same skills; run by `search.py` with a Python that has them installed.

Reads `{"skills": [[path, name, description, body]], "queries": [text]}` from standard input.
"""

import asyncio
import json
import statistics
import sys
import time

DEPTH = 10


def measured(answer, queries):
    answers, times = [], []
    for query in queries:
        start = time.process_time()
        answers.append(answer(query))
        times.append(1000 * (time.process_time() - start))
    return {"answers": answers, "p50": statistics.median(times), "p99": sorted(times)[len(times) * 99 // 100]}


def with_bm25s(skills, queries):
    """bm25s with the Snowball stemmer and its stop words, over name, description and body as one text."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts):
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens(["\n".join(skill[1:]) for skill in skills]), show_progress=False)

    def answer(query):
        found, scores = index.retrieve(tokens([query]), k=DEPTH, show_progress=False)
        return [skills[n][0] for n, score in zip(found[0], scores[0], strict=True) if score > 0]

    return measured(answer, queries)


class Registered:
    """The part of a skill that the selector uses."""

    def __init__(self, path, name, description):
        self.path, self.told = path, {"name": name, "description": description}

    def get_id(self):
        return self.path

    async def get_metadata(self):
        return self.told


class Registry:
    """The part of a registry that the selector uses; the real one rejects a second skill of the same name."""

    def __init__(self, skills):
        self.skills = [Registered(*skill[:3]) for skill in skills]

    def list_skills(self):
        return self.skills


def with_agentskills_retrieval(skills, queries):
    """The lexical selector, which knows names and descriptions."""
    from agentskills_retrieval import LexicalSelector

    selector = LexicalSelector(Registry(skills))
    asyncio.run(selector.index())

    def answer(query):
        return list(asyncio.run(selector.select(query, limit=DEPTH)).skill_ids)

    return measured(answer, queries)


def main():
    work = json.load(sys.stdin)
    methods = {
        "bm25s, stemmed, whole text": with_bm25s,
        "agentskills-retrieval, its lexical selector": with_agentskills_retrieval,
    }
    print(json.dumps({name: method(work["skills"], work["queries"]) for name, method in methods.items()}))


if __name__ == "__main__":
    main()
