import numpy as np
import pytest

import coopbandits as cb
from graphs import fewest_cliques, heaviest_independent_set
from worlds import NETWORKS


@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_both_numbers_lie_between_their_bounds(network, ttl):
    power = network.power(ttl).adjacency
    mutual = power & power.T
    chi, alpha = (
        cb.theory.clique_cover_number(network, ttl),
        cb.theory.independence_number(network, ttl),
    )
    assert chi.least <= fewest_cliques(mutual) <= chi.most
    exact = heaviest_independent_set(mutual, np.ones(len(network), dtype=int))
    assert alpha.least <= exact <= alpha.most <= chi.most
    assert chi.known
    assert alpha.known  # these are small
    assert len(network.centres(ttl).indices) <= alpha.least


def test_a_path_needs_one_clique_for_each_ttl_plus_one_agents():
    for ttl in (1, 2, 3):
        chi = cb.theory.clique_cover_number(cb.Network.path(10), ttl)
        assert chi.least == chi.most == -(-10 // (ttl + 1))
