totals = {}
for store in (await tools.sheet.stores())["stores"]:
    rows = (await tools.sheet.rows(store=store))["rows"]
    totals[store] = sum(row["units"] * row["cents"] for row in rows)

best = sorted(totals, key=totals.get, reverse=True)[: inputs["count"]]
__out = {store: totals[store] for store in best}
