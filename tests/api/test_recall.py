"""recall over HTTP on real stores: what the walk finds, what every condition keeps out, and what the answer says."""

from typing import Any

import pytest

import bank.answer
from bank.model import RecallQuery
from bank.recall import Recall
from bank.words import WordCache
from graph.store import Memories
from tests.service import Refused, Service

RECALL = """query($input: RecallInput!) { recall(input: $input) { id tokens tookMs context
  memories { score vectorScore bm25Score pathScore why memory { id type text tags convId }
    via { score text steps { memory { id } edge { id } forward energy } } }
  paths { score text steps { memory { id } } }
  lessons { score semantic reliability recency diversity via lesson { rbId keyLesson namespace outcome } } } }"""
SEARCH = """query($query: String!, $filter: MemoryFilter, $limit: Int!) { searchMemories(query: $query, filter: $filter, limit: $limit) {
  score why memory { id } } }"""
QUESTION = "Why did the harbour of Busan close?"
FILLERS = 300  # more than a search asks for: what lies behind them is found by walking or not at all


@pytest.fixture(scope="module", autouse=True)
async def records(cairn: Service) -> None:
    await cairn.remember(
        memories=[
            {"event": {"id": "A", "text": "Harbour of Busan: closed in March.", "tags": ["news"], "startDate": "2025-03-01", "ingestionTime": "2025-03-01T00:00:00Z"}},
            {"agentAnswer": {"id": "B", "text": "Cranes stood still.", "tags": ["news"], "ingestionTime": "2025-03-02T00:00:00Z"}},
            {"dataSource": {"id": "C", "text": "Wages of operators, a table.", "tags": ["wages"], "convId": "c2", "ingestionTime": "2025-03-03T00:00:00Z"}},
            {"dataSource": {"id": "WEAK", "text": "Opening hours of museums.", "ingestionTime": "2025-03-03T00:00:00Z"}},
            {"dataSource": {"id": "ZERO", "text": "A recipe with lentils.", "ingestionTime": "2025-03-03T00:00:00Z"}},
            {"dataSource": {"id": "ISLAND", "text": "Mosses under a microscope.", "ingestionTime": "2025-03-03T00:00:00Z"}},
            {"dataSource": {"id": "LATE", "text": "Tram drivers, minutes.", "ingestionTime": "2025-06-01T00:00:00Z"}},
            {"dataSource": {"id": "TAUGHT", "text": "Invoices of a bakery.", "ingestionTime": "2025-03-03T00:00:00Z"}},
            {"userPreference": {"id": "P", "text": "Tables rather than prose, please.", "tags": ["style"], "ingestionTime": "2025-03-03T00:00:00Z"}},
        ],
        edges=[
            {"id": "AB", "source": "A", "target": "B", "text": "The harbour closed because the crane operators walked out.", "weight": 0.9, "createdTime": "2025-03-02T00:00:00Z"},
            {"id": "BC", "source": "C", "target": "B", "text": "The operators' wages explain why.", "weight": 0.9, "tags": ["pay"], "createdTime": "2025-03-04T00:00:00Z"},
            {"id": "AC", "source": "A", "target": "C", "text": "Both are about March.", "weight": 0.1, "createdTime": "2025-03-04T00:00:00Z"},
            {"id": "AW", "source": "A", "target": "WEAK", "text": "Both are in Korea.", "weight": 0.3, "createdTime": "2025-03-04T00:00:00Z"},
            {"id": "AZ", "source": "A", "target": "ZERO", "text": "Nothing to do with each other.", "weight": 0, "createdTime": "2025-03-04T00:00:00Z"},
            {"id": "AL", "source": "A", "target": "LATE", "text": "Another strike later.", "weight": 0.8, "createdTime": "2025-06-02T00:00:00Z"},
            {"id": "AP", "source": "P", "target": "A", "text": "Said of the harbour report.", "weight": 0.7, "createdTime": "2025-03-04T00:00:00Z"},
        ],
        lessons=[
            {"rbId": "1", "keyLesson": "Ask who walked out.", "contextToPrefer": "A harbour is closed.", "linkNodes": ["B", "TAUGHT"], "namespace": "ops/a"},
            {"rbId": "2", "keyLesson": "Do not blame the weather.", "contextToPrefer": "Quarterly bread prices.", "linkNodes": ["B"], "outcome": "FAILURE", "namespace": "ops/b"},
        ],
    )  # fmt: skip
    fillers = [
        {"dataSource": {"id": f"F{n:03}", "text": f"Why the harbour number {n} of Busan was painted.", "tags": ["filler"], "ingestionTime": "2025-03-03T00:00:00Z"}}
        for n in range(FILLERS)
    ]  # fmt: skip
    await cairn.remember(memories=fillers)


