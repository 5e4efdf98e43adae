"""Who computes a simulation's decisions?

| engine | what | for |
|---|---|---|
| `exact` | Cholesky factors, shared where agents share their past | any kernel |
| `statistics` | sums of fixed size for each agent | linear kernels, any number of rounds |
| `messages` | real agents that exchange real bytes | showing that the others are right |

All take the same decisions.
"""

from coopbandits.engines.by_lags import Beliefs, ByLags
from coopbandits.engines.engine import Engine
from coopbandits.engines.exchange import Exchange
from coopbandits.engines.learnt import LearntPosteriors
from coopbandits.engines.shared import SharedPosteriors
from coopbandits.engines.statistics import SumsOfFeatures, applies
from coopbandits.errors import ParameterError
from coopbandits.network import Network
from coopbandits.policy import Policy, plan

ENGINES = ("exact", "statistics", "messages")

__all__ = ["ENGINES", "Engine", "engine_for"]


def engine_for(
    name: str,
    policy: Policy,
    network: Network,
    *,
    dim: int,
    rounds: int,
    seed: int,
    memory_limit: float,
) -> Engine:
    """Make an engine by its name; "auto" chooses by the problem's size."""
    if name == "messages":
        return Exchange(policy, network, seed=seed)
    worked_out = plan(policy, network)
    if name == "statistics" and not applies(policy, worked_out):
        raise ParameterError(
            "the statistics engine needs a linear kernel, compose='hadamard', agents that decide "
            "at the same time and embeddings that are not frozen; take engine='exact'"
        )
    if name == "auto":
        name = "exact"
        if policy.act.judges and applies(policy, worked_out):
            sums, exact = SumsOfFeatures(policy, worked_out, dim), _exact(policy, network)
            if sums.work(rounds) < exact.work(rounds):
                name = "statistics"
    beliefs = (
        SumsOfFeatures(policy, worked_out, dim) if name == "statistics" else _exact(policy, network)
    )
    return ByLags(
        name, beliefs, policy, network, rounds=rounds, seed=seed, memory_limit=memory_limit
    )


def _exact(policy: Policy, network: Network) -> Beliefs:
    worked_out = plan(policy, network)
    if worked_out.learner is None or worked_out.frozen:
        return SharedPosteriors(policy, worked_out)
    return LearntPosteriors(policy, worked_out)
