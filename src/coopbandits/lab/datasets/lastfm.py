"""Last.fm listeners (HetRec 2011): friends who learn from each other which artists each likes.

Agents are users, their network the friend graph. In each round a user is offered one artist that it
listens to and others at random that it does not; the right one brings 1, the others 0. Artists have
features by latent semantic analysis of the tags that all users gave them.

The protocol is that of Cesa-Bianchi, Gentile & Zappella (A Gang of Bandits, 2013). The data are for
non-commercial use; cite Last.fm and HetRec 2011 (Cantador, Brusilovsky & Kuflik).
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from coopbandits.arrays import Array, IntArray, Seed, as_count, as_seed
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.datasets import columns, text_features
from coopbandits.lab.edge_lists import EdgeList
from coopbandits.problems import table
from coopbandits.problems.table import Recorded


def lastfm(
    path: str | Path,
    *,
    dim: int = 10,
    agents: int = 60,
    rounds: int = 60,
    candidates: int = 25,
    seed: Seed = 0,
    users: Seed | None = None,
) -> Recorded:
    """Make a problem of Last.fm listeners; needs `pip install 'coopbandits[datasets]'`.

    Args:
        path: The folder hetrec2011-lastfm-2k; its files may be compressed (`.gz`).
        dim: How many features an artist has.
        agents: How many users: a connected sample of the friend graph (`EdgeList.sample`).
        rounds: How many rounds.
        candidates: How many artists are offered, one of which the user listens to.
        seed: Of what users are offered, and of the sample of users unless `users` is given.
        users: Seed of the sample of users: with one and several seeds the same people play.
    """
    dim, rounds = as_count(dim, "dim"), as_count(rounds, "rounds", most=100_000)
    artists, features = _artists(str(path), dim)
    candidates = as_count(candidates, "candidates", least=2)
    if 2 * candidates > len(artists):
        raise ParameterError(
            f"candidates={candidates}, but only {len(artists):,} artists have tags; expected at "
            "most half as many"
        )
    liked, friends = _listens(str(path))
    network = friends.sample(agents, seed=seed if users is None else users)
    rng = np.random.default_rng([as_seed(seed), 23])
    V, A = len(network), candidates
    offered = np.empty((rounds, V, A), dtype=np.int64)
    rewards = np.zeros((rounds, V, A))
    for v in range(V):
        user = int(network.names[v]) if network.is_named else v
        known = np.searchsorted(artists, np.intersect1d(liked.get(user, []), artists))
        if not len(known):
            raise InputError(f"user {user} listens to no artist with tags; try another seed=")
        others = np.setdiff1d(np.arange(len(artists)), known)
        if len(others) < A:
            raise InputError(
                f"user {user} listens to all but {len(others)} artists with tags, too few for "
                f"candidates={A}; expected at most that many"
            )
        for t in range(rounds):
            place = rng.integers(A)
            offered[t, v] = rng.choice(others, size=A, replace=False)
            offered[t, v, place] = rng.choice(known)
            rewards[t, v, place] = 1.0
    return table(network, features[offered], rewards)


@lru_cache(maxsize=4)
def _artists(path: str, dim: int) -> tuple[IntArray, Array]:
    """Return artists with tags by number, in order, and their features: (n,), (n, dim)."""
    file = columns.find(path, "user_taggedartists.dat")
    artist, tag = columns.whole_numbers(file, ["artistID", "tagID"], delimiter="\t")
    artists, i = np.unique(artist, return_inverse=True)
    tags, j = np.unique(tag, return_inverse=True)
    counts = csr_array((np.ones(len(i)), (i, j)), shape=(len(artists), len(tags)))
    features = text_features.of_counts(counts, dim)
    described = (features != 0).any(axis=1)
    return artists[described], features[described]


@lru_cache(maxsize=2)
def _listens(path: str) -> tuple[dict[int, IntArray], EdgeList]:
    """Return which artists each user listens to, and who is whose friend."""
    file = columns.find(path, "user_artists.dat")
    user, artist = columns.whole_numbers(file, ["userID", "artistID"], delimiter="\t")
    users = np.unique(user)
    order = np.argsort(user, kind="stable")
    starts = np.searchsorted(user[order], users)
    liked = dict(zip(users.tolist(), np.split(artist[order], starts[1:]), strict=True))
    file = columns.find(path, "user_friends.dat")
    ends = np.stack(columns.whole_numbers(file, ["userID", "friendID"], delimiter="\t"), axis=1)
    names, places = np.unique(ends, return_inverse=True)
    edges = np.sort(places.reshape(-1, 2), axis=1)
    return liked, EdgeList(names, np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0))
