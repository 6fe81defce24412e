"""The served schema beside the contract that clients are written against, of which tests/contract.graphql is a copy."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphql import build_schema, get_introspection_query, introspection_from_schema

from tests.conftest import SHARED
from tests.service import Service

CONTRACT = Path(__file__).parent / "contract.graphql"


def described(schema: str) -> Any:
    """What a service with this schema says of itself."""
    return introspection_from_schema(build_schema(schema), input_value_deprecation=True)


async def test_the_service_keeps_the_contract(cairn: Service) -> None:
    """Every type, field, argument and value of the contract is served, with the same type and default, and whoever gives
    what the contract asks for gives enough."""
    served = await cairn.ask(get_introspection_query(input_value_deprecation=True))
    assert list(differences(described(CONTRACT.read_text()), served)) == []


async def test_the_contract_is_the_given_one(cairn: Service) -> None:
    """Where the contract itself lies beside this checkout: the copy is that one, and its own check finds no difference."""
    if not SHARED.exists():
        pytest.skip("the contract is not beside this checkout")
    assert (SHARED / "contract" / "schema.graphql").read_text() == CONTRACT.read_text()
    check = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SHARED / "checks" / "contract.py"), f"{cairn.http.base_url}/graphql"),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await check.communicate()
    assert check.returncode == 0, said.decode()


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        ("type Query { a(x: Int = 1): E! b: [Int] }", "Query.b is [Int], not [Int!]"),
        ("type Query { a(x: Int = 1): E! }", "Query.b is missing"),
        ("type Query { a(x: String): E! b: [Int!] }", "Query.a(x) is String, not Int"),
        ("type Query { a(x: Int = 2): E! b: [Int!] }", "Query.a(x) is 2 by default, not 1"),
        ("type Query { a: E! b: [Int!] }", "Query.a(x) is missing"),
        ("type Query { a(x: Int = 1, y: Int!): E! b: [Int!] }", "Query.a(y) is required"),
        ("type Query { a(x: Int = 1, y: Int! = 2): E! b: [Int!] c: Int }", None),
    ],
)
def test_a_difference_is_seen(now: str, difference: str | None) -> None:
    """What a client would notice is named; what was only added is not."""
    contract = described("enum E { ONE } type Query { a(x: Int = 1): E! b: [Int!] }")
    found = list(differences(contract, described("enum E { ONE TWO } " + now)))
    assert found == ([] if difference is None else [difference])


def test_what_else_may_differ() -> None:
    """A value, a member, an interface, a kind, a whole type; an input that asks for more."""
    contract = described(
        """enum E { ONE TWO } union U = A | B interface I { id: ID } type A implements I { id: ID } type B { id: ID }
           input N { x: Int } scalar S type Query { e: E u: U s: S a(n: N): A }"""
    )
    now = described(
        """enum E { ONE } union U = A interface I { id: ID } type A { id: ID } type S { id: ID }
           input N { x: Int y: Int! } type Query { e: E u: U s: S a(n: N): A }"""
    )
    assert set(differences(contract, now)) == {
        "E.TWO is missing", "U: B is missing", "A: I is missing", "I: A is missing", "B is missing", "N.y is required",
        "S is another kind of type",
    }  # fmt: skip


# ---------------------------------------------------------------- the comparison


def differences(contract: Any, served: Any) -> Iterator[str]:
    """What a client that is written against the contract would notice; both as a service describes itself."""
    types = {one["name"]: one for one in served["__schema"]["types"]}
    for wanted in contract["__schema"]["types"]:
        name, there = wanted["name"], types.get(wanted["name"])
        if name.startswith("__"):
            continue
        if there is None or there["kind"] != wanted["kind"]:
            yield f"{name} is missing" if there is None else f"{name} is another kind of type"
            continue
        for part, form in (("enumValues", f"{name}.{{}}"), ("possibleTypes", f"{name}: {{}}"), ("interfaces", f"{name}: {{}}")):  # fmt: skip
            yield from _missing(_named(wanted[part]), _named(there[part]), form)
        yield from _values(wanted["inputFields"], there["inputFields"], f"{name}.{{}}")
        fields, now = _named(wanted["fields"]), _named(there["fields"])
        yield from _missing(fields, now, f"{name}.{{}}")
        for key in fields.keys() & now.keys():
            if _type(fields[key]["type"]) != _type(now[key]["type"]):
                yield f"{name}.{key} is {_type(now[key]['type'])}, not {_type(fields[key]['type'])}"
            yield from _values(fields[key]["args"], now[key]["args"], f"{name}.{key}({{}})")


def _values(wanted: Any, there: Any, form: str) -> Iterator[str]:
    """Of arguments, or of the fields of an input."""
    known, now = _named(wanted), _named(there)
    yield from _missing(known, now, form)
    for key, value in now.items():
        if key not in known:
            if value["type"]["kind"] == "NON_NULL" and value["defaultValue"] is None:
                yield f"{form.format(key)} is required"
        elif _type(value["type"]) != _type(known[key]["type"]):
            yield f"{form.format(key)} is {_type(value['type'])}, not {_type(known[key]['type'])}"
        elif known[key]["defaultValue"] not in (None, value["defaultValue"]):
            yield f"{form.format(key)} is {value['defaultValue']} by default, not {known[key]['defaultValue']}"


def _missing(wanted: dict[str, Any], there: dict[str, Any], form: str) -> Iterator[str]:
    return (f"{form.format(key)} is missing" for key in wanted if key not in there)


def _named(parts: Any) -> dict[str, Any]:
    return {one["name"]: one for one in parts or ()}


def _type(given: Any) -> str:
    if given["kind"] == "NON_NULL":
        return f"{_type(given['ofType'])}!"
    return f"[{_type(given['ofType'])}]" if given["kind"] == "LIST" else str(given["name"])
