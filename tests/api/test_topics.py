"""Edges nobody wrote: what Cairn joins on request, what it says of it, and what it leaves alone."""

from typing import Any

import pytest

from api import cli
from api.settings import Settings
from tests.ports import free_port
from tests.service import Service

REMEMBER = """mutation($input: RememberInput!) { remember(input: $input) { created updated unchanged
  edges { id text weight band machineMade source { id } target { id } } } }"""
EDGES = """query($id: ID!) { memory(id: $id) { edges(first: 100) { nodes { id text weight machineMade source { id } target { id } } } } }"""


async def _remember(cairn: Service, *memories: tuple[str, str, list[str]], link: bool = True, **more: Any) -> dict[str, Any]:  # fmt: skip
    given = [{"event": {"id": id, "text": text, "tags": tags}} for id, text, tags in memories]
    data = await cairn.ask(REMEMBER, input={"convId": "c", "memories": given, "linkTopics": link, **more})
    answer: dict[str, Any] = data["remember"]
    return answer


async def _edges(cairn: Service, id: str) -> list[dict[str, Any]]:
    return (await cairn.ask(EDGES, id=id))["memory"]["edges"]["nodes"]  # type: ignore[no-any-return]


def _ends(edges: list[dict[str, Any]]) -> set[frozenset[str]]:
    return {frozenset((edge["source"]["id"], edge["target"]["id"])) for edge in edges}


async def test_what_shares_a_rare_name_is_joined(cairn: Service) -> None:
    """A weak edge from the new memory, with a sentence that is true, marked; in the payload and in the graph."""
    await _remember(cairn, ("A1", "Dealers ask for the Zephyrion more often.", []), ("A2", "It rained in spring.", []), link=False)  # fmt: skip
    assert await _edges(cairn, "A1") == []  # off by default
    answer = await _remember(cairn, ("A3", "Production of the Zephyrion was stopped for a week.", []))
    (edge,) = answer["edges"]
    assert (edge["source"]["id"], edge["target"]["id"], edge["machineMade"], edge["band"]) == (
        "A3",
        "A1",
        True,
        "TOPICAL",
    )
    assert edge["text"] == "Both speak of Zephyrion: “Production of the Zephyrion was stopped for a week” and “Dealers ask for the Zephyrion more often”."  # fmt: skip
    assert 0.25 <= edge["weight"] <= 0.45 and answer["created"] == 2
    assert [one["id"] for one in await _edges(cairn, "A1")] == [edge["id"]]
    again = await _remember(cairn, ("A3", "Production of the Zephyrion was stopped for a week.", []))
    assert again["edges"] == [] and (again["created"], again["unchanged"]) == (0, 1)
    assert len(await _edges(cairn, "A3")) == 1


async def test_what_shares_a_rare_tag_is_joined(cairn: Service) -> None:
    """Whole tags count, whatever signs are in them, and the more is shared the heavier is the edge."""
    tag = 'q"uarter\\ly OR * (x)'
    await _remember(cairn, ("B1", "One thing.", [tag]), ("B2", "Two others.", ["quarter"]), link=False)
    answer = await _remember(cairn, ("B3", "Nothing alike.", [tag]))
    assert (
        _ends(answer["edges"]) == {frozenset(("B3", "B1"))} and f"Both are tagged {tag}" in answer["edges"][0]["text"]
    )
    more = await _remember(cairn, ("B4", "There Fjordlund and Quibbex met.", []), ("B5", "Then Quibbex left Fjordlund.", []))  # fmt: skip
    assert more["edges"][0]["weight"] > answer["edges"][0]["weight"] == 0.25


async def test_nothing_is_joined_unless_somebody_asks(cairn: Service) -> None:
    """What shares a rare name stays apart where the call does not say `linkTopics`."""
    for number in (1, 2):
        await cairn.remember(memories=[{"event": {"id": f"Q{number}", "text": f"In Quillhaven on day {number}."}}])
    assert await _edges(cairn, "Q1") == await _edges(cairn, "Q2") == []


async def test_however_much_is_shared_the_edge_stays_weak(cairn: Service) -> None:
    names = "Aberquist Bolvanter Cridmoor Dunwhistle Eskerly Farrowgate Glimhold Hestwick"
    await _remember(cairn, ("W1", f"They met {', '.join(names.split())}.", []), link=False)
    (edge,) = (await _remember(cairn, ("W2", f"We saw {', '.join(names.split())}.", [])))["edges"]
    assert edge["weight"] == 0.45


async def test_what_is_frequent_joins_nothing(cairn: Service) -> None:
    """A word, a name or a tag that more than 20 memories have; one common word that is no name."""
    await _remember(cairn, *((f"C{n:02}", f"Marlowe wrote page {n}.", ["novel"]) for n in range(25)), link=False)
    answer = await _remember(cairn, ("C99", "Marlowe rested.", ["novel"]), ("C98", "a gravel path", []), ("C97", "some gravel", []))  # fmt: skip
    assert answer["edges"] == []


