"""The node as a state machine without I/O: `handle(input, now) -> actions`, replayed from its log.

Two rules. *Answer and show to others only what is synced.* *Apply exactly what a replay would
apply, in the log's order.* For the second, entries are of two kinds. Data (own records, blocks of
others, results of learning) are applied when they are synced. Operations (decisions, tasks that are
taken) happen when they are appended, and say up to which position data had been applied by then
(`seen`); a replay applies just as much before it repeats them.
"""
