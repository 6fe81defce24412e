"""What is no GraphQL request is a 4xx, what asks for too much is LIMIT_EXCEEDED, and the service goes on."""

import itertools
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.schema import KEPT_QUERY, ParsedShort
from tests.hostile.asking import refused
from tests.service import Service

VERSION = "{ status { version } }"
DEEP = 100_000


def body(query: Any, **more: Any) -> bytes:
    return json.dumps({"query": query, **more}).encode()


@pytest.fixture(autouse=True)
async def afterwards(cairn: Service) -> AsyncIterator[None]:
    """Whatever a test sends, the service answers the next request as if nothing had been."""
    yield
    assert (await cairn.http.post("/graphql", content=body(VERSION))).json()["data"]["status"]["version"]


NO_REQUESTS: dict[str, bytes] = {
    "not JSON": b"query { status { version } }",
    "half of JSON": b'{"query": "{ status',
    "two of JSON": body(VERSION) + body(VERSION),
    "not UTF-8": b'{"query": "\xff\xfe"}',
    "Latin-1": '{"query": "é"}'.encode("latin-1"),
    "UTF-16": json.dumps({"query": VERSION}).encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + body(VERSION),
    "a surrogate as bytes": b'{"query": "\xed\xa0\x80"}',
    "null": b"null",
    "a list": b"[]",
    "a batch": b"[" + body(VERSION) + b"]",
    "a number": b"1",
    "text": b'"{ status { version } }"',
    "empty": b"",
    "white": b" \n",
    "NUL": b"\0",
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep and open": b'{"a":[' * DEEP,
    "deep variables": b'{"query": "{ status { version } }", "variables": {"a":' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "a number of 5,000 digits": b'{"query": "{ status { version } }", "variables": {"a": ' + b"1" * 5_000 + b"}}",
    "query missing": b"{}",
    "query null": body(None),
    "query a number": body(5),
    "query a list": body([VERSION]),
    "query blank": body(" "),
    "variables a list": body(VERSION, variables=[]),
    "variables text": body(VERSION, variables="{}"),
    "variables a number": body(VERSION, variables=0),
    "operationName a number": body(VERSION, operationName=1),
    "operationName unknown": body(VERSION, operationName="nobody"),
    "operationName half a character": body(VERSION, operationName="\ud800"),
    "no operation": body("fragment F on Query { status { version } }"),
    "a schema": body("type A { b: Int }"),
    "only a comment": body("# nothing"),
    "no GraphQL": body("SELECT 1"),
    "half a character": body("{ status { version } } \ud800"),
    "open braces": body("{" * DEEP),
    "nested braces": body("{a" * DEEP + "}" * DEEP),
    "nested fragments": body("{" + "... on Query {" * 10_000 + "status { version }" + "}" * 10_000 + "}"),
    "nested lists": body("{ memories(filter: " + "[" * 25_000 + "]" * 25_000 + ") { nodes { id } } }"),
    "nested objects": body("{ memories(filter: " + "{a:" * 15_000 + "1" + "}" * 15_000 + ") { nodes { id } } }"),
    "nested types": body("query($a: " + "[" * 25_000 + "Int" + "]" * 25_000 + ") { status { version } }"),
    "many tokens": body("{ status { " + "version " * 70_000 + "} }"),
    "the same field 1,500 times": body("{ status { " + "version " * 1_500 + "} }"),
}


@pytest.mark.parametrize("name", NO_REQUESTS)
async def test_a_body_that_is_no_request(cairn: Service, name: str) -> None:
    """A 400 with a code and a message, as JSON."""
    response = await cairn.http.post("/graphql", content=NO_REQUESTS[name])
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert error["message"]
    assert error["extensions"]["code"] in ("BAD_USER_INPUT", "LIMIT_EXCEEDED")


