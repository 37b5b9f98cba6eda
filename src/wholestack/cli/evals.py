"""``wholestack evals``: score models on items, compare them, and say what the comparison can show.

Each verb lives in a module of its own and is imported only when it is called.
"""

from cyclopts import App

app = App(
    name="evals",
    help="Score models on items, compare them, and say what the comparison can show.",
    help_format="plaintext",
    result_action="return_value",
)

app.command(
    "wholestack.cli.evals_score:score",
    name="score",
    help="Score a model on a file of items: answer loss, accuracy, calibration, with error bars.",
)
app.command(
    "wholestack.cli.evals_write:write",
    name="write",
    help="Let a model write, take the answer out, judge it, and try the judge.",
)
