"""Synthetic listeners in the files' format, and the published counts of the real ones."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import real_data
from coopbandits.errors import InputError, MissingExtraError, NetworkError, ParameterError
from coopbandits.lab import lastfm
from coopbandits.lab.datasets import columns, lastfm as module, text_features

REAL = real_data.data_set("hetrec2011-lastfm-2k")
there = real_data.needs(REAL)

SMALL = {"dim": 4, "agents": 6, "rounds": 5, "candidates": 8}


def written(folder, name, header, rows):
    lines = ["\t".join(header), *("\t".join(map(str, row)) for row in rows)]
    (folder / name).write_text("".join(line + "\r\n" for line in lines))


@pytest.fixture
def folder(tmp_path):
    """Twelve users on a ring with chords, 60 artists of whom ten have no tags."""
    rng = np.random.default_rng(5)
    users = [3 * u + 7 for u in range(12)]
    artists = [100 + 2 * a for a in range(60)]
    tagged = artists[:50]
    listens = []
    for user in users:
        known = [*rng.choice(tagged, 9, replace=False), *rng.choice(artists[50:], 3, replace=False)]
        listens += [(user, artist, rng.integers(1, 999)) for artist in known]
    ring = {(u, (u + 1) % 12) for u in range(12)} | {(0, 5), (2, 9), (3, 8)}
    friends = [pair for u, v in ring for pair in ((users[u], users[v]), (users[v], users[u]))]
    tags = [
        (users[rng.integers(12)], artist, rng.integers(1, 26), 1, 4, 2009)
        for artist in tagged
        for _ in range(8)
    ]
    rng.shuffle(listens)
    written(tmp_path, "user_artists.dat", ["userID", "artistID", "weight"], listens)
    written(tmp_path, "user_friends.dat", ["userID", "friendID"], sorted(friends))
    header = ["userID", "artistID", "tagID", "day", "month", "year"]
    written(tmp_path, "user_taggedartists.dat", header, tags)
    return tmp_path


def pairs(folder, name):
    """The first two columns of a file, read in another way."""
    lines = (folder / name).read_text().splitlines()[1:]
    return [tuple(int(text) for text in line.split("\t")[:2]) for line in lines]


def artists_offered(problem, folder, dim):
    """Who was offered whom: (T, V, A) artists by number, found by their features."""
    artists, features = module._artists(str(folder), dim)
    by_features = {row.tobytes(): int(name) for name, row in zip(artists, features, strict=True)}
    assert len(by_features) == len(artists), "features tell these artists apart"
    V = len(problem.network)
    return np.array(
        [
            np.array([by_features[x.tobytes()] for x in offer.contexts]).reshape(V, -1)
            for offer in problem.rounds
        ]
    )


def content(problem):
    parts = [part for one in problem.rounds for part in (one.contexts, one.rewards)]
    return b"".join(part.tobytes() for part in parts), problem.network.names


def test_a_problem_has_the_shapes_that_were_asked_for(folder):
    problem = lastfm(folder, **SMALL)
    assert (len(problem.network), problem.horizon) == (6, 5)
    for offer in problem.rounds:
        assert offer.contexts.shape == (6 * 8, 4)
        assert offer.sizes.tolist() == [8] * 6
        np.testing.assert_allclose(np.linalg.norm(offer.contexts, axis=1), 1.0, atol=1e-12)


def test_one_candidate_brings_1_and_it_is_the_only_one_that_the_user_listens_to(folder):
    problem = lastfm(folder, **SMALL | {"rounds": 40})
    offered = artists_offered(problem, folder, 4)
    listens = set(pairs(folder, "user_artists.dat"))
    places = set()
    for t, offer in enumerate(problem.rounds):
        rewards = offer.rewards.reshape(6, 8)
        for v, user in enumerate(map(int, problem.network.names)):
            liked = [float((user, artist) in listens) for artist in offered[t, v].tolist()]
            assert liked == rewards[v].tolist()
            assert sum(liked) == 1
            assert len(set(offered[t, v].tolist())) == 8, "no artist is offered twice at once"
            places.add(liked.index(1.0))
    assert places == set(range(8)), "the place of the right one tells nothing"


def test_only_artists_with_tags_are_offered(folder):
    offered = artists_offered(lastfm(folder, **SMALL | {"rounds": 60}), folder, 4)
    tagged = {artist for _, artist in pairs(folder, "user_taggedartists.dat")}
    assert set(offered.ravel().tolist()) == tagged


def test_the_network_is_the_friend_graph_among_the_sampled_users(folder):
    network = lastfm(folder, **SMALL | {"agents": 7}).network
    friends = set(pairs(folder, "user_friends.dat"))
    users = [int(name) for name in network.names]
    expected = {
        (i, j) for i in range(7) for j in range(i + 1, 7) if (users[i], users[j]) in friends
    }
    assert set(network.edges) == expected
    assert len(network.components) == 1


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(folder):
    first = content(lastfm(folder, **SMALL, seed=1))
    assert first == content(lastfm(str(folder), **SMALL, seed=1))
    assert first != content(lastfm(folder, **SMALL, seed=2))
    # also of what is offered, not of the users alone
    right = [
        [one.rewards.tolist() for one in lastfm(folder, **SMALL, seed=s).rounds] for s in (1, 2)
    ]
    assert right[0] != right[1]


def test_compressed_files_give_the_same_problem(folder, tmp_path_factory):
    packed = tmp_path_factory.mktemp("packed")
    for file in folder.iterdir():
        (packed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert content(lastfm(packed, **SMALL)) == content(lastfm(folder, **SMALL))


@pytest.mark.parametrize("name", ["user_artists.dat", "user_friends.dat", "user_taggedartists.dat"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (Path.unlink, r"no {name} or {name}\.gz in .*; expected the data set's folder"),
        (lambda file: file.write_text("a\tb\n1\t2\n"), "{name} has no column '.*'.* names a, b"),
        (
            lambda file: file.write_text(file.read_text().splitlines()[0] + "\n"),
            "{name} has no rows",
        ),
        (
            lambda file: file.write_text(file.read_text() + "x\tx\tx\n"),
            "{name}, row .*is 'x'; expected a whole number",
        ),
        (
            lambda file: file.rename(file.with_suffix(".dat.gz")),
            r"{name}\.gz is damaged, or no table of columns .*fetch it anew",
        ),
    ],
    ids=["missing", "other columns", "no rows", "no number", "no gzip"],
)
def test_a_file_that_is_missing_or_damaged_is_one_clear_error(folder, name, damage, message):
    damage(folder / name)
    with pytest.raises(InputError, match=message.replace("{name}", name.replace(".", r"\."))):
        lastfm(folder, **SMALL)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"candidates": 26},
            ParameterError,
            "candidates=26, but only 50 artists have tags; .*half",
        ),
        ({"candidates": 1}, ParameterError, "candidates"),
        ({"dim": 30}, ParameterError, "dim=30, but 50 documents with 25 terms have at most 24"),
        ({"dim": 0}, ParameterError, "dim"),
        ({"rounds": 0}, ParameterError, "rounds"),
        ({"agents": 13}, NetworkError, "agents=13, but the largest connected part has 12 nodes"),
        ({"seed": -1}, ParameterError, "seed"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(folder, options, kind, message):
    with pytest.raises(kind, match=message):
        lastfm(folder, **SMALL | options)


def test_a_user_without_a_tagged_artist_is_named(folder):
    user, _ = pairs(folder, "user_friends.dat")[0]
    rows = [(u, artist, 1) for u, artist in pairs(folder, "user_artists.dat") if u != user]
    written(folder, "user_artists.dat", ["userID", "artistID", "weight"], rows)
    with pytest.raises(InputError, match=f"user {user} listens to no artist with tags; try anothe"):
        lastfm(folder, **SMALL | {"agents": 12})


def test_without_scikit_learn_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setattr(text_features, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"coopbandits\[datasets\]"):
        lastfm(folder, **SMALL)


@there
def test_the_real_files_have_the_published_counts():
    user, artist = columns.whole_numbers(
        REAL / "user_artists.dat.gz", ["userID", "artistID"], delimiter="\t"
    )
    assert (len(user), len(set(user.tolist())), len(set(artist.tolist()))) == (
        92_834,
        1_892,
        17_632,
    )
    liked, friends = module._listens(str(REAL))
    assert (len(liked), len(friends.names), len(friends.edges)) == (1_892, 1_892, 12_717)
    (tag,) = columns.whole_numbers(REAL / "user_taggedartists.dat.gz", ["tagID"], delimiter="\t")
    assert len(tag) == 186_479
    tags = gzip.decompress((REAL / "tags.dat.gz").read_bytes())  # in Latin-1, and not read by us
    assert len(tags.splitlines()) - 1 == 11_946


@there
def test_real_users_are_offered_one_artist_that_they_listen_to():
    problem = lastfm(REAL, agents=20, rounds=4)
    with gzip.open(REAL / "user_artists.dat.gz", "rt", encoding="utf-8") as file:
        next(file)
        listens = {tuple(line.split("\t")[:2]) for line in file}
    artists, features = module._artists(str(REAL), 10)
    by_features = {}
    for name, row in zip(artists.tolist(), features, strict=True):
        by_features.setdefault(row.tobytes(), []).append(name)
    for offer in problem.rounds:
        assert offer.rewards.reshape(20, 25).sum(axis=1).tolist() == [1.0] * 20
        for x, reward, v in zip(offer.contexts, offer.rewards, offer.agents, strict=True):
            user = problem.network.names[v]
            liked = {(user, str(name)) in listens for name in by_features[x.tobytes()]}
            assert bool(reward) in liked  # several, where artists have the same tags


def test_a_user_that_listens_to_nearly_all_artists_is_named(folder):
    users = sorted({user for user, _ in pairs(folder, "user_artists.dat")})
    everyone = [(user, 100 + 2 * a, 1) for user in users for a in range(60)]
    written(folder, "user_artists.dat", ["userID", "artistID", "weight"], everyone)
    with pytest.raises(InputError, match=r"listens to all but 0 artists with tags, too few for"):
        lastfm(folder, **SMALL)
