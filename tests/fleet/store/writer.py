"""Writes a log until it is killed, or its disk fails; run by tests in a process of its own.

`writer.py serve` reads names of folders from its input and writes to each in a fork of itself,
whose number it prints, until that is killed. `writer.py once FOLDER` writes a while, then says
whether a failure was reported and later writes refused. Either way `FOLDER.synced` lists the
positions that were reported as synced. The entry at position n is named n, so are its records.
"""

import os
import random
import sys
import time
from pathlib import Path

from coopbandits.fleet.ports import Entry, StoredRecord, StoreError
from coopbandits.fleet.store import GroupCommit, SqliteStore


def entry(position):
    name = str(position).encode()
    return Entry(1, name, (StoredRecord("node", 1, position, name * 20),))


def write(folder, seconds):
    """Write for a while; return the error that ended it, and the one of another try."""
    store = SqliteStore(folder, identity="node")
    errors = []
    synced = store.position
    acknowledged = os.open(f"{folder}.synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def finished(position, error):
        nonlocal synced
        if error is not None:
            errors.append(error)
        else:
            os.write(acknowledged, f"{position}\n".encode())
            synced = position

    commit = GroupCommit(store, finished)
    draw = random.Random(store.position)
    last = snapshot = store.position
    until = time.monotonic() + seconds
    while time.monotonic() < until and not errors:
        if commit.queued > 40:
            time.sleep(0.0005)
            continue
        count = draw.randint(1, 8)
        commit.put([entry(last + k) for k in range(1, count + 1)])
        last += count
        if synced > snapshot + 300:
            snapshot = synced
            commit.put_snapshot(snapshot, str(snapshot).encode())
            commit.cut(snapshot - 100, {("node", 1): snapshot - 200})
    commit.close()
    again = None
    if errors:
        try:
            store.append([entry(store.position + 1)])
        except StoreError as error:
            again = error
    store.close()
    return (errors or [None])[0], again


def serve():
    for line in sys.stdin:
        child = os.fork()
        if not child:
            write(Path(line.strip()), 60)
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        failed, refused = write(Path(sys.argv[2]), 0.5)
        print(type(failed).__name__, type(refused).__name__)
