"""The served schema beside the contract that clients are written against."""

import pytest
from graphql import build_client_schema, build_schema, find_breaking_changes, get_introspection_query

from tests.conftest import SHARED
from tests.service import Service


async def test_nothing_a_client_relies_on_is_missing(cairn: Service) -> None:
    """No difference from the contract that a client would notice."""
    path = SHARED / "contract" / "schema.graphql"
    if not path.exists():
        pytest.skip("the contract is not beside this checkout")
    contract = build_schema(path.read_text())
    served = build_client_schema(await cairn.ask(get_introspection_query(input_value_deprecation=True)))  # type: ignore[arg-type]
    assert [change.description for change in find_breaking_changes(contract, served)] == []