async def test_variables_may_nest_and_are_refused_all_the_same(cairn: Service) -> None:
    """Variables 5,000 levels deep, which some Pythons read and some do not, are the caller's fault."""
    query = "mutation($x: RememberInput!) { remember(input: $x) { created } }"
    for levels in (500, 5_000):
        nested = '{"a":' * levels + "1" + "}" * levels
        content = f'{{"query": {json.dumps(query)}, "variables": {{"x": {nested}}}}}'
        response = await cairn.http.post("/graphql", content=content)
        assert response.status_code in (200, 400)
        assert response.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_a_body_that_is_too_large(cairn: Service) -> None:
    """More than 8 MB is 413, whether its length is declared or it comes in chunks; a little less is read."""
    limit = cairn.cairn.settings.max_body_bytes
    assert limit == 8_000_000
    padding = len(body(VERSION, variables={"a": ""}))
    exact = body(VERSION, variables={"a": "x" * (limit - padding)})
    assert len(exact) == limit
    response = await cairn.http.post("/graphql", content=exact)
    assert (response.status_code, "errors" in response.json()) == (200, False)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, limit, 100_000):
            yield exact[start : start + 100_000]
        yield b" "

    for content in (exact + b" ", chunks()):
        response = await cairn.http.post("/graphql", content=content)
        assert response.status_code == 413
        (error,) = response.json()["errors"]
        assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
        assert "CAIRN_MAX_BODY_BYTES" in error["message"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
async def test_another_method(cairn: Service, method: str) -> None:
    """/graphql is posted to, or looked at: anything else is 405; what HTTP has no such method for is not even read."""
    expected = 400 if method == "BREW" else 405
    assert (await cairn.http.request(method, "/graphql", content=body(VERSION))).status_code == expected


@pytest.mark.parametrize("path", ["/nothing", "/graphql/x", "/%00", "/%ff", "/..%2f..%2fetc/passwd", "/" + "x" * 5_000])
async def test_another_path(cairn: Service, path: str) -> None:
    """What is not there is 404."""
    assert (await cairn.http.get(path)).status_code == 404
    assert (await cairn.http.post(path, content=body(VERSION))).status_code == 404


async def test_half_a_character_in_a_refusal_is_still_json(cairn: Service) -> None:
    """A message that repeats a lone surrogate of the request is readable JSON in UTF-8."""
    query = "query($x: [MemoryType!]) { memories(filter: {types: $x}) { nodes { id } } }"
    error = await refused(cairn, query, x=["\ud800", "fine 🙂"])
    assert "\ud800" in str(error)
    assert "fine 🙂" in str(error)


async def test_a_long_id_is_not_repeated_at_every_problem(cairn: Service) -> None:
    """A refusal is not a hundred times the request."""
    wrong = {"userRequest": {"id": "x" * 100_000, "text": " ", "tags": [" "] * 100}}
    query = "mutation($x: RememberInput!) { remember(input: $x) { created } }"
    content = body(query, variables={"x": {"convId": "c", "memories": [wrong]}})
    response = await cairn.http.post("/graphql", content=content)
    assert len(response.content) < 50_000


# ---------------------------------------------------------------- queries that ask for too much


async def test_fragments_that_contain_themselves(cairn: Service) -> None:
    """A circle of fragments is refused, not walked."""
    for query in (
        "{ ...A } fragment A on Query { ...A }",
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
        '{ memory(id: "x") { ...A } } fragment A on Memory { edges { nodes { source { ...A } } } }',
    ):
        assert (await refused(cairn, query)).code == "BAD_USER_INPUT"


async def test_fragments_that_double(cairn: Service) -> None:
    """Forty fragments, each holding the next one twice, are measured once each, and answered or refused at once."""
    steps = " ".join(f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }}" for n in range(40))
    response = await cairn.http.post(
        "/graphql", content=body(f"{{ ...F0 }} {steps} fragment F40 on Query {{ status {{ version }} }}"), timeout=10
    )
    assert response.status_code in (200, 400)


