"""The fleet: the same agents as long-running nodes that decide, learn and lose nothing.

A node is one agent with a durable log and an HTTP face. What happens is worked out by a state
machine without I/O (`core/`); around it stand ports, each with a twin in memory.
"""
