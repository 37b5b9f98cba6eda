"""Names as people give them, by what they stand for."""

NAMES: dict[str, tuple[str, ...]] = {
    "int": (
        "total", "count", "price", "size", "score", "level", "width", "depth", "limit", "offset",
        "weight", "speed", "amount", "points", "cost", "height", "age", "rate", "gap", "share",
        "result", "value", "base", "extra", "bonus", "balance", "left", "right", "margin", "tax",
        "fee", "goal", "income", "loss", "output", "profit", "reserve", "stake", "volume", "surplus",
    ),
    "text": (
        "word", "label", "text", "code", "title", "city", "tag", "prefix", "message", "line",
        "color", "key", "part", "note", "mark", "brand",
    ),
    "ints": (
        "values", "items", "scores", "numbers", "prices", "sizes", "rows", "counts", "queue", "stack",
        "ages", "times", "parts", "steps", "ranks", "picked", "rest", "found", "kept", "moves",
        "orders", "levels", "batches", "limits",
    ),
    "table": ("stock", "wages", "votes", "seats", "rates", "costs", "totals", "index", "quota", "lengths"),
    "turn": ("i", "j", "k", "n"),
    "each": ("x", "y", "v", "w"),
    "function": (
        "adjust", "combine", "shift", "measure", "reduce", "update", "convert", "scale", "collect", "process",
        "apply", "refine", "compute", "settle", "resolve", "alter", "grow", "merge", "pick", "trim", "estimate",
    ),
    "class": ("Account", "Tank", "Basket", "Meter", "Ticket", "Shelf", "Wallet", "Engine", "Robot", "Printer",
        "Drawer", "Garage", "Library", "Market", "Player", "Train"),
    "method": ("add", "fill", "move", "charge", "load", "push", "turn", "feed", "store", "lift", "take", "spend"),
    "object": ("first", "second", "third", "other"),
    "word": (
        "apple", "river", "stone", "cloud", "tiger", "bread", "chair", "plant", "house", "night",
        "green", "light", "music", "paper", "silver", "table", "water", "winter", "yellow", "zebra",
        "candle", "forest", "garden", "hammer", "island", "jacket", "kettle", "lemon", "market", "needle",
    ),
    "letters": ("a", "b", "c", "d"),
}  # fmt: skip
"""``word`` and ``letters`` are for texts, the others for variables; no name is in two roles that one program mixes."""
