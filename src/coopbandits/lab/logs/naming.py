"""Which columns of a table say what? Whose decision, what was taken, what it brought, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coopbandits.arrays import as_choice, as_flag, short
from coopbandits.errors import ParameterError

_MISSINGS = ("refuse", "drop", "indicate")


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Which columns of a table say what; `Log.from_frame` has their meaning."""

    agent: str
    reward: str
    features: tuple[str, ...] = ()
    action: str | None = None
    chosen: str | None = None
    decision: str | None = None
    propensity: str | None = None
    time: str | None = None
    action_features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    missing: str = "refuse"
    catalogue: str = "all"
    code_action: bool = True

    def __post_init__(self) -> None:
        texts = [self.agent, self.reward, *self.features, *self.categorical]
        texts += [name for name in (self.action, self.chosen, self.decision) if name is not None]
        texts += [name for name in (self.propensity, self.time) if name is not None]
        for name in texts:
            if not isinstance(name, str):
                raise ParameterError(f"{short(name)} is no column's name; expected a text")
        as_choice(self.missing, "missing", _MISSINGS)
        as_choice(self.catalogue, "catalogue", ("all", "agent"))
        as_flag(self.code_action, "code_action")
        if self.decision is not None and self.chosen is None:
            raise ParameterError(
                "decision= is for tables with a row for each offered action; name the column that "
                "tells which was taken as chosen= too"
            )
        if self.chosen is not None and self.decision is None and self.time is None:
            raise ParameterError(
                "with chosen=, a row is an offered action; name the column that says which rows "
                "are one decision as decision=, or time= if an agent decides once at a time"
            )
        if self.chosen is not None and self.action_features is not None:
            raise ParameterError("action_features= is for tables with one row for each decision")
        if not self.features and (self.action is None or not self.code_action):
            raise ParameterError(
                "a context would be empty: name some columns as features=, or the action's"
            )
        for name, group in (("categorical", self.categorical), ("action_features", self._own)):
            stranger = next((one for one in group if one not in self.features), None)
            if stranger is not None:
                raise ParameterError(f"{name} names {stranger!r}, which is not among the features")
        for role in ("reward", "chosen", "propensity"):
            if getattr(self, role) is not None and getattr(self, role) in self.features:
                raise ParameterError(
                    f"column {getattr(self, role)!r} is the {role} and a feature too; a "
                    "context holds what is known before the decision, so leave it out of features"
                )

    @property
    def _own(self) -> tuple[str, ...]:
        return self.action_features or ()

    @property
    def columns(self) -> list[str]:
        """All columns that are needed, each once."""
        roles = (self.action, self.chosen, self.decision, self.propensity, self.time)
        named = [self.agent, self.reward, *(one for one in roles if one is not None)]
        return list(dict.fromkeys([*named, *self.features]))


def naming_of(
    *,
    features: Sequence[str] = (),
    action_features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    **roles: Any,
) -> Naming:
    """Check the columns that a user names, as `Log.from_frame` takes them."""
    own = action_features
    return Naming(
        features=_listed(features, "features"),
        action_features=None if own is None else _listed(own, "action_features"),
        categorical=_listed(categorical, "categorical"),
        **roles,
    )


def _listed(value: object, what: str) -> tuple[str, ...]:
    """Check a list of columns' names, each once."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParameterError(f"{what} must be a list of columns' names, got {short(value)}")
    return tuple(dict.fromkeys(value))