async def test_levels_are_limited(cairn: Service) -> None:
    """Twenty levels of fields are answered, twenty-one are LIMIT_EXCEEDED; a fragment does not hide them."""

    def nested(levels: int, leaf: str = "id") -> str:
        steps = ["edges", "nodes", "source"]
        inner = leaf
        for level in reversed(range(levels - 2)):
            inner = f"{steps[level % 3]} {{ {inner} }}"
        return f'memory(id: "none") {{ {inner} }}'

    answer = await cairn.ask(f"{{ {nested(20)} }}")
    assert answer == {"memory": None}
    error = await refused(cairn, f"{{ {nested(23)} }}")
    assert error.code == "LIMIT_EXCEEDED"
    hidden = f"{{ {nested(17, '...F')} }} fragment F on Memory {{ lessons {{ sources {{ lessons {{ sources {{ id }} }} }} }} }}"
    assert (await refused(cairn, hidden)).code == "LIMIT_EXCEEDED"


async def test_introspection_does_not_explode(cairn: Service) -> None:
    """Types of fields of types of fields … are refused; what tools ask for is answered."""
    query = "{ __schema { types { " + "fields { type { " * 6 + "name" + " } }" * 6 + " } } }"
    assert (await refused(cairn, query)).code == "BAD_USER_INPUT"
    assert (await cairn.ask("{ __schema { queryType { fields { name type { name } } } } }"))["__schema"]


async def test_two_hundred_aliases(cairn: Service) -> None:
    """Two hundred lookups are one batch; two hundred large searches are more than one request may read."""
    lookups = " ".join(f'a{n}: memory(id: "none{n}") {{ id }}' for n in range(200))
    before = cairn.cairn.graph.round_trips
    assert set((await cairn.ask(f"{{ {lookups} }}")).values()) == {None}
    assert cairn.cairn.graph.round_trips - before <= 10  # one for all of them, and what the service does meanwhile
    searches = " ".join(f'a{n}: searchMemories(query: "x", limit: 200) {{ score }}' for n in range(200))
    pages = " ".join(f"a{n}: memories(first: 500) {{ nodes {{ id }} }}" for n in range(200))
    for query in (searches, pages):
        assert (await refused(cairn, f"{{ {query} }}")).code == "LIMIT_EXCEEDED"


async def star(cairn: Service, name: str, memories: int, edges: int) -> None:
    """Memories in a row, each joined to the next by many edges."""
    ids = [f"{name}{n}" for n in range(memories)]
    await cairn.remember(name, memories=[{"userRequest": {"id": one, "text": "x"}} for one in ids])
    pairs = [(source, target) for source, target in itertools.pairwise(ids) for _ in range(edges)]
    for start in range(0, len(pairs), 1_000):
        some = pairs[start : start + 1_000]
        await cairn.remember(edges=[{"source": a, "target": b, "text": "x", "weight": 0.5} for a, b in some])


async def test_a_request_reads_at_most_twenty_thousand_records(cairn: Service) -> None:
    """Nested pages that are read one by one end at the limit."""
    await star(cairn, "row", 6, 100)
    aliases = " ".join(
        f"a{n}: edges(first: {500 - n}) {{ nodes {{ id }} }}" for n in range(25)
    )  # twenty-five pages of the same edges: each is read
    error = await refused(cairn, f'{{ memories(filter: {{convId: "row"}}) {{ nodes {{ {aliases} }} }} }}')
    assert error.code == "LIMIT_EXCEEDED"
    assert "20,000" in str(error)


async def test_the_same_records_over_and_over_are_counted_too(cairn: Service) -> None:
    """Two memories and 28 edges, nested, are 28^3 records in the answer though few in the store: LIMIT_EXCEEDED."""
    await star(cairn, "pair", 2, 28)
    nested = "id"
    for _ in range(3):
        nested = f"edges(first: 100) {{ nodes {{ source {{ {nested} }} }} }}"
    error = await refused(cairn, f'{{ memory(id: "pair0") {{ {nested} }} }}')
    assert error.code == "LIMIT_EXCEEDED"


