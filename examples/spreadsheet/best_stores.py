import asyncio

stores = (await tools.sheet.stores())["stores"]
pages = await asyncio.gather(*(tools.sheet.rows(store=store) for store in stores))
totals = {
    store: sum(row["units"] * row["cents"] for row in page["rows"])
    for store, page in zip(stores, pages)
}
best = sorted(totals, key=totals.get, reverse=True)[: inputs["count"]]
__out = {store: totals[store] for store in best}
