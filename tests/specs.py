"""Policies of every kind, as hypothesis draws them."""

import numpy as np
from hypothesis import strategies as st

import coopbandits as cb
from coopbandits import act, features, forget, listen, say, similarity, width
from coopbandits.scaling import Scaling

above = st.floats(1e-3, 1e3)
not_negative = st.floats(0, 1e3)
counts = st.integers(1, 50)
maybe = lambda strategy: st.none() | strategy  # noqa: E731


@st.composite
def arrays(draw):
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    return np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape)


@st.composite
def gram(draw):
    A = draw(arrays())
    return A @ A.T


lengthscales = above | st.lists(above, min_size=1, max_size=3).map(tuple)
plain_kernels = st.one_of(
    st.builds(cb.kernels.Linear, lengthscales),
    st.builds(cb.kernels.RBF, lengthscales),
    st.builds(cb.kernels.Matern, above, lengthscales),
    st.builds(cb.arms.Table, gram()),
)
kernels = st.recursive(
    plain_kernels,
    lambda inner: st.one_of(
        st.builds(cb.kernels.Scaled, inner, not_negative),
        st.builds(cb.kernels.Product, inner, inner),
        st.builds(cb.kernels.Sum, inner, inner),
        st.builds(
            cb.arms.ActiveDimensions,
            inner,
            st.sets(st.integers(0, 4), min_size=1).map(sorted),
            st.booleans(),
        ),
    ),
    max_leaves=4,
)
bases = st.recursive(
    st.one_of(
        st.just(features.Exact()),
        st.builds(features.Fourier, counts.map(lambda m: 2 * m), st.integers(0, 2**70)),
        st.builds(features.Nystrom, arrays()),
    ),
    lambda inner: st.builds(features.Leading, inner, counts),
    max_leaves=2,
)
refresh = st.sampled_from(["growing", "every round"])
growth = st.floats(1.01, 5)
labels = st.lists(st.integers(0, 3), min_size=1, max_size=5)
learnt = {"noise": maybe(above), "features": maybe(bases), "refresh": refresh, "growth": growth}
similarities = st.one_of(
    st.sampled_from([similarity.Alone(), similarity.Same()]),
    gram().map(lambda K: similarity.Known(matrix=K)),
    arrays().map(lambda z: similarity.Known(contexts=z, kernel=cb.kernels.RBF())),
    st.builds(similarity.LowRank, arrays(), not_negative),
    st.builds(similarity.Clusters, labels),
    st.builds(similarity.Clusters, st.dictionaries(st.text(max_size=4), st.text(), min_size=1)),
    st.builds(similarity.Laplacian, above),
    st.builds(similarity.Population, st.floats(0, 1)),
    st.builds(
        similarity.LearntPopulation,
        st.lists(st.floats(0, 1), min_size=1).map(tuple),
        **learnt,
    ),
    st.builds(similarity.LearntLaplacian, st.lists(above, min_size=1).map(tuple), **learnt),
    st.builds(
        similarity.Evidence,
        contexts=st.booleans(),
        chains=st.integers(1, 8),
        seed=st.integers(0, 9),
        **learnt,
    ),
    st.builds(similarity.Coregionalised, rank=counts, steps=counts, **learnt),
    st.builds(
        similarity.MeanEmbedding,
        bandwidth=above | st.just("median"),
        sample=st.sampled_from(["chosen", "offered"]),
        kernel=maybe(kernels),
        unbiased=st.booleans(),
        rank=maybe(counts),
        features=maybe(bases),
        refresh=refresh,
        growth=growth,
    ),
    st.builds(lambda K, column: similarity.ArmNetwork(K, arms=1, column=column), gram(), counts),
)
deltas = st.floats(1e-6, 0.99)
widths = st.one_of(
    st.builds(width.Fixed, not_negative),
    st.builds(width.SelfNormalised, not_negative, not_negative, deltas),
    st.builds(width.Mixture, not_negative, not_negative, deltas),
    st.builds(width.InformationGain, not_negative, not_negative, deltas),
    st.builds(width.Srinivas, not_negative, deltas),
    st.builds(width.Logarithmic, not_negative),
)
acts = st.one_of(
    st.sampled_from([act.UpperBound(), act.Sample(), act.AtRandom()]),
    st.builds(act.FollowCentre, st.sampled_from(["nearest", "same"]), maybe(counts)),
)
listens = st.sampled_from(
    [
        listen.Myself(),
        listen.Clique(),
        listen.Neighbourhood(),
        listen.Centre(),
        listen.Everyone(0),
        listen.Everyone(1),
    ]
)
says = st.one_of(
    st.just(say.Everything()),
    st.builds(say.WhenUncertain, not_negative),
    st.builds(say.WhenItPays, not_negative),
    st.builds(say.Sums, every=counts),
    st.builds(say.Sums, gain=not_negative),
)
spreads = st.lists(above, min_size=2, max_size=2)
scalings = st.builds(Scaling, spreads | above, spreads | above)
forgets = st.builds(forget.Exponential, above) | st.builds(forget.Window, counts)


@st.composite
def policies(draw):
    """Draw any row of answers that a policy allows."""
    needs_sums = draw(st.booleans())
    K_z = similarities
    if needs_sums:
        K_z = K_z.filter(lambda one: not isinstance(one, similarity.ArmNetwork))
    ridge = draw(above)
    return cb.Policy(
        name=draw(st.text(max_size=8)),
        kernel=draw(kernels),
        listen=draw(listens),
        similarity=draw(K_z),
        width=draw(widths),
        act=draw(acts),
        ttl=draw(counts),
        ridge=ridge,
        compose="hadamard" if needs_sums else draw(st.sampled_from(["hadamard", "sum"])),
        features=draw(bases) if needs_sums else None,
        say=draw(says) if needs_sums else draw(says.filter(lambda one: not one.sums)),
        intercept=draw(maybe(st.floats(0.1, 10).map(lambda t: t * ridge**0.5))),
        scale=draw(above),
        scaling=draw(maybe(scalings)),
        forget=draw(maybe(forgets)) if needs_sums else None,
    )
