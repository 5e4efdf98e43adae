"""What does the file of a trial hold? Its record, and whose it is; what cannot be is refused."""

import json
import zlib
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np

from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.trial import Record

_ARRAYS = ("rounds", "regret", "messages", "bytes", "agents", "worth", "learnt", "truth")
_TEXTS = ("engine", "graph")
# Where a number may be missing: two agents that never heard of each other, pairs that are none.
_MAY_BE_NAN = ("worth", "learnt")
_BROKEN = (OSError, EOFError, ValueError, TypeError, KeyError, BadZipFile, zlib.error)


@dataclass(frozen=True)
class Identity:
    """Whose record it is.

    Attributes:
        problem: By name; so `network`, `policy`.
        trial: Its number.
        seed: With which it was played.
        digest: Of what the record depends on (`dependencies.py`).
    """

    problem: str
    network: str
    policy: str
    trial: int
    seed: int
    digest: str

    def __str__(self) -> str:
        return (
            f"trial {self.trial} (seed {self.seed}) of {self.policy!r} on {self.problem!r}, "
            f"{self.network!r}"
        )

    def is_trial_of(self, other: "Identity") -> bool:
        """Tell whether both are the same trial, whatever they depended on."""
        return self == Identity(**{**asdict(other), "digest": self.digest})


def packed(record: Record, identity: Identity) -> bytes:
    """Write a record as a file holds it; one with numbers that are none is refused."""
    facts = {name: getattr(record, name) for name in _ARRAYS}
    found = complaint(facts)
    if found is not None:
        raise ExperimentError(
            f"{identity} {found}, so it cannot be kept; expected numbers of its problem and policy"
        )
    texts = {name: np.array(getattr(record, name)) for name in _TEXTS}
    whose = np.array(json.dumps(asdict(identity)))
    into = BytesIO()
    np.savez_compressed(into, **facts, **texts, identity=whose)  # type: ignore[arg-type]
    return into.getvalue()


def unpacked(content: bytes) -> tuple[dict[str, Any], Identity | None]:
    """Read the facts of a record and whose it is; None if it does not say.

    Raises:
        ValueError: It is no such file, or holds what no record can.
    """
    try:
        with np.load(BytesIO(content), allow_pickle=False) as held:
            facts: dict[str, Any] = {name: held[name] for name in _ARRAYS}
            facts.update({name: str(held[name]) for name in _TEXTS})
            whose = str(held["identity"]) if "identity" in held.files else None
        identity = None if whose is None else Identity(**json.loads(whose))
        found = complaint(facts)
    except _BROKEN as error:
        raise ValueError(f"is damaged ({error})") from error
    if found is not None:
        raise ValueError(found)
    return facts, identity


def complaint(facts: dict[str, Any]) -> str | None:
    """Say what in a record's arrays cannot be; None if all can."""
    for name in _ARRAYS:
        values = np.asarray(facts[name])
        if values.dtype.kind not in "iuf":
            return f"holds no numbers as {name}"
        if np.isinf(values).any() or (name not in _MAY_BE_NAN and np.isnan(values).any()):
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            return f"holds {values.ravel()[at]} among {name}"
    rounds, agents = facts["rounds"], facts["agents"]
    if rounds.ndim != 1 or not len(rounds) or agents.ndim != 1 or not len(agents):
        return f"holds rounds of shape {rounds.shape} and agents of shape {agents.shape}"
    for name in ("regret", "messages", "bytes"):
        if facts[name].shape != rounds.shape:
            return f"holds {name} of shape {facts[name].shape}; expected {rounds.shape}"
    return None