async def _recall(cairn: Service, query: str = QUESTION, **wanted: Any) -> dict[str, Any]:
    answer: dict[str, Any] = (await cairn.ask(RECALL, input={"query": query, **wanted}))["recall"]
    return answer


def _ids(answer: dict[str, Any]) -> list[str]:
    return [one["memory"]["id"] for one in answer["memories"]]


async def test_the_walk_finds_what_no_search_finds(cairn: Service) -> None:
    """B shares no word with the question and lies behind 300 memories that do; an edge leads there, and says why."""
    found = (await cairn.ask(SEARCH, query=QUESTION, filter=None, limit=100))["searchMemories"]
    assert "B" not in [one["memory"]["id"] for one in found]
    answer = await _recall(cairn)
    (b,) = [one for one in answer["memories"] if one["memory"]["id"] == "B"]
    assert b["vectorScore"] is None and b["bm25Score"] is None and b["pathScore"] > 0
    assert 'Reached from A because "The harbour closed because the crane operators walked out."' in b["why"]
    assert [step["memory"]["id"] for step in b["via"]["steps"]] == ["A", "B"]
    assert b["via"]["steps"][0]["edge"] is None and b["via"]["steps"][1]["forward"]
    assert b["via"]["text"].startswith('(A: "Harbour of Busan: closed in March.") -["The harbour closed because')


async def test_an_answer_is_whole(cairn: Service) -> None:
    """Scores fall, every memory says why, paths are best first, the receipt has an id, tokens are within the budget."""
    answer = await _recall(cairn, limit=50, tokenBudget=300)
    for part in ("memories", "paths", "lessons"):
        scores = [one["score"] for one in answer[part]]
        assert scores and scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    assert all(one["why"] for one in answer["memories"])
    assert answer["id"].startswith("R") and answer["tookMs"] > 0 and 0 < answer["tokens"] <= 300
    assert answer["context"].index("Ask who walked out.") < answer["context"].index("Harbour of Busan")
    for path in answer["paths"]:
        ids = [step["memory"]["id"] for step in path["steps"]]
        assert len(set(ids)) == len(ids) > 1
    assert len((await _recall(cairn, pathLimit=1))["paths"]) == 1
    assert (await _recall(cairn, pathLimit=0))["paths"] == []


@pytest.mark.parametrize("more", ["", "why", "via { text }"])
async def test_what_is_found_does_not_depend_on_what_is_asked_of_it(cairn: Service, more: str) -> None:
    """Paths and reasons are told where somebody asks for them; the memories, their order and scores are the same."""
    whole = [(one["memory"]["id"], one["score"], one["pathScore"]) for one in (await _recall(cairn))["memories"]]
    found = await cairn.ask(
        f'{{ recall(input: {{query: "{QUESTION}"}}) {{ memories {{ score pathScore memory {{ id }} {more} }} }} }}'
    )
    assert [(one["memory"]["id"], one["score"], one["pathScore"]) for one in found["recall"]["memories"]] == whole


