// What answers here: the server's name, version and edition.
// params: none (a question to the server, not to a tenant's data)
// returns: engine
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN 'Neo4j ' + versions[0] + ' ' + edition AS engine
