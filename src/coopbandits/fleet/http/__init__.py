"""The HTTP interface of a node: one table of routes, and what follows from it.

`routes.py` is the table, `app.py` the ASGI application over a `Face`, `openapi.py` the document,
`server.py` the server that runs it.
"""
