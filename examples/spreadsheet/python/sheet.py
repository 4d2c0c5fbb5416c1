"""A spreadsheet with a page of sales for each store; the same numbers every time."""

import random

_STORES = (
    "Aarau Basel Bern Biel Chur Davos Fribourg Geneva Glarus Lausanne "
    "Locarno Lucerne Lugano Montreux Schwyz Sion Thun Zug Zurich"
).split()
_PRODUCTS = ("apples", "bread", "cheese", "milk", "tea")
_ROWS_OF_STORE = 120


def stores() -> dict[str, list[str]]:
    """The names of the stores: one page each."""
    return {"stores": _STORES}


def rows(store: str) -> dict[str, list[dict[str, object]]]:
    """The rows of a store's page: day, product, units, and cents for each unit."""
    numbers = random.Random(store)
    return {
        "rows": [
            {
                "day": f"2026-{1 + n // 28 % 12:02}-{1 + n % 28:02}",
                "product": numbers.choice(_PRODUCTS),
                "units": numbers.randint(1, 40),
                "cents": numbers.randint(80, 1200),
            }
            for n in range(_ROWS_OF_STORE)
        ]
    }
