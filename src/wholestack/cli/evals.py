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
    "wholestack.cli.evals_mixtures:mixtures_command",
    name="mixtures",
    help="Compare data mixtures and schedules of mixtures at equal cost.",
)
app.command(
    "wholestack.cli.evals_context:context",
    name="context",
    help="Demonstrations in the context against fine-tuning on the same ones.",
)
