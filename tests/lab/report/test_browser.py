"""The page in a real browser: it loads, it can be worked by keys, and it fits."""

import re
import shutil
from contextlib import contextmanager
from dataclasses import replace

import pytest

from coopbandits.lab.report.colours import contrast
from coopbandits.lab.report.page import page

HOSTILE = [
    "</script><script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 1">',
    "__proto__",
    "{{script}} & <b>bold</b> 'quoted'",
    "averyveryverylongnamewithoutanyspacesinitthatwouldnotfitonaphone",
]
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHARTS = "#regret-chart, #difference-chart, #costs, #worth-chart, #maps"


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    with sync.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        started.new_context().new_page()
        yield started
        started.close()


@pytest.fixture(scope="module")
def real_page(real_run, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_bytes(page(real_run))
    return file


def wait_until(tab, expression):
    """Wait until an expression holds; the page's own policy forbids Playwright to poll it there."""
    for _ in range(1000):
        if tab.evaluate(f"Boolean({expression})"):
            return
        tab.wait_for_timeout(10)
    raise AssertionError(f"not true within ten seconds: {expression}")


@contextmanager
def opened(browser, file, *, width=1200, scheme="light"):
    """Open a page; whatever it complains of or asks for beside itself fails the test."""
    tab = browser.contexts[0].pages[0]  # one for all tests: a new one takes longer than most
    complaints, asked = [], []
    listeners = {
        "console": lambda message: complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        "request": lambda request: asked.append(request.url),
    }
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    tab.mouse.move(0, 0)
    for event, listener in listeners.items():
        tab.on(event, listener)
    try:
        tab.goto(file.as_uri())
        wait_until(
            tab, "!RUN.panels.length || !RUN.panels[0].similarity || byId('maps').children.length"
        )
        yield tab
        tab.evaluate("1")  # what was said until now has arrived
    finally:
        for event, listener in listeners.items():
            tab.remove_listener(event, listener)
    assert complaints == []
    assert asked == [file.as_uri()]


def drawn(tab, place):
    """In which charts is a policy drawn?"""
    return tab.eval_on_selector_all(
        CHARTS,
        "(hosts, place) => hosts.filter((host) => host.querySelector(`[data-series='${place}']`))"
        ".map((host) => host.id)",
        place,
    )


def shown_text(tab):
    return tab.evaluate(
        "[...document.querySelectorAll('body *')].filter((e) => !e.closest('script, style, #toml'))"
        ".flatMap((e) => [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data)"
        ".concat([...e.attributes].map((a) => a.value))).join('\\n')"
    )


def assert_no_broken_numbers(tab):
    text = shown_text(tab)
    for word in ("NaN", "undefined", "null", "Infinity", "[object"):
        assert word not in text


def test_the_page_draws_everything_and_is_not_blank(browser, real_page):
    with opened(browser, real_page) as tab:
        assert tab.title() == "A small run"
        assert tab.locator("#picker [role=tab]").count() == 4
        assert tab.locator("#regret-chart path.line").count() == 4
        assert tab.locator("#regret-chart path.band").count() == 4
        assert tab.locator("#difference-chart path.line").count() == 3
        assert tab.locator("#costs svg").count() == 3
        assert tab.locator("#costs [data-series]").count() == 12
        assert tab.locator("#maps canvas").count() == 3  # the truth, and two who learn
        assert tab.locator("#graph circle").count() == 8
        assert tab.locator("#finals tbody tr").count() == 4
        assert 'kind = "clustered_linear"' in tab.locator("#toml").inner_text()
        assert_no_broken_numbers(tab)
        colours = tab.evaluate(
            "(() => { const c = document.querySelector('#maps canvas'); const p ="
            " c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            " return new Set(Array.from({length: p.length / 4}, (_, i) =>"
            " p.slice(4 * i, 4 * i + 4).join())).size; })()"
        )
        assert colours >= 2  # alike and strangers
        picture = tab.screenshot(full_page=True)
        tab.evaluate("document.body.hidden = true")
        assert len(picture) > 5 * len(tab.screenshot())


def test_the_table_says_what_the_data_say(browser, real_page):
    with opened(browser, real_page) as tab:
        series = tab.evaluate("RUN.panels[0].series")
        for row, one in enumerate(series):
            cells = tab.locator("#finals tbody tr").nth(row).locator("td")
            value, half = one["final"]
            assert cells.nth(0).inner_text().strip() == f"{value:.2f} ± {half:.2f}"
            head = tab.locator("#finals tbody tr").nth(row).locator("th").inner_text()
            assert head.split("\n")[-1] == f"{one['engine']}, 3 trials"
        assert (
            tab.locator("#finals tbody tr").nth(0).locator("td").nth(1).inner_text() == "baseline"
        )


def test_a_legend_button_hides_its_policy_in_every_chart(browser, real_page):
    with opened(browser, real_page) as tab:
        button = tab.locator("[data-toggle='2']")  # learns K_z: it is in all charts
        everywhere = ["regret-chart", "difference-chart", "costs", "maps", "worth-chart"]
        assert drawn(tab, 2) == everywhere
        assert button.get_attribute("aria-pressed") == "true"
        button.click()
        wait_until(tab, "document.querySelectorAll('#maps canvas').length === 2")
        assert button.get_attribute("aria-pressed") == "false"
        assert drawn(tab, 2) == []
        assert drawn(tab, 1) == everywhere  # the others stay
        tab.locator("#picker [role=tab]").nth(1).click()  # and it is remembered elsewhere
        assert tab.locator("[data-toggle='2']").get_attribute("aria-pressed") == "false"
        tab.get_by_role("button", name="show all").click()
        wait_until(tab, "document.querySelectorAll('#maps canvas').length === 3")
        assert drawn(tab, 2) == everywhere


def test_hiding_everything_leaves_words_and_no_errors(browser, real_page):
    with opened(browser, real_page) as tab:
        for button in tab.locator("[data-toggle]").all():
            button.click()
        assert tab.locator("#regret-chart").inner_text() == "No policy is chosen in the legend."
        assert tab.locator("path.line:visible").count() == 0
        assert_no_broken_numbers(tab)


def test_all_of_it_works_by_keys(browser, real_page):
    with opened(browser, real_page) as tab:
        focus = "document.activeElement"
        tab.keyboard.press("Tab")  # the link that skips
        tab.keyboard.press("Tab")
        assert tab.evaluate(f"{focus}.id") == "tab-0"
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate(f"{focus}.id") == "tab-1"
        assert tab.locator("#tab-1").get_attribute("aria-selected") == "true"
        assert "sparse" in tab.locator("#network-h").inner_text()
        tab.keyboard.press("End")
        assert tab.evaluate(f"{focus}.id") == "tab-3"
        tab.keyboard.press("ArrowRight")  # round and round
        assert tab.evaluate(f"{focus}.id") == "tab-0"
        tab.keyboard.press("Tab")
        assert tab.evaluate(f"{focus}.dataset.toggle") == "0"
        assert tab.evaluate(f"getComputedStyle({focus}).outlineStyle") == "solid"
        tab.keyboard.press("Enter")
        assert tab.evaluate(f"{focus}.getAttribute('aria-pressed')") == "false"
        tab.keyboard.press("Space")
        assert tab.evaluate(f"{focus}.getAttribute('aria-pressed')") == "true"
        tab.locator("input[value=linear]").focus()
        tab.keyboard.press("ArrowRight")
        assert tab.locator("input[value=log]").is_checked()
        tab.keyboard.press("Tab")
        assert tab.evaluate(f"{focus}.getAttribute('role')") == "slider"
        assert tab.evaluate(f"{focus}.getAttribute('aria-valuenow')") == "12"
        tab.keyboard.press("ArrowLeft")
        assert tab.evaluate(f"{focus}.getAttribute('aria-valuenow')") == "11"
        one = tab.evaluate("RUN.panels[0].series[0]")
        told = f"alone {one['regret'][10]:.2f} ± {one['half'][10]:.2f}"
        assert told in tab.evaluate(f"{focus}.getAttribute('aria-valuetext')")
        assert tab.locator("#regret-read .at").inner_text().startswith("round 11")
        assert tab.locator("#difference-read .at").inner_text().startswith("round 11")
        tab.keyboard.press("Home")
        assert tab.evaluate(f"{focus}.getAttribute('aria-valuenow')") == "1"


def test_the_pointer_reads_the_nearest_round(browser, real_page):
    with opened(browser, real_page) as tab:
        box = tab.locator("#regret-chart svg").bounding_box()
        tab.mouse.move(box["x"] + 52, box["y"] + 60)
        assert tab.locator("#regret-read .at").inner_text().startswith("round 1\n")
        tab.mouse.move(box["x"] + box["width"] - 14, box["y"] + 60)
        assert tab.locator("#regret-read .at").inner_text().startswith("round 12")


def test_the_log_switch_changes_scales_and_shows_slopes(browser, real_page):
    with opened(browser, real_page) as tab:
        line = "#regret-chart path.line[data-series='0']"
        before = tab.locator(line).get_attribute("d")
        assert "slope" not in tab.locator("#regret-read").inner_text()
        tab.locator("label", has_text="log-log").click()
        assert tab.locator(line).get_attribute("d") != before
        slope = tab.evaluate("RUN.panels[0].series[0].slope")
        assert f"slope {slope:.2f}" in tab.locator("#regret-read").inner_text()
        assert tab.locator("#slope-note").is_visible()
        tab.locator("label", has_text="linear").click()
        assert tab.locator(line).get_attribute("d") == before


def test_columns_sort_both_ways(browser, real_page):
    with opened(browser, real_page) as tab:
        series = tab.evaluate("RUN.panels[0].series")
        up = [one["policy"] for one in sorted(series, key=lambda one: one["final"][0])]
        button = tab.locator("#finals [data-key=regret]")
        rows = "rows => rows.map((row) => Number(row.dataset.policy))"
        for expected, way in ((up, "ascending"), (up[::-1], "descending")):
            button.click()
            assert tab.eval_on_selector_all("#finals tbody tr", rows) == expected
            assert tab.locator(f"#finals th[aria-sort={way}] [data-key=regret]").count() == 1


def test_centres_are_marked_when_asked_for(browser, real_page):
    with opened(browser, real_page) as tab:
        network = tab.evaluate("RUN.networks[RUN.panels[0].network]")
        assert tab.locator("#graph circle.centre").count() == 0
        assert f"{network['cliqueCount']} clique" in tab.locator("#network-note").inner_text()
        tab.locator("label", has_text="centres").click()
        assert tab.locator("#graph circle.centre").count() == network["centreCount"]
        assert f"{network['centreCount']} centre" in tab.locator("#network-note").inner_text()


def test_a_charts_numbers_are_there_as_a_table(browser, real_page):
    with opened(browser, real_page) as tab:
        tab.locator("#regret summary").click()
        tab.locator("#regret-data tbody tr").first.wait_for()
        assert tab.locator("#regret-data tbody tr").count() == 12
        regret = tab.evaluate("RUN.panels[0].series[1].regret[4]")
        row = tab.locator("#regret-data tbody tr").nth(4).inner_text()
        assert f"{regret:.2f} ± " in row
        unnamed = tab.evaluate(
            "[...document.querySelectorAll('svg, canvas')].filter((e) => !e.closest("
            "'[aria-hidden=true], [aria-label]')).length"
        )
        assert unnamed == 0


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_sticks_out_on_a_phone(browser, real_page, width):
    with opened(browser, real_page, width=width) as tab:
        tab.locator("#regret summary").click()
        tab.locator("#regret-data tbody tr").first.wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        stuck = tab.evaluate(
            "(width) => [...document.querySelectorAll('main *, header *')].filter((e) =>"
            " !e.closest('.scroll') && e.getBoundingClientRect().right > width + 1)"
            ".map((e) => e.outerHTML.slice(0, 80))",
            width,
        )
        assert stuck == []


LONG = ["LinUCB", "Naive cooperation (LinUCB)", "Coop-KernelUCB, MeanEmbedding (paper)",
        "Eager-KernelUCB, Evidence"]  # fmt: skip


@pytest.fixture
def long_run(made_run, tmp_path):
    """Long names, and numbers of many digits."""
    store = made_run(policies=LONG, rounds=120_000, agents=400, learners=LONG[3:])
    for task in store.experiment.tasks:
        record = store.record(task)
        grown = {"regret": 1e3 * record.regret, "messages": 10**9 * record.messages}
        store.add(task, replace(record, **grown, bytes=10**10 * record.bytes, seconds=9e5))
    file = tmp_path / "long.html"
    file.write_bytes(page(store.folder))
    return file


def beyond(tab):
    """Whether the final table goes on to the right, and whether that is said."""
    wider = tab.evaluate("byId('finals').scrollWidth - byId('finals').clientWidth")
    return wider > 0, tab.locator(".hint").evaluate("e => getComputedStyle(e).visibility")


def test_the_final_table_fits_its_box_on_a_screen(browser, real_page, long_run):
    for file in (real_page, long_run):
        with opened(browser, file, width=1280) as tab:
            assert beyond(tab) == (False, "hidden")


def test_on_a_phone_the_final_table_shows_that_it_goes_on_until_its_end(browser, long_run):
    with opened(browser, long_run, width=390) as tab:
        assert beyond(tab) == (True, "visible")
        name = "document.querySelector('#finals tbody th').getBoundingClientRect().left"
        before = tab.evaluate(name)
        tab.evaluate("byId('finals').scrollLeft = 1e6")
        wait_until(tab, "!document.querySelector('.scroller.beyond')")
        assert beyond(tab) == (True, "hidden")
        assert tab.evaluate(name) == before  # whose numbers these are stays in sight


TOUCHING = """() => [...document.querySelectorAll("main svg")].flatMap((svg) => {
  const texts = [...svg.querySelectorAll("text")];
  const boxes = texts.map((e) => [e.textContent, e.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
    a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom
  ).map(([other]) => `${one} and ${other}`));
})"""
LEFT_OUT = """() => [...document.querySelectorAll("main svg text")].filter((e) =>
  e.getBoundingClientRect().left < e.closest("section").getBoundingClientRect().left
).map((e) => e.textContent)"""


@pytest.mark.parametrize("width", [1280, 390])
def test_no_ticks_touch_each_other_or_leave_their_chart(browser, real_page, long_run, width):
    for file in (real_page, long_run):
        with opened(browser, file, width=width) as tab:
            for scale in ("log-log", "linear"):
                tab.locator("label", has_text=scale).click()
                assert tab.locator("#regret-chart .tick").count() >= 5
                assert tab.evaluate(TOUCHING) == []
                assert tab.evaluate(LEFT_OUT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_not_heard_is_told_from_every_value(browser, real_page, scheme):
    with opened(browser, real_page, scheme=scheme) as tab:
        for place in ("#maps canvas", "#ramp .blank"):
            drawn = tab.locator(place).first.evaluate("e => getComputedStyle(e).backgroundImage")
            stripes = {"#" + "".join(f"{int(c):02x}" for c in rgb)
                       for rgb in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", drawn)}  # fmt: skip
            assert len(stripes) == 2  # a pattern, and no colour of a value is one
            assert contrast(*stripes) > 1.5
            nothing = "#" + "".join(f"{c:02x}" for c in tab.evaluate("colourOf(100)"))
            assert max(contrast(stripe, nothing) for stripe in stripes) > 4.5


def test_the_kernel_between_agents_is_written_one_way(browser, real_page):
    with opened(browser, real_page) as tab:
        text = tab.locator("body").evaluate("e => e.innerText")
        assert text.count("K_z") >= 3
        assert "Kz" not in text  # as a subscript would be
        assert tab.locator("main sub").count() == 0


CONTRASTS = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((v) => v / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor, [, , , alpha = 1] = numbers(colour);
      if (alpha === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility()
    && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
    const style = getComputedStyle(e);
    const ink = e.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const [low, high] = [light(ink), light(ground(e))].sort((a, b) => a - b);
    return [(high + 0.05) / (low + 0.05), e.outerHTML.slice(0, 90)];
  });
}"""


def test_the_dark_is_dark_and_text_can_be_read_in_both(browser, real_page):
    grounds = {}
    for scheme in ("light", "dark"):
        with opened(browser, real_page, scheme=scheme) as tab:
            tab.locator("[data-toggle='0']").click()  # also what is switched off
            grounds[scheme] = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            found = tab.evaluate(CONTRASTS)
            assert len(found) > 100
            assert [row for row in found if row[0] < 4.5] == []
            grey = tab.locator("#regret-chart .line[data-series='3']")
            grounds[scheme + " line"] = grey.evaluate("e => getComputedStyle(e).stroke")
    assert grounds["light"] != grounds["dark"]
    assert grounds["light line"] != grounds["dark line"]


def test_paper_is_light_and_wide_enough(browser, real_page):
    with opened(browser, real_page, width=720, scheme="dark") as tab:
        tab.emulate_media(media="print", color_scheme="dark")
        try:
            body = "getComputedStyle(document.body)"
            assert tab.evaluate(f"{body}.backgroundColor") == "rgb(255, 255, 255)"
            assert tab.evaluate(f"{body}.color") == "rgb(29, 33, 39)"
            assert tab.evaluate("document.documentElement.scrollWidth") == 720
        finally:
            tab.emulate_media(media="screen")


def test_hostile_names_are_shown_as_they_are(browser, made_run, tmp_path):
    store = made_run(
        name=HOSTILE[0], policies=HOSTILE, problems=[HOSTILE[0], HOSTILE[1]],
        networks=["__proto__", '"><b>'], learners=HOSTILE[:2],
    )  # fmt: skip
    file = tmp_path / "a page.html"
    file.write_bytes(page(store.folder))
    with opened(browser, file, width=360) as tab:
        wait_until(tab, "document.querySelectorAll('#maps canvas').length === 3")
        buttons = "buttons => buttons.map((button) => button.textContent)"
        assert tab.eval_on_selector_all("[data-toggle]", buttons) == HOSTILE
        assert tab.evaluate("window.broken") is None
        assert tab.locator("img, main b").count() == 0
        assert tab.locator("h1").evaluate("e => e.textContent") == HOSTILE[0]
        assert tab.evaluate("document.documentElement.scrollWidth") == 360


ODD = {
    "one trial": {"trials": 1, "timed": False},
    "one policy": {"policies": ["only"]},
    "one policy, one trial, one round": {"policies": ["only"], "trials": 1, "rounds": 1},
    "unfinished": {"drawn": False, "only": lambda task: task.trial == 0},
    "baseline not done": {"only": lambda task: task.cell.policy == "other"},
    "baseline does not play": {
        "policies": ["a", "b", "c"], "problems": ["p", "q"], "baseline": "c",
        "c": {"problems": ["q"]},
    },
    "learns, first trial missing": {"learners": ["other"], "only": lambda task: task.trial > 0},
    "nothing done": {"only": lambda task: False},
    "many policies": {"policies": [f"policy {place}" for place in range(25)], "trials": 1},
    "one agent": {"agents": 1},
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_odd_runs_have_pages_without_broken_numbers(browser, made_run, tmp_path, odd):
    store = made_run(**ODD[odd])
    file = tmp_path / "report.html"
    file.write_bytes(page(store.folder))
    with opened(browser, file, width=500) as tab:
        for scale in ("log-log", "linear"):
            if odd != "nothing done":
                tab.locator("label", has_text=scale).click()
            assert_no_broken_numbers(tab)
        done, expected = tab.evaluate("[RUN.done, RUN.expected]")
        assert tab.locator("#notice").is_visible() == (done < expected)
        assert tab.locator("#toml").is_visible()
        assert tab.locator("#picker").is_visible() == (odd == "baseline does not play")
        assert tab.evaluate("document.documentElement.scrollWidth") == 500
