"""What does a node of the fleet cost, and what does it hold? See `__main__.py`."""
