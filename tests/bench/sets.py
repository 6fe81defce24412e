"""The question sets that retrieval is measured on: what is stored, what is asked, and what should be found."""

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import stores

DATA = Path(__file__).parents[3] / "shared" / "data"  # beside the project; not at a user's
FILES = {
    "2wiki": "multihop_2wiki",
    "musique": "multihop_musique",
    "hotpot": "multihop_hotpot",
    "longmemeval": "longmemeval_dev",
    "webarena": "lessons_webarena",
}
MADE = "made"  # 20k memories, 60k edges, 10k lessons without a meaning: for times only
MADE_SIZE = 20_000


@dataclass(frozen=True)
class Question:
    query: str
    gold: frozenset[str]
    tag: str | None = None  # only memories with this tag are asked for
    left_out: str | None = None  # the lesson that the question was made from

    def first(self, names: Sequence[str], most: int) -> set[str]:
        return set([name for name in names if name != self.left_out][:most])


@dataclass(frozen=True)
class QuestionSet:
    """`of_lessons`: lessons are asked for. `of_talks`: a memory stands for the conversation it is from."""

    name: str
    memories: Sequence[Mapping[str, Any]]
    edges: Sequence[Mapping[str, Any]]
    lessons: Sequence[Mapping[str, Any]]
    questions: Sequence[Question]
    of_lessons: bool = False
    of_talks: bool = False
    titles: Mapping[int, str] = field(default_factory=dict)  # of the lessons


def load(name: str, folder: Path, most: int | None) -> QuestionSet:
    """A set with its first `most` questions; of chat histories only those that are asked about."""
    if name == MADE:
        return _made(most or 500)
    data = json.loads(gzip.decompress((folder / f"{FILES[name]}.json.gz").read_bytes()))
    if name == "longmemeval":
        return _talks(name, data[:most])
    if name == "webarena":
        return _lessons(name, data, most)
    questions = [Question(one["query"], frozenset(one["gold"])) for one in data["questions"][:most]]
    return QuestionSet(name, [{"dataSource": row} for row in data["memories"]], data["edges"], [], questions)


def _talks(name: str, data: Sequence[Any]) -> QuestionSet:
    """A turn a memory, each leading to the next; a question searches its own history, by its tag."""
    memories: list[Any] = []
    edges: list[Any] = []
    questions = []
    for asked in data:
        gold = frozenset(f"{asked['id']}/{talk}" for talk in asked["gold_conversations"])
        questions.append(Question(asked["query"], gold, tag=asked["id"]))
        for talk in asked["conversations"]:
            conv, last = f"{asked['id']}/{talk['id']}", None
            for number, turn in enumerate(talk["turns"]):
                row = {"id": f"{conv}/{number}", "convId": conv, "text": turn["text"][:4000] or "(nothing)", "tags": [asked["id"]]}  # fmt: skip
                by_user = turn["role"] == "user"
                memories.append({"userRequest" if by_user else "agentAnswer": row})
                if last is not None:
                    why, weight = ("The user went on from this answer.", 0.6) if by_user else ("Was answered by.", 0.9)
                    edges.append({"source": last, "target": row["id"], "text": why, "weight": weight, "tags": ["next"]})
                last = row["id"]
    return QuestionSet(name, memories, edges, [], questions, of_talks=True)


def _lessons(name: str, data: Mapping[str, Any], most: int | None) -> QuestionSet:
    lessons = [
        {"rbId": str(number), "title": row["id"], "keyLesson": row["text"], "contextToPrefer": row["text"], "tags": row["tags"]}
        for number, row in enumerate(data["lessons"], start=1)
    ]  # fmt: skip
    questions = [Question(one["query"], frozenset(one["gold"]), left_out=one.get("exclude")) for one in data["questions"][:most]]  # fmt: skip
    titles = {int(row["rbId"]): row["title"] for row in lessons}
    return QuestionSet(name, [], [], lessons, questions, of_lessons=True, titles=titles)


def _made(most: int) -> QuestionSet:
    chance = random.Random(7)
    memories, edges, _ = stores.records(0, MADE_SIZE, chance)
    lessons = [
        {"rbId": str(n + 1), "keyLesson": stores.text(chance), "contextToPrefer": stores.text(chance), "linkNodes": [f"N{n}"]}
        for n in range(0, MADE_SIZE, 2)
    ]  # fmt: skip
    questions = [Question(" ".join(chance.choices(stores.WORDS, k=6)), frozenset()) for _ in range(most)]
    return QuestionSet(MADE, memories, edges, lessons, questions)
