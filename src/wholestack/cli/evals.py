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
app.command("wholestack.cli.evals_items:items", name="items", help="Cut items from your own text.")
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
app.command(
    "wholestack.cli.evals_compare:compare",
    name="compare",
    help="Which model is better on the same items, and whether they can show it (exit 3: they cannot).",
)
app.command(
    "wholestack.cli.evals_signal:signal",
    name="signal",
    help="How far models are apart against how far one is from itself, by metric, source and item.",
)
app.command(
    "wholestack.cli.evals_goal:app",
    name="goal",
    help="Write down what is really wanted, before any cheap number is believed.",
)
app.command(
    "wholestack.cli.evals_proxy:proxy", name="proxy", help="How well does a cheap metric rank models as the goal does?"
)
app.command(
    "wholestack.cli.evals_curve:curve",
    name="curve",
    help="The same checkpoints under several metrics: which one jumps, and which curve is clean by its axes only.",
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