async def test_a_capital_at_the_beginning_of_a_sentence_makes_no_name(cairn: Service) -> None:
    """Not even where it is one in the other text, since it may be a word like another here ("Rust on the gate"); nor do
    short words of another language join anything. What follows it, or the word itself, may show that it is a name."""
    answer = await _remember(
        cairn,
        ("J1", "However, the effect vanished.", []),
        ("J2", "However it was, nobody knew!", []),
        ("J3", "Die Reichweite sinkt bei Frost. Der Wind ist kalt.", []),
        ("J4", "Die Messe beginnt, bei Regen im Saal. Der Eintritt ist frei.", []),
        ("J5", "Please list all, says J. Olsen.", []),
        ("J6", "Please wait for J. Brandt.", []),
        ("J7", "Vexley was late.", []),
        ("J8", "A letter from Vexley came.", []),
        ("J13", "Then Vexley left.", []),
        ("J9", "Kilnmoor Abbey burnt.", []),
        ("J10", "Kilnmoor: a ruin.", []),
        ("J11", "QX7 broke.", []),
        ("J12", "QX7 was mended.", []),
    )
    assert _ends(answer["edges"]) == {frozenset(pair) for pair in (("J8", "J13"), ("J9", "J10"), ("J11", "J12"))}
    assert any(edge["text"].startswith("Both speak of Vexley: ") for edge in answer["edges"])


async def test_a_handful_at_most_and_never_beside_an_agents_edge(cairn: Service) -> None:
    """No memory has more than five, at whichever end; two that an agent has joined are not joined again; where an agent
    joins two later, what nobody wrote gives way."""
    await _remember(cairn, ("D0", "In Thornbury, old.", []), ("D1", "In Thornbury, small.", []), link=False)
    written = {"id": "DD", "source": "D0", "target": "D1", "text": "The same town.", "weight": 0.9}
    answer = await _remember(
        cairn, *((f"D{n}", f"In Thornbury, {'abcdefghijklmn'[n]}.", []) for n in range(14)), edges=[written]
    )
    edges = {edge["id"]: edge for n in range(14) for edge in await _edges(cairn, f"D{n}")}
    assert [edge["id"] for edge in edges.values() if _ends([edge]) == {frozenset(("D0", "D1"))}] == ["DD"]
    assert len(answer["edges"]) == len(edges) > 14
    for n in range(14):
        assert sum(edge["machineMade"] for edge in await _edges(cairn, f"D{n}")) <= 5
    before = await _edges(cairn, "D2")
    made = next(edge for edge in before if edge["machineMade"])
    ends = {"source": made["target"]["id"], "target": made["source"]["id"]}
    later = {"id": "DL", **ends, "text": "One followed the other.", "weight": 0.8}
    for _ in range(2):
        await _remember(cairn, edges=[later])
        after = await _edges(cairn, "D2")
        assert {edge["id"] for edge in after} == {edge["id"] for edge in before} - {made["id"]} | {"DL"}


async def test_a_changed_memory_loses_them_and_an_edited_edge_is_the_agents(cairn: Service) -> None:
    """What they said may be true no more; what an agent rewrites is no longer machine-made."""
    await _remember(cairn, ("E1", "Wexcombe: a mill.", []), ("E2", "Wexcombe: a weir.", []), ("E3", "Wexcombe: a fair.", []))  # fmt: skip
    edges = {frozenset((e["source"]["id"], e["target"]["id"])): e["id"] for e in await _edges(cairn, "E1")}
    mine = edges[frozenset(("E1", "E2"))]
    changed = await cairn.ask('mutation($id: ID!) { updateEdge(id: $id, text: "They share a stream.") { machineMade } }', id=mine)  # fmt: skip
    assert changed["updateEdge"]["machineMade"] is False
    await cairn.ask('mutation { updateMemory(id: "E1", patch: {text: "Elsewhere: a mill."}) { id } }')
    assert [edge["id"] for edge in await _edges(cairn, "E1")] == [mine]
    await _remember(cairn, ("E3", "Elsewhere: a fair.", []), link=False)
    assert [edge for edge in await _edges(cairn, "E3") if edge["machineMade"]] == []


async def test_a_refused_call_makes_none(cairn: Service) -> None:
    """All of a call is stored, or none of it."""
    with pytest.raises(Exception, match="no memory has the id"):
        await _remember(cairn, ("G1", "Osterwyn wins.", []), ("G2", "Osterwyn loses.", []), edges=[{"source": "G1", "target": "NONE", "text": "x", "weight": 1}])  # fmt: skip
    assert (await cairn.ask('{ memory(id: "G1") { id } }'))["memory"] is None


