"""The service: GraphQL over HTTP, the settings and the command line."""
