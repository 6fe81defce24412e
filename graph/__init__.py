"""The record: memories and edges in Neo4j. Imports nothing else of ours."""
