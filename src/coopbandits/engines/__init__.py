"""Who computes a simulation's decisions?

| engine | what | for |
|---|---|---|
| `exact` | Cholesky factors, shared where agents share their past | any kernel |
| `statistics` | sums of fixed size for each agent | linear kernels, any number of rounds |
| `sparse` | the same sums, of features that stand for K_x | any kernel, any number of rounds |
| `messages` | real agents that exchange real bytes | the proof; agents that say less; continua |

`exact`, `statistics` and `messages` take the same decisions; `sparse` takes them up to what its
features leave out (docs/engines.md).
"""

from dataclasses import replace

from coopbandits.arrays import Array, short
from coopbandits.engines.by_lags import Beliefs, ByLags
from coopbandits.engines.engine import Algorithm, Engine, Simulation
from coopbandits.engines.exchange import Exchange
from coopbandits.engines.joint import JointWeights, hears_all
from coopbandits.engines.late import LateSums
from coopbandits.engines.learnt import LearntPosteriors
from coopbandits.engines.lone import LoneFeatures, hears_nobody
from coopbandits.engines.mixed import MixedSums
from coopbandits.engines.pooled import PooledSums, factors
from coopbandits.engines.shared import SharedPosteriors
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Exact, is_finite, reference
from coopbandits.gp.compositions import ArmJointKernel, Hadamard
from coopbandits.network import Network
from coopbandits.policy import Plan, Policy, plan
from coopbandits.protocol.links import Links
from coopbandits.say import Everything

ENGINES = ("exact", "statistics", "sparse", "messages")
# By how much others' news may be late where posteriors are sparse: see `LateSums`.
LATE = 0.1

__all__ = [
    "ENGINES",
    "Algorithm",
    "Engine",
    "Simulation",
    "applies",
    "continuum_engine",
    "engine_for",
]


def engine_for(
    name: str,
    policy: Policy,
    network: Network,
    *,
    contexts: Array,
    rounds: int,
    seed: int,
    memory_limit: float,
    links: Links | None = None,
) -> Engine:
    """Make an engine by its name; "auto" chooses by the problem's size and the limit.

    Agents that say less, and links that fail, are played by real messages.

    Args:
        name: One of `ENGINES`, or "auto".
        policy: How agents decide.
        network: Who they are.
        contexts: (M, d) the first round's, from which `sparse` chooses its reference.
        rounds: T.
        seed: Of the agents' own choices.
        memory_limit: In bytes.
        links: What becomes of messages; None where nothing does.
    """
    real = links is not None or not isinstance(policy.say, Everything)
    if name == "messages" or (name == "auto" and real):
        return Exchange(policy, network, seed=seed, links=links)
    if links is not None:
        raise ParameterError(
            f"engine={name!r} computes with news that always comes in time; links= is played by "
            "real agents: take engine='messages' or 'auto'"
        )
    if real:
        raise ParameterError(
            f"engine={name!r} computes with news that everyone tells at once; {policy.name} has "
            f"say={short(policy.say)}, which real agents play: take engine='messages' or 'auto'"
        )
    dim = contexts.shape[1]
    if name == "auto":
        name = _chosen(policy, network, dim, rounds, memory_limit)
    _check(name, policy, plan(policy, network))
    if name == "sparse" and policy.features is None:
        basis = Exact() if is_finite(policy.kernel) else reference(policy.kernel, contexts)
        policy = replace(policy, features=basis)
    beliefs = _beliefs(name, policy, network, dim)
    return ByLags(
        name, beliefs, policy, network, rounds=rounds, seed=seed, memory_limit=memory_limit
    )


def continuum_engine(
    name: str,
    policy: Policy | Algorithm,
    network: Network,
    *,
    seed: int,
    links: Links | None = None,
) -> Exchange:
    """Make the engine that plays continua; others are refused."""
    if not isinstance(policy, Policy):
        raise ParameterError(
            f"{policy.name} plays finite decision sets only; expected a coopbandits.Policy for a "
            "continuum, or a problem of finite sets"
        )
    if name not in ("auto", "messages"):
        raise ParameterError(
            f"engine={name!r} plays finite decision sets only; take engine='messages' or 'auto' "
            "for a continuum"
        )
    return Exchange(policy, network, seed=seed, links=links)


def applies(name: str, policy: Policy, worked_out: Plan) -> bool:
    """Tell whether an engine can play a policy."""
    if name == "exact":
        return policy.features is None
    sums = (
        isinstance(policy.compose, Hadamard)
        and not worked_out.in_turn
        and not worked_out.frozen
        and not isinstance(worked_out.kernel, ArmJointKernel)
    )
    if name == "statistics":
        return sums and is_finite(policy.kernel) and policy.features is None
    return sums


def _check(name: str, policy: Policy, worked_out: Plan) -> None:
    if applies(name, policy, worked_out):
        return
    if policy.features is not None and name != "sparse":
        raise ParameterError(
            f"the policy has features=, which stand for its kernel: engine={name!r} would not use "
            "them; take engine='sparse' or 'messages', or a policy without them"
        )
    kernel = "a linear kernel, " if name == "statistics" else ""
    raise ParameterError(
        f"the {name} engine needs {kernel}compose='hadamard', a K_z between agents (not ArmNetwork)"
        ", agents that decide at the same time and embeddings that are not frozen; take "
        "engine='exact'"
    )


def _chosen(policy: Policy, network: Network, dim: int, rounds: int, memory_limit: float) -> str:
    """Choose by size: of what is exact and fits the fewest operations, else what is sparse."""
    worked_out = plan(policy, network)
    names = [name for name in ENGINES[:2] if applies(name, policy, worked_out)]
    if not policy.act.judges or not names:
        return names[0] if names else "sparse"
    made = {name: _beliefs(name, policy, network, dim) for name in names}
    fit = [name for name in names if made[name].bytes_after(rounds) <= memory_limit]
    if fit:
        return min(fit, key=lambda name: made[name].work(rounds))
    return "sparse" if applies("sparse", policy, worked_out) else "exact"


def _beliefs(name: str, policy: Policy, network: Network, dim: int) -> Beliefs:
    worked_out = plan(policy, network)
    if name == "exact":
        if worked_out.learner is None or worked_out.frozen:
            return SharedPosteriors(policy, worked_out)
        return LearntPosteriors(policy, worked_out)
    basis: Basis = Exact() if policy.features is None else policy.features
    if name == "sparse" and hears_nobody(worked_out):
        return LoneFeatures(policy, worked_out, basis, dim)
    a = factors(worked_out)
    if a is not None:
        return PooledSums(policy, worked_out, basis, dim, a)
    if name == "statistics" and hears_all(policy, worked_out):
        return JointWeights(policy, worked_out, basis, dim)
    if name == "sparse" and LATE:
        return LateSums(policy, worked_out, basis, dim, LATE)
    return MixedSums(policy, worked_out, basis, dim)
