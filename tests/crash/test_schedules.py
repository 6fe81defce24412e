"""Random schedules of writes, updates, links and deletions, beside a plain model of what must be there."""

import asyncio
from typing import Any

import httpx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.service import REMEMBER, Service

MEMORIES = [f"S{n}" for n in range(5)]
LESSONS = ["1", "2", "3"]
WORDS = ["anchor", "beacon", "compass", "drift", "ebb"]
some_memory, some_lesson, some_word = st.sampled_from(MEMORIES), st.sampled_from(LESSONS), st.sampled_from(WORDS)
SEEN = """{ memories(first: 50) { nodes { id text reasoningPointerIds edges { nodes { id text } } } }
  lessons(first: 50) { nodes { rbId keyLesson linkNodes lostSources } } }"""
LEARNT = "query($q: String!) { searchLessons(query: $q, limit: 50) { lesson { rbId keyLesson } } }"
FOUND = "query($q: String!) { searchMemories(query: $q, limit: 50) { bm25Score memory { id text } } }"


async def test_two_hundred_schedules_match_a_plain_model(cairn: Service) -> None:
    """After every step: the same memories, edges, lessons and links on both sides; a search finds exactly what is there."""
    address = str(cairn.http.base_url)
    schedules = 0

    class Schedule(RuleBasedStateMachine):
        def __init__(self) -> None:
            nonlocal schedules
            super().__init__()
            schedules += 1
            self.http = httpx.Client(base_url=address, timeout=30)
            self.texts: dict[str, str] = {}
            self.edges: dict[str, tuple[str, str]] = {}
            self.sentences: dict[str, str] = {}
            self.lessons: dict[str, str] = {}
            self.links: dict[str, list[str]] = {}
            self.lost: dict[str, list[str]] = {}
            memories = " ".join(f'm{key}: deleteMemory(id: "{key}") {{ deleted }}' for key in MEMORIES)
            lessons = " ".join(f'l{key}: deleteLesson(rbId: "{key}") {{ deleted }}' for key in LESSONS)
            self._ask(f"mutation {{ {memories} {lessons} }}")

        def teardown(self) -> None:
            self.http.close()

        def _ask(self, query: str, **variables: Any) -> dict[str, Any]:
            answer: dict[str, Any] = self.http.post("/graphql", json={"query": query, "variables": variables}).json()
            assert all(error["extensions"]["code"] != "INTERNAL" for error in answer.get("errors", [])), answer
            return answer

        def _refused(self, answer: dict[str, Any]) -> bool:
            return bool(answer.get("errors"))

        @rule(key=some_memory, word=some_word)
        def write(self, key: str, word: str) -> None:
            text = f"The {word} of {key}."
            made = self._ask(REMEMBER, input={"convId": "s", "memories": [{"event": {"id": key, "text": text}}]})[
                "data"
            ]["remember"]
            assert made["unchanged"] == (self.texts.get(key) == text)
            self.texts[key] = text

        @rule(key=some_memory, word=some_word)
        def update(self, key: str, word: str) -> None:
            text = f"Changed to {word}."
            answer = self._ask(
                "mutation($id: ID!, $t: String!) { updateMemory(id: $id, patch: {text: $t}) { id } }", id=key, t=text
            )
            assert self._refused(answer) == (key not in self.texts)
            if key in self.texts:
                self.texts[key] = text

        @rule(key=some_memory)
        def delete(self, key: str) -> None:
            gone = self._ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted edgesRemoved } }", id=key)["data"][
                "deleteMemory"
            ]
            edges = [edge for edge, ends in self.edges.items() if key in ends]
            assert (gone["deleted"], gone["edgesRemoved"]) == (key in self.texts, len(edges))
            self.texts.pop(key, None)
            for edge in edges:
                del self.edges[edge], self.sentences[edge]
            for rb_id, nodes in self.links.items():
                if key in nodes:
                    nodes.remove(key)
                    self.lost[rb_id] = [x for x in self.lost[rb_id] if x != key] + [key]

        @rule(source=some_memory, end=some_memory)
        def join(self, source: str, end: str) -> None:
            edge = {"id": f"{source}{end}", "source": source, "target": end, "text": "Joined.", "weight": 0.5}
            answer = self._ask(REMEMBER, input={"convId": "s", "edges": [edge]})
            possible = source != end and source in self.texts and end in self.texts
            assert self._refused(answer) != possible
            if possible:
                self.edges[edge["id"]] = (source, end)  # type: ignore[index]
                self.sentences[edge["id"]] = "Joined."  # type: ignore[index]

        @rule(source=some_memory, end=some_memory, word=some_word, parted=st.booleans())
        def join_otherwise(self, source: str, end: str, word: str, parted: bool) -> None:
            edge, there = f"{source}{end}", f"{source}{end}" in self.edges
            if parted:
                gone = self._ask("mutation($id: ID!) { deleteEdge(id: $id) { deleted } }", id=edge)["data"][
                    "deleteEdge"
                ]
                assert gone["deleted"] == there
                self.edges.pop(edge, None)
                self.sentences.pop(edge, None)
                return
            change = "mutation($id: ID!, $t: String!) { updateEdge(id: $id, text: $t) { id } }"
            assert self._refused(self._ask(change, id=edge, t=f"Joined by a {word}.")) != there
            if there:
                self.sentences[edge] = f"Joined by a {word}."

        @rule(rb_id=some_lesson, word=some_word, sources=st.lists(some_memory, unique=True, max_size=3))
        def learn(self, rb_id: str, word: str, sources: list[str]) -> None:
            lesson = {
                "rbId": rb_id,
                "keyLesson": f"Mind the {word}.",
                "contextToPrefer": "At sea.",
                "linkNodes": sources,
            }
            answer = self._ask(REMEMBER, input={"convId": "s", "lessons": [lesson]})
            possible = set(sources) <= set(self.texts)
            assert self._refused(answer) != possible
            if possible:
                self.lessons[rb_id] = f"Mind the {word}."
                self.links[rb_id] = list(sources)
                self.lost[rb_id] = [x for x in self.lost.get(rb_id, []) if x not in sources]

        @rule(rb_id=some_lesson, key=some_memory, apart=st.booleans())
        def link(self, rb_id: str, key: str, apart: bool) -> None:
            name = "unlinkLesson" if apart else "linkLesson"
            answer = self._ask(
                f"mutation($r: ID!, $n: ID!) {{ {name}(rbId: $r, nodeIds: [$n]) {{ rbId }} }}", r=rb_id, n=key
            )
            possible = rb_id in self.lessons and key in self.texts
            assert self._refused(answer) != possible
            if possible:
                self.links[rb_id] = (
                    [x for x in self.links[rb_id] if x != key]
                    if apart
                    else list(dict.fromkeys([*self.links[rb_id], key]))
                )
                self.lost[rb_id] = self.lost[rb_id] if apart else [x for x in self.lost[rb_id] if x != key]

        @rule(rb_id=some_lesson, word=some_word)
        def revise(self, rb_id: str, word: str) -> None:
            change = "mutation($r: ID!, $t: String!) { updateLesson(rbId: $r, patch: {keyLesson: $t, contextToPrefer: $t}) { rbId } }"
            answer = self._ask(change, r=rb_id, t=f"Rather the {word}.")
            assert self._refused(answer) == (rb_id not in self.lessons)
            if rb_id in self.lessons:
                self.lessons[rb_id] = f"Rather the {word}."

        @rule(rb_id=some_lesson)
        def forget(self, rb_id: str) -> None:
            gone = self._ask("mutation($id: ID!) { deleteLesson(rbId: $id) { deleted } }", id=rb_id)["data"][
                "deleteLesson"
            ]
            assert gone["deleted"] == (rb_id in self.lessons)
            for kept in (self.lessons, self.links, self.lost):
                kept.pop(rb_id, None)  # type: ignore[attr-defined]

        @rule(word=some_word)
        def search(self, word: str) -> None:
            hits = self._ask(FOUND, q=word)["data"]["searchMemories"]
            by_words = {hit["memory"]["id"] for hit in hits if hit["bm25Score"]}
            assert by_words == {key for key, text in self.texts.items() if word in text}
            assert {hit["memory"]["id"]: hit["memory"]["text"] for hit in hits} == self.texts
            learnt = self._ask(LEARNT, q=word)["data"]["searchLessons"]
            assert {hit["lesson"]["rbId"]: hit["lesson"]["keyLesson"] for hit in learnt} == self.lessons

        @invariant()
        def both_sides_are_as_the_model_says(self) -> None:
            seen = self._ask(SEEN)["data"]
            memories = {node["id"]: node for node in seen["memories"]["nodes"]}
            assert {key: node["text"] for key, node in memories.items()} == self.texts
            for key, node in memories.items():
                assert set(node["reasoningPointerIds"]) == {
                    rb_id for rb_id, nodes in self.links.items() if key in nodes
                }
                assert {edge["id"]: edge["text"] for edge in node["edges"]["nodes"]} == {
                    e: self.sentences[e] for e, ends in self.edges.items() if key in ends
                }
            lessons = {node["rbId"]: node for node in seen["lessons"]["nodes"]}
            assert {key: node["keyLesson"] for key, node in lessons.items()} == self.lessons
            for key, node in lessons.items():
                assert sorted(node["linkNodes"]) == sorted(self.links[key])
                assert node["lostSources"] == self.lost[key]

    chosen = settings(
        max_examples=200,
        stateful_step_count=12,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    await asyncio.to_thread(run_state_machine_as_test, Schedule, settings=chosen)
    assert schedules >= 200
    report = await cairn.settled()
    assert report["ok"], str(report)
