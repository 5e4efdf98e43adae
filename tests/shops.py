"""A table of shops as a data scientist has it: names, cents, timestamps, missing ages, clicks."""

import csv
import datetime

import numpy as np

NAMES = (
    "Basel", "Bern", "Biel", "Chur", "Genf", "Lugano",
    "Luzern", "Olten", "Sion", "Thun", "Zug", "Zürich",
)  # fmt: skip
PRODUCTS = {"cocoa": 410, "coffee": 320, "tea": 250}
COLUMNS = ["shop", "when", "product", "cents", "hour", "age", "clicked", "p"]


def rate(shop, product, hour):
    """How likely a click is: coffee in the morning, cocoa at night in half of the shops."""
    early, taste = hour < 12, NAMES.index(shop) % 2
    liked = "coffee" if early else ("cocoa" if taste else "tea")
    return 0.12 if product == liked else 0.03


def write(path, *, each=100, shops=NAMES, seed=0, base=rate):
    """Write a CSV file of clicks, each product shown as likely, and return its rows."""
    rng = np.random.default_rng(seed)
    start, rows = datetime.datetime(2026, 3, 1), []
    for n in range(each):
        for shop in shops:
            product = list(PRODUCTS)[rng.integers(3)]
            when = start + datetime.timedelta(hours=7 * n, minutes=int(rng.integers(60)))
            clicked = int(rng.random() < base(shop, product, when.hour))
            age = "" if rng.random() < 0.08 else int(rng.integers(18, 80))
            cents = PRODUCTS[product]
            rows.append([shop, when.isoformat(" "), product, cents, when.hour, age, clicked, 1 / 3])
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return rows


def ring(path, shops=NAMES):
    """Write a file of edges: each shop beside the next."""
    pairs = zip(shops, [*shops[1:], shops[0]], strict=True)
    path.write_text("from,to\n" + "".join(f"{i},{j}\n" for i, j in pairs), encoding="utf-8")
