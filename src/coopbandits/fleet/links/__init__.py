"""Links: they carry bytes between neighbours, in memory or over Eclipse Zenoh.

Both keep the rules of the port `coopbandits.fleet.ports.Links`, and these besides:

1. An edge of the network is a link. Nothing goes to others, and nothing is relayed.
2. A message has at most `LARGEST` bytes. It arrives once and whole, or not at all.
3. `send` takes the name of a neighbour; what is sent while its link is down is dropped.
4. A link is down at first. `linked(name, True)` says that what is sent from now on may arrive. Two
   in a row without a False between them are never said: of a neighbour that was started again,
   both are said.
5. `dropped` counts what `send` or a full queue dropped, by neighbour; not what was lost on its way.
6. No two calls come at once. They must not raise: nobody is there to take it.
7. `start` is called once, `send` between `start` and `close`; `close` may be called twice.
"""

from collections.abc import Iterable

from coopbandits.errors import InputError, LocalProtocolError

LARGEST = 300_000


def checked_names(me: str, neighbours: Iterable[str]) -> tuple[str, ...]:
    """Return the neighbours' names, in order, if all can be names of sites."""
    names = tuple(sorted(neighbours))
    for name in (me, *names):
        if not name.strip() or not _is_unicode(name):
            raise InputError(
                f"{name!r} cannot be a name of a site or fleet; give Unicode text that is not blank"
            )
    if me in names:
        raise InputError(f"{me!r} is given as its own neighbour; leave it out of its neighbours")
    return names


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)


def checked_message(neighbours: Iterable[str], neighbour: str, data: bytes) -> None:
    """Refuse what can never be sent: to others than neighbours, or too large."""
    if neighbour not in neighbours:
        known = ", ".join(sorted(neighbours)) or "none"
        raise InputError(f"{neighbour!r} is no neighbour; the neighbours are: {known}")
    if len(data) > LARGEST:
        raise InputError(
            f"a message of {len(data)} bytes for {neighbour!r} is too large; a link takes at most "
            f"{LARGEST}: send it in parts"
        )


def checked_order(started: bool, *, expected: bool) -> None:
    """Refuse to start twice, or to send before the start."""
    if started and not expected:
        raise LocalProtocolError("the links were started already; make others to start again")
    if expected and not started:
        raise LocalProtocolError("the links were not started; call start before send")
