"""Files of the page: read once from the package's data, and served with a strict policy."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from coopbandits.fleet.http.answers import NOSNIFF, Answer

# Only what the node itself serves is loaded or run: no inline script or style, no other host.
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}


def page_folder() -> Traversable:
    """Return the folder of the page that comes with the package."""
    return files("coopbandits.fleet.http") / "page"


def read_assets(folder: Traversable) -> dict[str, Answer]:
    """Return the files of a folder by path; `index.html` is at "/"."""
    found: dict[str, Answer] = {}
    if not folder.is_dir():
        return found
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        media = MEDIA.get("." + file.name.rpartition(".")[2])
        if media is not None and file.is_file():
            headers = [
                (b"content-type", media.encode()),
                (b"content-security-policy", POLICY.encode()),
                (b"referrer-policy", b"no-referrer"),
                # A node that was upgraded must not be shown by yesterday's script.
                (b"cache-control", b"no-cache"),
                NOSNIFF,
            ]
            path = "/" if file.name == "index.html" else f"/{file.name}"
            found[path] = Answer(200, headers, file.read_bytes())
    return found
