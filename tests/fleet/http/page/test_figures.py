"""The figures of a page: they agree with each other, and say what is not known yet."""

import pytest

from fleet.http.page.browsing import opened, shown, wait_for_text


def trend_ends(tab):
    """Where each site's course of K_z ends, in pixels from its top."""
    return tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#trust-bars tr')].map((row) =>"
        " [row.children[0].textContent, Number(row.querySelector('circle').getAttribute('cy'))]))"
    )


def test_figures_of_one_answer_agree_at_any_time(browser, node, feeder):
    world = feeder.World(["a", "b"], [("a", "b")])
    one = node(world)
    with opened(browser, one) as tab:
        tab.evaluate("""() => {
          window.seen = new Set();
          const number = (place) => parseInt(document.querySelector(place).textContent);
          const look = () => {
            seen.add(JSON.stringify([number("#learnt-value"), number("#about-records"),
              number("#site-rows tr.own td:nth-of-type(4)")]));
            requestAnimationFrame(look);
          };
          look();
        }""")
        for count in range(1, 4):
            world.records["a"] = count
            one.note("recorded", sequence=count, round=count)
            wait_for_text(tab, "#about-records", f"{count} own")
            tab.wait_for_timeout(50)
        counts = sorted(tab.evaluate("[...seen].map(JSON.parse)"))
    assert counts == [[count, count, count] for count in range(4)]


def test_the_course_of_a_trust_ends_at_its_value(browser, node, feeder):
    world = feeder.World(["a", "b", "c"], [("a", "b"), ("a", "c")])
    world.worth = {"b": 0.2, "c": 0.9}
    one = node(world)
    with opened(browser, one) as tab:
        ends = trend_ends(tab)
        assert ends["b"] > ends["c"]
        world.worth["c"] = 0.2
        one.note("adopted", version="2", observations=1)
        wait_for_text(tab, "#trust-bars", "−0.70")
        ends = trend_ends(tab)
        assert ends["b"] == ends["c"]


def test_zeros_from_next_to_nothing_are_no_estimate(browser, node, feeder):
    world = feeder.World(["a", "b", "c"], [("a", "b"), ("b", "c")])
    world.worth, world.estimated_from = {"b": 0.0, "c": 0.0}, 2
    with opened(browser, node(world)) as tab:
        assert "Not estimated yet" in shown(tab, "#trust")
        assert "observation" not in shown(tab, "#trust-words")
        assert tab.locator("#trust-table").is_hidden()
        assert tab.locator("#site-rows td", has_text="not yet").count() == 2
        world.estimated_from = 200
        wait_for_text(tab, "#trust-words", "Estimated from 200 observations.")
        assert tab.locator("#trust-bars tr").count() == 2
        assert tab.locator("#not-yet").is_hidden()
        assert tab.locator("#site-rows td", has_text="0.00").count() == 2


@pytest.mark.slow
def test_a_control_group_without_rewards_is_not_said_to_be_missing(browser, node, feeder):
    world = feeder.World(["a", "b"], [("a", "b")])
    one = node(world)
    with opened(browser, one) as tab:
        for value in (0.25, 0.75, 1.0):
            one.reward(value)
        wait_for_text(tab, "#learner-count", "3")
        assert "makes one" in shown(tab, "#reward-words")
        assert tab.locator("#control-row").is_hidden()
        world.control_share = 0.1
        wait_for_text(tab, "#reward-words", "10% of the events, has no reward yet")
        assert shown(tab, "#mean-under") == "no reward of the control group yet"
        assert shown(tab, "#control-count") == "0"
        one.reward(0.5, "control")  # of one reward, no interval is known
        wait_for_text(tab, "#reward-words", "too few rewards")
        assert shown(tab, "#mean-under") == "too few rewards to compare"
        assert tab.locator("#difference-row").is_hidden()
        assert tab.locator("path.line.difference").count() == 0
        one.reward(0.25, "control")
        tab.wait_for_selector("path.line.difference", state="attached")
        assert shown(tab, "#difference-mean").startswith("+0.")
        assert "against the control group" in shown(tab, "#mean-under")


@pytest.mark.parametrize(("mode", "who"), [("apprentice", "An outside"), ("off", "A fixed")])
def test_what_another_policy_earned_is_not_the_learners(browser, node, feeder, mode, who):
    world = feeder.World(["a", "b"], [("a", "b")])
    world.mode = mode
    one = node(world)
    with opened(browser, one) as tab:
        for value in (2.0, 4.0):
            one.reward(value, "baseline")
        wait_for_text(tab, "#baseline-count", "2")
        assert shown(tab, "#mean-name") == "Mean reward, baseline"
        assert shown(tab, "#mean-value").startswith("3")
        assert "not the learner" in shown(tab, "#mean-under")
        assert shown(tab, "#reward-words").startswith(f"{who} policy decides")
        assert tab.locator("#learner-row").is_hidden()
        assert tab.locator("path.line.baseline").count() == 1
        world.mode = "online"
        one.reward(1.0)
        wait_for_text(tab, "#learner-count", "1")
        assert shown(tab, "#mean-name") == "Mean reward, learner"
        assert shown(tab, "#mean-value").startswith("1")
        assert shown(tab, "#baseline-count") == "2"


def test_a_list_that_is_cut_says_so(browser, node, feeder):
    names = [f"site {number}" for number in range(30)]
    world = feeder.World(names, [(names[0], name) for name in names[1:]])
    with opened(browser, node(world)) as tab:
        assert tab.locator("#trust-bars tr").count() == 29
        tab.wait_for_selector("#trust.more-below")
        tab.evaluate("document.querySelector('#trust').scrollTop = 1e6")
        tab.wait_for_selector("#trust:not(.more-below)")
        assert tab.locator("#site-rows tr").count() < 30
        tab.locator("button", has_text="Show all 30 sites").click()
        assert tab.locator("#site-rows tr").count() == 30
        tab.locator("button", has_text="nearest").click()
        assert tab.locator("#site-rows tr").count() < 30


def test_no_table_is_wider_than_a_phone(browser, node, feeder):
    world = feeder.world_of(12)
    world.control_share = 0.1
    world.records = dict.fromkeys(world.names, 1_234_567)
    world.last = dict.fromkeys(world.names, world.started_at - 100_000)
    one = node(world)
    with opened(browser, one, width=390) as tab:
        for value in (-123.456, 654.321, 5.0):
            one.reward(value)
            one.reward(-value, "control")
        wait_for_text(tab, "#control-count", "3")
        wider = tab.eval_on_selector_all(
            ".scroll", "all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.id)"
        )
        assert wider == []
        row = tab.locator("#site-rows tr").nth(1).inner_text()
        assert "1,234,567" in row
        assert "1 d 3 h ago" in row


def test_routine_is_counted_and_ids_are_cut(browser, node, feeder):
    one = node(feeder.World(["a", "b"], [("a", "b")]))
    event = "0123456789abcdef0123456789abcdef"
    with opened(browser, one) as tab:
        for _ in range(3):
            one.note("decided", event_id=event, action="x", group="learner", propensity=0.5)
        wait_for_text(tab, "#routine-list", "3 decisions")
        row = tab.locator("#routine-list li")
        assert row.count() == 1
        assert event not in row.inner_text()
        assert event[:6] in row.inner_text()
        assert event in row.get_attribute("title")
        assert shown(tab, "#no-notes").startswith("Nothing out of the ordinary")
        one.note("linked", neighbour="b", up=False)
        wait_for_text(tab, "#notes", "The link to b is down.")
