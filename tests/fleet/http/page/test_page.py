"""The page of a node in a real browser: it shows what is so, follows it, and stays bounded."""

import itertools

import pytest

from fleet.http.page.browsing import opened, shown, wait_for_text

HOSTILE = [
    "home",
    "</script><script>window.broken=1</script>",
    '"><img src=x onerror="window.broken=1">',
    "__proto__",
    "<b>bold</b> & 'quoted'",
    "averyveryverylongnamewithoutanyspacesinitthatwouldnotfitonaphone",
]


def test_the_page_shows_every_site_and_figure(browser, node, feeder):
    world = feeder.world_of(12)
    world.refused = {"wrong signature": 3, "another policy": 1}
    world.records[world.node] = 7
    with opened(browser, node(world)) as tab:
        assert tab.title() == f"{world.node} · demo"
        assert tab.locator("circle.site").count() == 12
        assert tab.locator("circle.site.unheard").count() == 12 - 1 - len(world.worth)
        assert tab.locator("line.link").count() == len(world.linked)
        assert tab.locator("#site-rows tr").count() == 12
        assert shown(tab, "#refused-value") == "4"
        assert "wrong signature: 3" in shown(tab, "#refused-under")
        rows = tab.locator("#trust-bars tr").all()
        drawn = {
            row.locator("th").inner_text(): row.locator("td").nth(1).inner_text() for row in rows
        }
        assert drawn == {name: f"{value:.2f}" for name, value in world.worth.items()}
        words = tab.evaluate("document.body.innerText")
        assert not any(word in words for word in ("NaN", "undefined", "null", "[object"))


def test_not_heard_is_told_from_worth_nothing(browser, node, feeder):
    world = feeder.World(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "d")], ttl=2)
    world.worth = {"b": 0.0, "c": 1.0}
    with opened(browser, node(world)) as tab:
        wait_for_text(tab, "#unheard", "Not heard: d, further than γ = 2 hops away.")
        cells = {
            row.locator("th > span").inner_text(): row.locator("td").nth(2).inner_text()
            for row in tab.locator("#site-rows tr").all()
        }
        assert cells == {"a": "1.00", "b": "0.00", "c": "1.00", "d": "not heard"}
        assert tab.locator("#trust-bars tr").count() == 2


def test_a_reward_that_is_posted_changes_the_page(browser, node, feeder):
    one = node(feeder.world_of(5))
    with opened(browser, one) as tab:
        assert shown(tab, "#learner-count") == "0"
        for value in (0.25, 0.75):
            one.reward(value)
        wait_for_text(tab, "#learner-count", "2")
        assert float(shown(tab, "#learner-mean")) == pytest.approx(0.5, abs=0.05)
        wait_for_text(tab, "#routine-list", "closed with reward 0.75")
        assert tab.locator("#reward-charts path.line.learner").count() == 1
        for value in (0.5, 0.0):
            one.reward(value, "control")
        wait_for_text(tab, "#control-count", "2")
        assert float(shown(tab, "#difference-mean")) == pytest.approx(0.25, abs=0.05)
        assert tab.locator("#reward-charts path.line.difference").count() == 1


def test_the_page_survives_a_restart_of_the_node(browser, node, feeder):
    one = node(feeder.world_of(5))
    with opened(browser, one, lost=True) as tab:
        one.stop()
        tab.wait_for_selector("#lost:not([hidden])")
        assert "does not answer since" in shown(tab, "#lost")
        assert tab.title().startswith("✕")
        one.world.started_at += 60
        one.start()
        tab.wait_for_selector("#lost[hidden]", state="attached")
        tab.wait_for_selector("[data-state=live]")
        assert not tab.title().startswith("✕")
        wait_for_text(tab, "#notes", "The node was started again.")
        one.reward(1.0)  # notes are heard again, too
        wait_for_text(tab, "#routine-list", "closed with reward 1")


def test_a_flood_of_notes_leaves_the_page_bounded(browser, node, feeder):
    one = node(feeder.World(["a", "b"], [("a", "b")]))
    with opened(browser, one) as tab:
        for place in range(1500):
            one.note("sent", to="b", origin="a", first=place, last=place)
        one.note("refused", reason="the last", neighbour="b")
        wait_for_text(tab, "#notes", "the last")
        assert tab.locator(".moving > *").count() <= 180
        assert tab.locator("#notes li").count() == 1
        assert "1,500 batches of records handed on" in shown(tab, "#routine-list")
        tab.locator("label", has_text="all").click()
        assert tab.locator("#notes li").count() == 50


def test_histories_are_bounded_and_keep_both_ends(browser, node, feeder):
    with opened(browser, node(feeder.world_of(3))) as tab:
        sizes, ends = tab.evaluate(
            "import('./history.js').then(({ Series }) => { const s = new Series(50);"
            " const sizes = []; for (let at = 0; at < 20000; at += 1) { s.push({ at });"
            " sizes.push(s.samples.length); } return [Math.max(...sizes),"
            " [s.samples[0].at, s.samples.at(-1).at, s.samples.length]]; })"
        )
        assert sizes <= 50
        assert ends[:2] == [0, 19999]
        assert ends[2] > 20


def test_names_are_text_and_never_run(browser, node, feeder):
    world = feeder.World(HOSTILE, list(itertools.pairwise(HOSTILE)), ttl=9)
    world.quarantined, world.refused = [HOSTILE[1]], {HOSTILE[2]: 1}
    world.worth = dict.fromkeys(HOSTILE[1:], 0.5)
    one = node(world)
    with opened(browser, one, width=390) as tab:
        for name in HOSTILE:
            one.note("decided", event_id=name, action=name, group=name, propensity=0.5)
        one.note(HOSTILE[1], reason=HOSTILE[2])
        wait_for_text(tab, "#routine-list", "averyvery")
        tab.locator("label", has_text="all").click()
        wait_for_text(tab, "#notes", "onerror")
        wait_for_text(tab, "#quarantine", HOSTILE[1])
        assert tab.locator("#trust-bars tr").count() == len(HOSTILE) - 1
        assert tab.evaluate("window.broken") is None
        assert tab.locator("main script, main img, main b").count() == 0
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("sites", [5, 40])
def test_a_phone_needs_no_sideways_scrolling(browser, node, feeder, sites):
    with opened(browser, node(feeder.world_of(sites)), width=390) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.locator("#network-picture svg").bounding_box()["width"] > 300


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(browser, node, feeder, scheme):
    world = feeder.world_of(40)
    world.quarantined, world.mode = [next(iter(world.worth))], "apprentice"
    with opened(browser, node(world), scheme=scheme) as tab:
        low, looked_at = tab.evaluate(CONTRASTS)
        assert low == []
        assert looked_at > 100
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 384) == (scheme == "dark")


CONTRASTS = """(() => {
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
  };
  const low = [];
  let count = 0;
  for (const e of document.querySelectorAll("body *")) {
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!text || !e.getClientRects().length || e.closest("title, .unseen, .skip")) continue;
    const style = getComputedStyle(e);
    const ink = parts(e.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    count += 1;
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(e.outerHTML.slice(0, 120));
  }
  return [low, count];
})()"""


def test_asking_does_not_pile_up(browser, node, feeder):
    one = node(feeder.world_of(3))
    with opened(browser, one) as tab:
        one.asked.clear()
        for _ in range(20):
            one.reward(0.5)
            tab.wait_for_timeout(50)
        tab.wait_for_timeout(1000)
        # notes hasten the next asking, but to no more than one in 0.7 s, seen at ticks of 0.5 s
        assert 1 <= one.asked.count("/v1/status") <= 4
        assert len(one.listeners) == 1
