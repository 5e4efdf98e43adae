"""The page in a browser: opened on a node, without a complaint, and read."""

from contextlib import contextmanager

REFUSED = "net::ERR_"
PATIENCE = 8000


@contextmanager
def opened(browser, node, *, width=1280, scheme="light", motion="no-preference", lost=False):
    """Open a page; a complaint, or a request to elsewhere, fails the test."""
    tab = browser.contexts[0].pages[0]  # one for all tests: a new one takes longer than most
    tab.set_default_timeout(PATIENCE)
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme, reduced_motion=motion)
    tab.mouse.move(0, 0)
    complaints, asked = [], []
    listeners = {
        "console": lambda message: complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        "request": lambda request: asked.append(request.url),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    try:
        tab.goto(node.url)
        tab.wait_for_selector("[data-state=live]")
        yield tab
        tab.evaluate("1")  # what was said until now has arrived
    finally:
        for event, listener in listeners.items():
            tab.remove_listener(event, listener)
        tab.goto("about:blank")
    # what the browser itself says of a node that is gone cannot be kept from its console
    assert [c for c in complaints if not (lost and REFUSED in c)] == []
    assert all(url.startswith(node.url) for url in asked)


def shown(tab, selector):
    return tab.locator(selector).inner_text()


def wait_for_text(tab, selector, text):
    tab.wait_for_function(
        "([place, text]) => document.querySelector(place).textContent.includes(text)",
        arg=[selector, text],
    )
