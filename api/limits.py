"""How deep a query may nest: one walk over it, each fragment measured once."""

from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    SelectionSetNode,
    ValidationRule,
)

MOST_TOKENS = 60_000
MOST_LEVELS = 20


class DepthRule(ValidationRule):
    """Counts the levels of fields; what the schema says of itself is not counted."""

    def enter_document(self, document: DocumentNode, *_: Any) -> None:
        fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
        known: dict[str, int] = {}
        for operation in document.definitions:
            if isinstance(operation, OperationDefinitionNode):
                levels = self._levels(operation.selection_set, fragments, known, frozenset())
                if levels > MOST_LEVELS:
                    self.report_error(
                        GraphQLError(
                            f"This query nests {levels} levels deep; {MOST_LEVELS} are allowed. Ask in several queries.",
                            [operation],
                            extensions={"code": "LIMIT_EXCEEDED"},
                        )
                    )

    def _levels(
        self,
        selections: SelectionSetNode | None,
        fragments: dict[str, FragmentDefinitionNode],
        known: dict[str, int],
        inside: frozenset[str],
    ) -> int:
        deepest = 0
        for node in selections.selections if selections else ():
            if isinstance(node, FieldNode):
                if node.name.value.startswith("__"):
                    continue
                levels = 1 + self._levels(node.selection_set, fragments, known, inside)
            elif isinstance(node, FragmentSpreadNode):
                name = node.name.value
                if name in inside or name not in fragments:  # another rule reports these
                    continue
                if name not in known:
                    known[name] = self._levels(fragments[name].selection_set, fragments, known, inside | {name})
                levels = known[name]
            else:
                levels = self._levels(node.selection_set, fragments, known, inside)  # type: ignore[attr-defined]
            deepest = max(deepest, levels)
        return deepest
