"""What a query asks for, so that nothing else is worked out."""

from typing import Any

from graphql import FieldNode, FragmentSpreadNode, GraphQLResolveInfo, Node


def asks_for(info: GraphQLResolveInfo[Any], names: frozenset[str]) -> bool:
    """Whether one of these fields is asked for anywhere within the field that is being answered. A field that a directive
    may leave out counts; each fragment is read once."""
    waiting: list[Node] = list(info.field_nodes)
    read: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, FieldNode) and node.name.value in names:
            return True
        if isinstance(node, FragmentSpreadNode):
            if node.name.value in read:
                continue
            read.add(node.name.value)
            node = info.fragments[node.name.value]
        if (inner := getattr(node, "selection_set", None)) is not None:
            waiting += inner.selections
    return False