# ---------------------------------------------------------------- our own faults


async def test_an_internal_error_says_nothing_but_an_id(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What went wrong inside is in the log, under the id that the client gets, and nowhere in the answer."""

    async def broken(*_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(cairn.cairn.search, "memories", broken)
    with caplog.at_level(logging.ERROR, "cairn"):
        response = await cairn.http.post("/graphql", content=body('{ searchMemories(query: "x") { score } }'))
    assert "secret" not in response.text
    assert "RuntimeError" not in response.text
    (error,) = response.json()["errors"]
    assert set(error) == {"message", "extensions"}
    assert set(error["extensions"]) == {"code", "id"}
    assert error["extensions"]["code"] == "INTERNAL"
    (record,) = [one for one in caplog.records if one.name == "cairn" and error["extensions"]["id"] in one.getMessage()]
    assert record.exc_info is not None
    assert "secret" in str(record.exc_info[1])


async def test_an_internal_error_of_one_field_leaves_the_others(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault of one lookup is not the fault of the next."""

    async def broken(*_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(cairn.cairn.bank.memories, "edges_by_id", broken)
    query = '{ edge(id: "x") { id } memory(id: "none") { id } status { version } }'
    answer = (await cairn.http.post("/graphql", content=body(query))).json()
    assert answer["data"]["edge"] is None
    assert answer["data"]["status"]["version"]
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["INTERNAL"]


async def test_a_page_elsewhere_cannot_write_through_the_browser(cairn: Service) -> None:
    """What a browser sends for another site without asking us first, text/plain or a form, is refused; JSON is not."""
    body = '{"query": "{ status { ready } }"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"Origin": "http://elsewhere.example", "Content-Type": kind}
        assert (await cairn.http.post("/graphql", content=body, headers=headers)).status_code == 415
    headers = {"Origin": "http://127.0.0.1:8000", "Content-Type": "application/json; charset=utf-8"}
    assert (await cairn.http.post("/graphql", content=body, headers=headers)).json()["data"]["status"]["ready"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost:8000", 200),
        ("[::1]:8000", 200),
        ("10.1.2.3", 200),
        ("cairn.example", 200),
        ("rebound.example:8000", 403),
        ("localhost.rebound.example", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
async def test_a_name_that_was_made_to_lead_here_is_no_way_in(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, host: str, status: int
) -> None:
    """Whoever owns a name can let it lead to this machine; a browser then takes his page for one of ours. An agent, which
    names no page, may ask under any name."""
    # Nobody named any: then no name is no name, either.
    names = "other.example, Cairn.example" if host == "cairn.example" else ""
    monkeypatch.setattr(cairn.cairn.settings, "allowed_hosts", names)
    sent = {"Host": host, "Content-Type": "application/json"}
    page = await cairn.http.post("/graphql", content=body(VERSION), headers={**sent, "Origin": f"http://{host}"})
    assert page.status_code == status
    if status == 403:
        assert "CAIRN_ALLOWED_HOSTS" in page.json()["errors"][0]["message"]
    if host != "[::1":
        assert (await cairn.http.post("/graphql", content=body(VERSION), headers=sent)).status_code == 200


async def test_long_queries_are_not_kept(cairn: Service) -> None:
    """Parsed, each takes many times its length, and 256 are kept."""
    kept = ParsedShort(maxsize=256).cached_parse_document
    kept.cache_clear()  # other tests may have filled it
    await cairn.http.post("/graphql", content=body(VERSION))
    before = kept.cache_info().currsize
    long = f'{{ searchMemories(query: "{"w" * KEPT_QUERY}") {{ score }} }}'
    assert (await cairn.http.post("/graphql", content=body(long))).json()["data"]["searchMemories"] is not None
    assert kept.cache_info().currsize == before
    await cairn.http.post("/graphql", content=body("{ status { version embedder } }"))
    assert kept.cache_info().currsize == before + 1