async def test_the_command_links_a_store_that_exists(
    cairn: Service,
    settings: Settings,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`make link`: every memory that is there; a second time it makes nothing."""
    await _remember(cairn, ("H1", "Ravensholt: north wing.", []), ("H2", "Ravensholt: south wing.", []), link=False)
    own = settings.model_copy(update={"data": tmp_path, "port": free_port()})
    monkeypatch.setattr(cli, "stop_on_signals", lambda: None)
    await cli.link(own)
    assert _ends(await _edges(cairn, "H1")) == {frozenset(("H1", "H2"))}
    capsys.readouterr()
    await cli.link(own)
    assert capsys.readouterr().err.splitlines()[-1].startswith("0 edges were made between ")


async def test_a_name_is_the_same_only_as_it_is_spelt(cairn: Service) -> None:
    """Words of one stem are not one name: nobody speaks of Wales who speaks of a wale."""
    answer = await _remember(
        cairn,
        ("SP1", "We tested the hull in Wales last spring.", []),
        ("SP2", "The plank along a ship is called Wale there.", []),
        ("SP3", "He had bad luck with the Experiment.", []),
        ("SP4", "She gathered much Experience.", []),
        ("SP5", "A storm hit Wales.", []),
    )
    assert _ends(answer["edges"]) == {frozenset(("SP1", "SP5"))}


WRITTEN = pytest.mark.parametrize(("turned", "calls"), [(False, 1), (False, 2), (True, 1), (True, 2)])


async def _said(cairn: Service, texts: tuple[str, str], turned: bool, calls: int) -> list[str]:
    """What edges say of two memories alone, in this order or turned, in one call or in two."""
    given: list[tuple[str, str, list[str]]] = [(f"TW{n}", text, []) for n, text in enumerate(texts)]
    given = given[::-1] if turned else given
    answers = [await _remember(cairn, *part) for part in ([given] if calls == 1 else [given[:1], given[1:]])]
    for id, *_ in given:
        await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { id } }", id=id)
    return [edge["text"].split(":")[0] for answer in answers for edge in answer["edges"]]


@WRITTEN
async def test_a_word_like_a_name_or_of_the_same_stem_joins_nothing(cairn: Service, turned: bool, calls: int) -> None:
    """Whichever of the two is stored first, in one call or in two: an edge would say what is not true."""
    for texts in (
        ("Please tell us more about cooking rice.", "The US economy grew by two percent."),
        ("It may rain on the picnic.", "Sales fell in May by a third."),
        ("Where did they go yesterday?", "We use Go for services."),
        ("There was rust on the old gate.", "The service is written in Rust."),
        ("He left a mark on the wall.", "We had dinner with Mark."),
        ("We roasted a turkey.", "They flew to Turkey."),
        ("The experiment was informative.", "His experience of information was bad."),
        ("a generous market of news generals", "the new general marketing"),
    ):
        assert await _said(cairn, texts, turned, calls) == [], texts


@WRITTEN
async def test_what_both_say_is_told_in_whichever_order(cairn: Service, turned: bool, calls: int) -> None:
    """One of a thing and many of it are the same word, and a code in small letters is the same code."""
    for said, texts in {
        "Both speak of delivery and lighthouse": ("The lighthouse waits for deliveries.", "A delivery left both lighthouses."),
        "Both speak of KX94": ("Dealers ask for the KX94.", "when does the kx94 come?"),
        "Both speak of Turkey": ("They flew to Turkey.", "Is Turkey as far as it was?"),
    }.items():  # fmt: skip
        assert await _said(cairn, texts, turned, calls) == [said], texts


async def test_what_does_not_change_what_a_memory_says_keeps_its_edges(cairn: Service) -> None:
    """A status, a conversation or a time that is written anew leaves the edges that nobody wrote; another text takes them."""
    await _remember(cairn, ("K1", "The Ottervane leaks.", []), link=False)
    action = {"id": "K2", "text": "Took the Ottervane apart.", "status": "started"}
    made = await cairn.ask(REMEMBER, input={"convId": "c", "memories": [{"agentAction": action}], "linkTopics": True})
    assert len(made["remember"]["edges"]) == 1
    done = {**action, "status": "done", "ingestionTime": "2025-01-01T00:00:00Z"}
    again = await cairn.ask(REMEMBER, input={"convId": "other", "memories": [{"agentAction": done}]})
    assert again["remember"]["updated"] == 1
    assert [edge["id"] for edge in await _edges(cairn, "K2")] == [made["remember"]["edges"][0]["id"]]
    await cairn.ask(REMEMBER, input={"convId": "other", "memories": [{"agentAction": {**done, "text": "Nothing."}}]})
    assert await _edges(cairn, "K2") == []
