"""Who computes a simulation's decisions?

| engine | what | for |
|---|---|---|
| `exact` | Cholesky factors, shared where agents share their past | any kernel |
| `statistics` | sufficient statistics of each agent | linear kernels, any number of rounds |
| `sparse` | the same, of features that stand for K_x | any kernel, any number of rounds |
| `messages` | real agents that exchange real bytes | the proof; agents that say less; continua |

`exact`, `statistics` and `messages` take the same decisions; `sparse` takes them up to what its
features leave out and its laziness (docs/engines.md). `computations.py` is the table of what each
engine may compute, of which the first that applies is taken.
"""

from dataclasses import replace

from coopbandits.arrays import Array, short
from coopbandits.engines.by_lags import ByLags
from coopbandits.engines.computations import Case, Computation, computation_of
from coopbandits.engines.engine import Algorithm, Engine, KnowsPropensities, Simulation
from coopbandits.engines.exchange import Exchange
from coopbandits.engines.lazy import LAZINESS
from coopbandits.errors import ParameterError
from coopbandits.features import Exact, is_finite, reference
from coopbandits.forget import Exponential
from coopbandits.network import Network
from coopbandits.policy import Plan, Policy, plan
from coopbandits.protocol.links import Links
from coopbandits.say import Everything

# More operations than these take longer than some ten seconds.
_LONG = 2e10
ENGINES = ("exact", "statistics", "sparse", "messages")

__all__ = [
    "ENGINES",
    "LAZINESS",
    "Algorithm",
    "Engine",
    "KnowsPropensities",
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
    laziness: float = LAZINESS,
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
        laziness: By what share others' news may be late where `sparse` views differ.
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
    if policy.scaling is not None:
        contexts = policy.scaling.scaled(contexts)
    case = Case(policy, plan(policy, network), contexts.shape[1], rounds, laziness)
    if name == "auto":
        name = _chosen(case, network, contexts, memory_limit)
    _check(name, case)
    if name == "sparse":
        case = _with_features(case, network, contexts)
        policy = case.policy
    computation = computation_of(name, case)
    _check_memory(name, case, computation, memory_limit)
    return ByLags(
        f"sparse, {computation.name}" if name == "sparse" else name,
        computation.make(case),
        policy,
        network,
        basis=None if name == "exact" else case.basis,
        dim=case.dim,
        rounds=rounds,
        seed=seed,
        work=computation.work(case),
        advice=_advice(name, case, network, contexts),
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
    return Case(policy, worked_out, 1, 1).applies(name)


def _check(name: str, case: Case) -> None:
    if case.applies(name):
        return
    if case.policy.features is not None and name != "sparse":
        raise ParameterError(
            f"the policy has features=, which stand for its kernel: engine={name!r} would not use "
            "them; take engine='sparse' or 'messages', or a policy without them"
        )
    if name == "exact" and isinstance(case.policy.forget, Exponential):
        raise ParameterError(
            f"forget={short(case.policy.forget)} multiplies sums of features, which engine='exact' "
            "does not keep; give the policy features=, take engine='statistics' (linear kernels) "
            "or 'sparse', or forget=coopbandits.forget.Window(…)"
        )
    kernel = "a linear kernel, " if name == "statistics" else ""
    raise ParameterError(
        f"the {name} engine needs {kernel}compose='hadamard', a K_z between agents (not ArmNetwork)"
        ", agents that decide at the same time and embeddings that are not frozen; take "
        "engine='exact'"
    )


def _with_features(case: Case, network: Network, contexts: Array) -> Case:
    """Return the case with features that stand for its kernel, unless the policy has them."""
    policy = case.policy
    if policy.features is not None:
        return case
    basis = Exact() if is_finite(policy.kernel) else reference(policy.kernel, contexts)
    policy = replace(policy, features=basis)
    return replace(case, policy=policy, plan=plan(policy, network))


def _chosen(case: Case, network: Network, contexts: Array, memory_limit: float) -> str:
    """Choose by size: of what is exact and fits the fewest operations, else what is sparse.

    Where K_z is estimated, so that no decision is exact anyway, what is sparse is taken too if it
    saves much: factors under each hypothesis of each agent may take hours.
    """
    names = [name for name in ENGINES[:2] if case.applies(name)]
    if not case.policy.act.judges or not names:
        return names[0] if names else "sparse"
    made = {name: computation_of(name, case) for name in names}
    fit = [name for name in names if made[name].memory(case) <= memory_limit]
    if fit:
        best = min(fit, key=lambda name: made[name].work(case))
        work = made[best].work(case)
        if work < _LONG or not (case.plan.estimates and case.applies("sparse")):
            return best
        sparse = _with_features(case, network, contexts)
        computation = computation_of("sparse", sparse)
        fits = computation.memory(sparse) <= memory_limit
        return "sparse" if fits and 2 * computation.work(sparse) < work else best
    return "sparse" if case.applies("sparse") else "exact"


def _advice(name: str, case: Case, network: Network, contexts: Array) -> str:
    """Say what would take fewer operations."""
    if name == "exact" and case.applies("sparse"):
        sparse = _with_features(case, network, contexts)
        share = computation_of("sparse", sparse).work(sparse) / computation_of(name, case).work(
            case
        )
        if share < 0.5:
            return (
                f"; engine='sparse' needs about {share:.1%} of that, with features for the kernel"
            )
    if case.plan.estimates:
        return "; a given similarity=, a smaller ttl or fewer rounds would be faster"
    return "; fewer rounds or a smaller ttl would be faster"


def _check_memory(name: str, case: Case, computation: Computation, limit: float) -> None:
    """Refuse a run whose beliefs need too many bytes, before it starts."""
    pairs = 16.0 * len(case.plan.listens.rounds)
    needed = pairs + (computation.memory(case) if case.policy.act.judges else 0.0)
    if needed > limit:
        other = "take lag=1, or " if case.plan.in_turn else "take engine='sparse', or "
        raise ParameterError(
            f"{case.rounds} rounds of {case.policy.name} need about {needed / 1e9:.1f} GB for the "
            f"{name} engine, above memory_limit={limit:.3g} bytes; raise the limit, "
            + (other if name == "exact" else "or ")
            + "play fewer rounds, a smaller ttl or a sparser network"
        )
