"""The picture of the network: hops as distances, names that are readable, records on their way."""

import itertools

import pytest

from fleet.http.page.browsing import opened, shown, wait_for_text

PICTURE = "#network-picture"


def places(tab):
    return tab.eval_on_selector_all(
        "circle.site", "all => all.map((c) => [c.getAttribute('cx'), c.getAttribute('cy')])"
    )


def test_a_record_goes_hop_by_hop(browser, node, feeder):
    world = feeder.World(["a", "b", "c"], [("a", "b"), ("b", "c")])
    one = node(world)
    path = "import('./travel.js')"
    with opened(browser, one) as tab:
        tab.evaluate(
            f"{path}.then(({{ Travel }}) => {{ window.paths = []; const go = Travel.prototype.go;"
            " Travel.prototype.go = function (path, kind) { paths.push([path, kind]);"
            " return go.call(this, path, kind); }; })"
        )
        one.note("sent", to="b", origin="a", first=1, last=1)
        one.note("received", via="b", origin="c", first=1, last=2)
        tab.wait_for_selector(".moving .others .dot", state="attached")
        assert tab.evaluate("paths") == [[["a", "b"], "mine"], [["c", "b", "a"], "others"]]
        tab.wait_for_function("() => !document.querySelector('.moving').children.length")


def test_nothing_moves_for_those_who_want_no_motion(browser, node, feeder):
    one = node(feeder.World(["a", "b"], [("a", "b")]))
    with opened(browser, one, motion="reduce") as tab:
        one.note("sent", to="b", origin="a", first=1, last=1)
        tab.wait_for_selector(".moving .flash", state="attached")
        assert tab.locator(".moving .dot").count() == 0


def test_the_network_is_drawn_alike_after_a_reload(browser, node, feeder):
    one = node(feeder.world_of(40))
    with opened(browser, one) as tab:
        before = places(tab)
        tab.reload()
        tab.wait_for_selector("circle.site", state="attached")
        assert places(tab) == before
        assert len({tuple(place) for place in before}) == 40


def test_hops_show_as_distances(browser, node, feeder):
    """A path is drawn as a line: what is further in hops is further on the page."""
    names = list("abcdef")
    with opened(browser, node(feeder.World(names, list(itertools.pairwise(names))))) as tab:
        points = tab.evaluate(
            "import('./layout.js').then(({ placed }) => Object.fromEntries(placed("
            "['a','b','c','d','e','f'],"
            " [['a','b'],['b','c'],['c','d'],['d','e'],['e','f']])))"
        )
    (x, y), others = points["a"], [points[name] for name in names[1:]]
    for hops, (other_x, other_y) in enumerate(others, 1):
        assert ((x - other_x) ** 2 + (y - other_y) ** 2) ** 0.5 == pytest.approx(hops, rel=0.05)


def test_one_site_alone_and_sites_apart_are_drawn(browser, node, feeder):
    for world in (feeder.World(["a"], []), feeder.World(["a", "b", "c"], [("a", "b")])):
        with opened(browser, node(world)) as tab:
            assert tab.locator("circle.site").count() == len(world.names)
            assert "NaN" not in tab.locator("#network-picture").inner_html()


def titles(tab):
    return tab.eval_on_selector_all(
        "circle.site title", "all => all.map((title) => title.textContent)"
    )


def test_what_no_path_leads_to_takes_little_of_the_picture(browser, node, feeder):
    joined = feeder.world_of(12)
    apart = feeder.World([*joined.names, "Isolated"], list(joined.graph.edges))
    assert apart.hops.get("Isolated") is None
    spans = {}
    for world in (joined, apart):
        with opened(browser, node(world)) as tab:
            there = [
                [float(value) for value in place]
                for place, title in zip(places(tab), titles(tab), strict=True)
                if "no path" not in title
            ]
            assert len(there) == 12
            spans[world] = max(max(axis) - min(axis) for axis in zip(*there, strict=True))
            if world is apart:
                wait_for_text(tab, "#unheard", "Isolated, where no path leads")
    assert spans[apart] > 0.8 * spans[joined]


@pytest.mark.parametrize("sites", [2, 5, 12])
def test_names_are_above_what_moves_and_no_edge_runs_through_them(browser, node, feeder, sites):
    with opened(browser, node(feeder.world_of(sites))) as tab:
        assert tab.locator(f"{PICTURE} text.name").count() == sites
        assert tab.evaluate(
            "document.querySelector('.moving').compareDocumentPosition("
            "document.querySelector('text.name')) & Node.DOCUMENT_POSITION_FOLLOWING"
        )
        covered = tab.evaluate("""() => {
          const points = [...document.querySelectorAll("line.link")].map((line) =>
            ["x1", "y1", "x2", "y2"].map((key) => Number(line.getAttribute(key))));
          const path = document.querySelector("path.edges").getAttribute("d");
          for (const edge of path.split("M").slice(1)) points.push(edge.split(/[L,]/).map(Number));
          const along = [...Array(201).keys()].map((k) => k / 200);
          return [...document.querySelectorAll("text.name")].filter((text) => {
            const { x, y, width, height } = text.getBBox();
            return points.some(([x1, y1, x2, y2]) => along.some((part) => {
              const [at, down] = [x1 + part * (x2 - x1), y1 + part * (y2 - y1)];
              return at > x + 2 && at < x + width - 2 && down > y + 3 && down < y + height - 3;
            }));
          }).map((text) => text.textContent);
        }""")
        assert covered == []


def test_two_sites_take_a_low_picture(browser, node, feeder):
    heights = []
    for sites in (2, 12):
        with opened(browser, node(feeder.world_of(sites))) as tab:
            heights.append(tab.locator(f"{PICTURE} svg").bounding_box()["height"])
            [one, other] = places(tab)[:2]
            if sites == 2:
                assert float(one[1]) == pytest.approx(float(other[1]), abs=4)
    assert heights[0] < heights[1] / 2


@pytest.mark.slow
def test_links_that_are_down_are_all_named(browser, node, feeder):
    world = feeder.World(list("abcd"), [("a", "b"), ("a", "c"), ("a", "d")])
    one = node(world)
    with opened(browser, one) as tab:
        world.linked |= {"b": False}
        wait_for_text(tab, "#network-words", "The link to b is down.")
        assert shown(tab, "#links-under") == "b is not reached"
        world.linked |= {"c": False}
        wait_for_text(tab, "#network-words", "The links to b and c are down.")
        assert shown(tab, "#links-value") == "1 of 3 up"
        assert shown(tab, "#links-under") == "b and c are not reached"
        assert tab.locator("line.link.down").count() == 2
