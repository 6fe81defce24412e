// The revisions of memories that a search has hit, and whether their text contains something, in any case of letters.
// All else that a filter asks the index has answered: a row in the memory's revision has the memory's values.
// params: $tenant, $ids, $text_contains
// returns: rows of id, revision, passes
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
RETURN collect({id: m.id, revision: m.revision, passes: toLower(m.text) CONTAINS $text_contains}) AS rows