async def test_paths_that_nobody_asks_for_are_not_looked_for(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for = []
    monkeypatch.setattr(bank.answer, "best_routes", lambda *wanted: looked_for.append(wanted) or {})
    ask = f'{{ recall(input: {{query: "{QUESTION}"}}) {{ memories {{ memory {{ id }} %s }} }} }}'
    await cairn.ask(ask % "")
    assert not looked_for
    await cairn.ask(ask % "why")
    assert looked_for


async def test_reasons_and_paths_are_told_wherever_the_query_asks_for_them(cairn: Service) -> None:
    """In a fragment, under another name, behind a directive; the paths alone, and the context alone."""
    whole = await _recall(cairn)
    asked = """query($input: RecallInput!, $on: Boolean!) {
      fragments: recall(input: $input) { memories { ...Reasoned } }
      directive: recall(input: $input) { memories { because: why @include(if: $on) } }
      inline: recall(input: $input) { ... on Recall { paths { text } } }
      prompt: recall(input: $input) { context } }
      fragment Reasoned on RecalledMemory { ...Why via { text } ...Why }
      fragment Why on RecalledMemory { because: why }"""
    told = await cairn.ask(asked, input={"query": QUESTION}, on=True)
    because = [one["why"] for one in whole["memories"]]
    assert all(because)
    assert [one["because"] for one in told["fragments"]["memories"]] == because
    assert [one["because"] for one in told["directive"]["memories"]] == because
    assert [one["via"] for one in told["fragments"]["memories"]] == [
        one["via"] and {"text": one["via"]["text"]} for one in whole["memories"]
    ]
    assert [one["text"] for one in told["inline"]["paths"]] == [one["text"] for one in whole["paths"]]
    assert told["prompt"]["context"] == whole["context"]


async def test_the_context_says_what_joins_its_memories(cairn: Service) -> None:
    """The sentences along which they were reached, as they were written: from where to where."""
    context = (await _recall(cairn))["context"]
    assert '## Connections\n- "A" -> "B": "The harbour closed because the crane operators walked out."' in context
    assert "## Connections" not in (await _recall(cairn, hops=0))["context"]


async def test_without_hops_it_is_plain_search(cairn: Service) -> None:
    """hops: 0 gives the order and the scores of searchMemories, with a filter too; each says why, and was there then."""
    for filter in (None, {"tags": ["news"]}, {"textContains": "CLOSED"}):
        answer = await _recall(cairn, hops=0, filter=filter, limit=20)
        found = (await cairn.ask(SEARCH, query=QUESTION, filter=filter, limit=20))["searchMemories"]
        assert [(one["memory"]["id"], one["score"]) for one in answer["memories"]] == [
            (one["memory"]["id"], one["score"]) for one in found
        ]
        assert answer["paths"] == [] and all(one["via"] is None for one in answer["memories"])
        assert all(one["why"].startswith("Found by") for one in answer["memories"])
    then = await _recall(cairn, hops=0, asOf="2025-03-02T12:00:00Z")
    assert set(_ids(then)) == {"A", "B"}


async def test_a_strong_chain_beats_a_weak_shortcut(cairn: Service) -> None:
    """C is reached over B, not over the weak edge; with one hop only the weak edge is left."""
    far = {one["memory"]["id"]: one for one in (await _recall(cairn, limit=100))["memories"]}
    assert [step["memory"]["id"] for step in far["C"]["via"]["steps"]] == ["A", "B", "C"]
    assert [step["forward"] for step in far["C"]["via"]["steps"]] == [True, True, False]
    near = {one["memory"]["id"]: one for one in (await _recall(cairn, limit=100, hops=1))["memories"]}
    assert [step["memory"]["id"] for step in near["C"]["via"]["steps"]] == ["A", "C"]


async def test_what_has_no_edge_or_a_worthless_one_is_not_reached(cairn: Service) -> None:
    """An island stays away, though the edge on it is as strong as can be, and an edge of weight 0 carries nothing."""
    await cairn.remember(
        memories=[{"dataSource": {"id": "SKERRY", "text": "Lichens on a stone."}}],
        edges=[{"id": "IS", "source": "ISLAND", "target": "SKERRY", "text": "Both grow slowly.", "weight": 1}],
    )
    answer = await _recall(cairn, limit=200, hops=5)
    await cairn.ask('mutation { deleteMemory(id: "SKERRY") { deleted } }')
    reached = {one["memory"]["id"] for one in answer["memories"] if one["pathScore"] or one["via"]}
    assert "WEAK" in reached and not reached & {"ISLAND", "SKERRY", "ZERO"}


@pytest.mark.parametrize(
    ("filter", "outside"),
    [
        ({"types": ["Event", "DataSource"]}, {"B", "P"}),
        ({"tags": ["news"]}, {"C", "WEAK", "P", "LATE", "F001"}),
        ({"convId": "c2"}, {"A", "B"}),
        ({"textContains": "of"}, {"B", "P"}),
        ({"since": "2025-03-02T00:00:00Z"}, {"A"}),
        ({"until": "2025-03-02T12:00:00Z"}, {"C", "WEAK", "LATE", "F001"}),
        ({"overlaps": {"start": "2025-02-01", "end": "2025-04-01"}}, {"B", "C", "F001"}),
    ],
)
async def test_a_filter_holds_for_what_is_returned_and_walked(
    cairn: Service, filter: dict[str, Any], outside: set[str]
) -> None:
    """Nothing that fails it is in the answer, nor on a path of it; and it is what `memories` lets pass."""
    answer = await _recall(cairn, filter=filter, limit=200, hops=5)
    listed = await cairn.ask("query($f: MemoryFilter) { memories(filter: $f, first: 500) { nodes { id } } }", f=filter)
    passing = {one["id"] for one in listed["memories"]["nodes"]}
    assert answer["memories"] and not passing & outside
    assert set(_ids(answer)) <= passing
    assert {step["memory"]["id"] for path in answer["paths"] for step in path["steps"]} <= passing


async def test_a_memory_behind_a_filtered_one_is_not_reached(cairn: Service) -> None:
    """With B out of the way, C is reached over the weak edge only."""
    answer = await _recall(cairn, filter={"types": ["Event", "DataSource"]}, limit=200)
    (c,) = [one for one in answer["memories"] if one["memory"]["id"] == "C"]
    assert [step["memory"]["id"] for step in c["via"]["steps"]] == ["A", "C"]


async def test_weak_edges_can_be_left_out(cairn: Service) -> None:
    """minWeight: no edge below it is walked."""
    answer = await _recall(cairn, minWeight=0.5, limit=200)
    assert not {one["memory"]["id"] for one in answer["memories"] if one["via"]} & {"WEAK"}
    walked = {step["edge"]["id"] for one in answer["memories"] if one["via"] for step in one["via"]["steps"][1:]}
    assert "AB" in walked and not walked & {"AC", "AW", "AZ"}


async def test_only_what_was_known_then(cairn: Service) -> None:
    """asOf: no memory, no edge and no lesson that is younger."""
    then = await _recall(cairn, asOf="2025-03-03T12:00:00Z", limit=200)
    by_id = {one["memory"]["id"]: one for one in then["memories"]}
    assert "LATE" not in by_id and by_id["B"]["via"] and then["lessons"] == []
    assert not any(one["via"] for id, one in by_id.items() if id in {"C", "WEAK", "P"})
    now = await _recall(cairn, limit=200)
    assert "LATE" in _ids(now) and now["lessons"]


async def test_what_was_there_then_is_told_in_todays_words(cairn: Service) -> None:
    """asOf goes by when a memory was ingested and a lesson recorded; what was changed later is there, as it is now."""
    await cairn.remember(
        memories=[{"event": {"id": "OB", "text": "Obelisk of Wexcombe: fallen.", "ingestionTime": "2025-01-01T00:00:00Z"}}],
        lessons=[{"rbId": "71", "keyLesson": "Mind old obelisks.", "contextToPrefer": "An obelisk.", "namespace": "ob"}],
    )  # fmt: skip
    recorded = (await cairn.ask('{ lesson(rbId: "71") { createdAt } }'))["lesson"]["createdAt"]
    await cairn.ask(
        """mutation { updateMemory(id: "OB", patch: {text: "Obelisk of Wexcombe: mended."}) { id }
          updateLesson(rbId: "71", patch: {keyLesson: "Mind new obelisks."}) { rbId } }"""
    )
    for moment, lessons in (("2025-02-01T00:00:00Z", []), (recorded, ["Mind new obelisks."])):
        then = await _recall(cairn, "obelisk of Wexcombe", asOf=moment, namespace="ob", limit=1)
        assert [one["memory"]["text"] for one in then["memories"]] == ["Obelisk of Wexcombe: mended."]
        assert [one["lesson"]["keyLesson"] for one in then["lessons"] if one["lesson"]["rbId"] == "71"] == lessons
    before = await _recall(cairn, "obelisk of Wexcombe", asOf="2024-12-31T00:00:00Z", limit=200)
    assert "OB" not in _ids(before)
    await cairn.ask('mutation { deleteMemory(id: "OB") { id } deleteLesson(rbId: "71") { id } }')


async def test_tags_reorder_and_exclude_nothing(cairn: Service) -> None:
    """A tag of the question raises what carries it; one that nobody uses changes nothing."""
    plain, tagged = await _recall(cairn, limit=200), await _recall(cairn, limit=200, tags=["wages"])
    assert set(_ids(plain)) == set(_ids(tagged))
    before, after = ({one["memory"]["id"]: one["score"] for one in answer["memories"]} for answer in (plain, tagged))
    assert after["C"] > before["C"] and after["P"] == pytest.approx(before["P"], abs=0.05)
    assert _ids(plain).index("LATE") < _ids(plain).index("P")
    styled = _ids(await _recall(cairn, limit=200, tags=["style"]))
    assert styled.index("P") < styled.index("LATE")
    assert _ids(await _recall(cairn, limit=200, tags=["nobody"])) == _ids(plain)


async def test_same_question_same_answer(cairn: Service) -> None:
    """In the same order with the same scores, every time, also when nothing is kept from before."""
    first = await _recall(cairn, limit=100)
    for _ in range(3):
        again = await _recall(cairn, limit=100)
        assert (again["memories"], again["paths"], again["context"]) == (
            first["memories"], first["paths"], first["context"],
        )  # fmt: skip
        assert again["id"] != first["id"]
        taught = [[(one["lesson"], one["via"]) for one in answer["lessons"]] for answer in (first, again)]
        assert taught[0] == taught[1] != []
    own, asked = cairn.cairn, RecallQuery(query=QUESTION, limit=100)
    new = Recall(own.graph, own.sync, own.search, own.offers, WordCache())
    cold, warm = await new.recall(asked), await own.recall.recall(asked)
    assert [(one.memory.id, one.score, one.why) for one in cold.memories] == [
        (one.memory.id, one.score, one.why) for one in warm.memories
    ]
    assert [path.text for path in cold.paths] == [path.text for path in warm.paths]


async def test_many_edges_are_looked_through_in_a_thread(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same answer as few of them."""
    few = await _recall(cairn, limit=100)
    monkeypatch.setattr(bank.answer, "MANY_WAYS", 0)
    many = await _recall(cairn, limit=100)
    assert many["paths"] and (many["memories"], many["paths"]) == (few["memories"], few["paths"])


async def test_lessons_come_with_the_memories_that_led_to_them(cairn: Service) -> None:
    """One found by words, one that only a recalled memory points at; outcome, confidence and namespace hold for both."""
    lessons = {one["lesson"]["rbId"]: one for one in (await _recall(cairn))["lessons"]}
    assert set(lessons) == {"1", "2"} and lessons["2"]["via"] == ["B"] and "B" in lessons["1"]["via"]
    for one in lessons.values():
        factors = 0.4 * one["semantic"] + 0.3 * one["reliability"] + 0.2 * one["recency"] + 0.1 * one["diversity"]
        assert one["score"] == pytest.approx(factors)
    for wanted, left in (
        ({"outcome": "FAILURE"}, ["2"]),
        ({"minConfidence": 0.9}, []),
        ({"namespace": "ops/a"}, ["1"]),
    ):
        assert [one["lesson"]["rbId"] for one in (await _recall(cairn, **wanted))["lessons"]] == left
    assert (await _recall(cairn, lessonLimit=0))["lessons"] == []
    assert 'avoid: "Do not blame the weather."' in (await _recall(cairn))["context"]


async def test_the_context_leaves_out_lessons_that_do_not_apply(cairn: Service) -> None:
    """A search always finds the nearest lessons; a prompt gets those that have to do with the question."""
    answer = await _recall(cairn, "xylophone zebra", filter={"convId": "nobody"})
    assert answer["lessons"] and (answer["context"], answer["tokens"]) == ("", 0)


async def test_a_lesson_seeds_the_memories_it_was_learnt_from(cairn: Service) -> None:
    """TAUGHT has nothing to do with the question but for the lesson that fits it."""
    answer = await _recall(cairn, limit=60)
    (taught,) = [one for one in answer["memories"] if one["memory"]["id"] == "TAUGHT"]
    assert "Lesson 1 was learnt from it." in taught["why"]


async def test_nothing_found_is_an_empty_answer(cairn: Service) -> None:
    """A filter that nothing passes: no memories, no paths, no error."""
    for filter in ({"tags": ["nobody uses this"]}, {"types": []}):
        answer = await _recall(cairn, filter=filter, namespace="elsewhere")
        assert (answer["memories"], answer["paths"], answer["lessons"]) == ([], [], [])
        assert (answer["context"], answer["tokens"]) == ("", 0)


@pytest.mark.parametrize("query", ["the of and", "?!", "부산항은 왜 닫혔습니까", "Pourquoi le port a-t-il fermé ?", "harbour " * 1_250, "x" * 10_000, " ".join(f"word{n}" for n in range(1_200))])  # fmt: skip
async def test_odd_questions_are_answered(cairn: Service, query: str) -> None:
    """Stop words only, signs, other languages, 10,000 characters."""
    assert len((await _recall(cairn, query))["memories"]) == 10


@pytest.mark.parametrize(
    "query",
    [
        "Warum wurde der Hafen von Busan geschlossen, harbour of Busan: closed in March?",
        "Pourquoi le « harbour of Busan » est-il « closed in March » ?",
        "부산항은 왜 닫혔습니까? Harbour of Busan, closed in March.",
        "So much was said that day about one thing and another. " * 180 + "Harbour of Busan: closed in March?",
    ],
    ids=["German", "French", "Korean", "10,000 characters"],
)
async def test_the_right_memory_is_found_by_what_the_question_names(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """Whatever else the question says, in whichever language and at whatever length: with as many round trips to the stores
    as a short one takes."""
    graph, client = cairn.cairn.graph, cairn.cairn.vectors.milvus.client
    read, search = graph.read, client.search
    asked: list[str] = []

    async def reading(name: str, /, **parameters: Any) -> Any:
        asked.append(name)
        return await read(name, **parameters)

    async def searching(*what: Any, **how: Any) -> Any:
        asked.append(how["anns_field"])
        return await search(*what, **how)

    own = {"recall_edges", "recall_memories", "memories_and_edges", "dense_vector", "sparse_vector"}
    counts = []
    for one in (QUESTION, query):
        await _recall(cairn, one)  # edges and words are kept from here on
        asked.clear()
        with monkeypatch.context() as counting:
            counting.setattr(graph, "read", reading)
            counting.setattr(client, "search", searching)
            answer = await _recall(cairn, one)
        counts.append(len([name for name in asked if name in own]))
    assert _ids(answer)[0] == "A" and "B" in _ids(answer)
    assert counts[1] <= counts[0] + 1  # one more where the walk meets what it has not met before


async def test_what_cannot_be_asked_is_named(cairn: Service) -> None:
    """Every wrong field at once."""
    with pytest.raises(Refused) as refused:
        await _recall(cairn, " ", hops=6, limit=0, minWeight=2, pathLimit=-1, lessonLimit=999, tokenBudget=-1, minConfidence=-1, filter={"convId": ""})  # fmt: skip
    assert refused.value.code == "BAD_USER_INPUT"
    assert set(refused.value.fields) == {"query", "hops", "limit", "minWeight", "pathLimit", "lessonLimit", "tokenBudget", "minConfidence", "filter.convId"}  # fmt: skip


async def test_what_was_deleted_or_changed_is_so_at_once(cairn: Service) -> None:
    """A deleted memory never appears, nor a path over it; a changed text is found by its new words."""
    await cairn.remember(
        memories=[{"event": {"id": "GONE", "text": "Lighthouse of Busan: dark in May."}}, {"event": {"id": "BEHIND", "text": "A bulb."}}],
        edges=[{"id": "GB", "source": "GONE", "target": "BEHIND", "text": "It broke.", "weight": 0.9}],
    )  # fmt: skip
    question = "Why was the lighthouse of Busan dark?"
    assert {"GONE", "BEHIND"} <= set(_ids(await _recall(cairn, question)))
    await cairn.ask('mutation { updateMemory(id: "GONE", patch: {text: "Beacon of Ulsan: dim in May."}) { id } }')
    assert _ids(await _recall(cairn, "the dim beacon of Ulsan"))[0] == "GONE"
    await cairn.ask('mutation { deleteMemory(id: "GONE") { deleted } }')
    answer = await _recall(cairn, question, limit=200)
    assert "GONE" not in _ids(answer)
    assert not [one for one in answer["memories"] if one["memory"]["id"] == "BEHIND" and one["via"]]


async def test_the_sentence_of_an_edge_says_what_its_memories_do_not(cairn: Service) -> None:
    """Of memories that the search finds alike, those come first between which an edge says what was asked; a sentence
    that says something else changes nothing."""
    firms = [{"dataSource": {"id": f"SE{n}", "text": f"Quarry {name}: a company in the valley.", "tags": ["quarry"]}} for n, name in enumerate(("Alda", "Brom", "Cald", "Dorn", "Erle", "Fenn"))]  # fmt: skip
    edges = [
        {"id": "SE-bought", "source": "SE5", "target": "SE4", "text": "Fenn was bought by Erle after the flood.", "weight": 0.3},
        {"id": "SE-other", "source": "SE0", "target": "SE1", "text": "Both dig for slate.", "weight": 0.3},
    ]  # fmt: skip
    asked = {"query": "Which quarry company was bought after a flood?", "filter": {"tags": ["quarry"]}, "limit": 6}
    await cairn.remember(memories=firms, edges=edges[1:])
    before = [one["memory"]["id"] for one in (await _recall(cairn, **asked))["memories"]]
    assert set(before[:2]) != {"SE4", "SE5"}
    await cairn.remember(edges=edges[:1])
    answer = (await _recall(cairn, **asked))["memories"]
    assert {one["memory"]["id"] for one in answer[:2]} == {"SE4", "SE5"} and len(answer) == 6


async def test_what_stands_in_one_sentence_belongs_together(cairn: Service) -> None:
    """Two memories of the same words, alike in meaning: the one that says it in one sentence comes first."""
    said = "Report: the pump of hall nine was stopped for the audit. Rain came in May. Trucks wait at a gate."
    apart = "Report: the pump came in May. Rain stopped trucks. Hall nine was at the gate. Wait for an audit."
    others = ("Visitors liked the garden.", "The lift was painted.", "A truck was late in June.", "The gate is new.")
    await cairn.remember(memories=[{"dataSource": {"id": f"OS{n}", "text": text, "tags": ["pump"]}} for n, text in enumerate(others)])  # fmt: skip
    asked = {"query": "Was the pump of hall nine stopped for the audit?", "filter": {"tags": ["pump"]}, "limit": 2}
    await cairn.remember(memories=[{"dataSource": {"id": "OS-a", "text": apart, "tags": ["pump"]}}, {"dataSource": {"id": "OS-b", "text": said, "tags": ["pump"]}}])  # fmt: skip
    assert _ids(await _recall(cairn, **asked)) == ["OS-b", "OS-a"]


ENDS = "steps { edge { id weight source { id } target { id } } energy }"


async def test_an_answer_stands_though_its_memories_are_deleted_meanwhile(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends of an edge that an answer shows are those it was read with: nobody looks for them again."""

    async def gone(ids: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(cairn.cairn.bank.memories, "by_id", gone)
    answer = (await cairn.ask(f'{{ recall(input: {{query: "{QUESTION}"}}) {{ paths {{ {ENDS} }} }} }}'))["recall"]
    edges = [step["edge"] for path in answer["paths"] for step in path["steps"] if step["edge"]]
    assert {"A", "B"} in [{edge["source"]["id"], edge["target"]["id"]} for edge in edges]
    traces = (await cairn.ask(f'{{ provenance(rbId: "1") {{ traces {{ path {{ {ENDS} }} }} }} }}'))["provenance"][
        "traces"
    ]
    assert any(step["edge"] and step["edge"]["source"]["id"] for trace in traces for step in trace["path"]["steps"])
    told = await cairn.ask('{ conversation(convId: "c1") { edges { source { id } } } }')
    assert told["conversation"]["edges"][0]["source"]["id"]


async def test_a_path_runs_over_edges_as_they_are_shown(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edge that loses its weight between the walk and the telling is on no path; what it led to says how else it is
    there."""
    by_ids = Memories.by_ids
    weigh = 'mutation($weight: Float!) { updateEdge(id: "AB", weight: $weight) { id } }'

    async def meanwhile(self: Memories, *given: Any) -> Any:
        await cairn.ask(weigh, weight=0)
        return await by_ids(self, *given)

    asked = {
        "recall": f'{{ recall(input: {{query: "{QUESTION}"}}) {{ paths {{ {ENDS} }} memories {{ why memory {{ id }} }} }} }}',
        "provenance": f'{{ provenance(rbId: "1") {{ traces {{ path {{ {ENDS} }} }} }} }}',
        "paths": f'{{ paths(source: "A", target: "B") {{ {ENDS} }} }}',
    }
    try:
        for name, query in asked.items():
            shown = str((await cairn.ask(query))[name])
            assert "'AB'" in shown
            with monkeypatch.context() as patch:
                patch.setattr(Memories, "by_ids", meanwhile)
                shown = str((await cairn.ask(query))[name])
            assert "'AB'" not in shown
            await cairn.ask(weigh, weight=0.9)
    finally:
        await cairn.ask(weigh, weight=0.9)


async def test_what_is_named_is_named_in_one_piece(cairn: Service) -> None:
    """Words of a name that stand apart name nothing."""
    await cairn.remember(
        conv_id="cross",
        memories=[
            {"event": {"id": "NM1", "text": "The blood donations were organised by the Red Cross in Leeds."}},
            {"event": {"id": "NM2", "text": "Cross the road only at a red light."}},
            {"event": {"id": "NM3", "text": "Red Cross: a relief organisation."}},
            {"userRequest": {"id": "NM4", "text": "Who organised the blood donations?"}},
        ],
    )
    answer = await _recall(cairn, "Who organised the blood donations?", filter={"convId": "cross"})
    why = {one["memory"]["id"]: one["why"] for one in answer["memories"]}
    assert 'Named in NM1 ("Red Cross")' in why["NM3"]
    assert "Named" not in why["NM2"]


async def test_a_required_lesson_names_the_memories_that_led_to_it(cairn: Service) -> None:
    """Also where it comes along with another and took no place of its own."""
    await cairn.remember(
        conv_id="req",
        memories=[{"event": {"id": f"RQ{n}", "text": f"Kestrel invoices came late, case {n}."}} for n in (1, 2)],
        lessons=[
            {"rbId": "31", "keyLesson": "Ask Kestrel.", "contextToPrefer": "Kestrel invoices are late.", "linkNodes": ["RQ1"], "namespace": "rq/a"},
            {"rbId": "32", "keyLesson": "Know whom to ask.", "contextToPrefer": "Somebody is asked.", "linkNodes": ["RQ1", "RQ2"], "namespace": "rq/a"},
        ],
    )  # fmt: skip
    await cairn.ask('mutation { connectLessons(source: "31", target: "32", type: REQUIRES) { type } }')
    answer = await _recall(cairn, "Kestrel invoices late", filter={"convId": "req"}, namespace="rq/a", lessonLimit=1)
    via = {one["lesson"]["rbId"]: one["via"] for one in answer["lessons"]}
    assert set(via["32"]) == {"RQ1", "RQ2"}


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_no_walk_loses_what_plain_search_finds_first(cairn: Service, limit: int) -> None:
    """However few memories are wanted, and though an edge says the question where its memories do not."""
    await cairn.remember(
        conv_id="first",
        memories=[
            {"event": {"id": "TL0", "text": "Acme pays invoices within 30 days."}},
            {"event": {"id": "TL1", "text": "Acme pays invoices late in December because the finance team is on leave."}},
            {"event": {"id": "TL2", "text": "Globex pays invoices within 60 days, and Acme within 30 days, says the invoices report."}},
            {"event": {"id": "TL3", "text": "The finance team of Acme is in Leeds."}},
            {"event": {"id": "TL4", "text": "Invoices from Globex are sent by mail."}},
        ],
        edges=[
            {"id": "TL13", "source": "TL1", "target": "TL3", "weight": 0.9, "text": "The finance team pays the invoices within 30 days."},
            {"id": "TL24", "source": "TL2", "target": "TL4", "weight": 0.9, "text": "Acme pays invoices within 30 days."},
        ],
    )  # fmt: skip
    plain, *walked = [
        [one["memory"]["id"] for one in (await _recall(cairn, "Acme invoices 30 days", hops=hops, limit=limit, filter={"convId": "first"}))["memories"]]
        for hops in (0, 1, 3)
    ]  # fmt: skip
    assert all(len(ids) == limit and plain[0] in ids for ids in walked)
