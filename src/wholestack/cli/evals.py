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
for name, place, says in (
    ("items", "evals_items:items", "Cut items from your own text."),
    (
        "score",
        "evals_score:score",
        "Score a model on a file of items: answer loss, accuracy, calibration, with error bars.",
    ),
    ("write", "evals_write:write", "Let a model write, take the answer out, judge it, and try the judge."),
    (
        "compare",
        "evals_compare:compare",
        "Which model is better on the same items, and whether they can show it (exit 3: they cannot).",
    ),
    (
        "signal",
        "evals_signal:signal",
        "How far models are apart against how far one is from itself, by metric, source and item.",
    ),
    ("goal", "evals_goal:app", "Write down what is really wanted, before any cheap number is believed."),
    ("proxy", "evals_proxy:proxy", "How well does a cheap metric rank models as the goal does?"),
    (
        "curve",
        "evals_curve:curve",
        "The same checkpoints under several metrics: which one jumps, and which curve is clean by its axes only.",
    ),
    ("mixtures", "evals_mixtures:mixtures_command", "Compare data mixtures and schedules of mixtures at equal cost."),
    (
        "contamination",
        "evals_contamination:contamination",
        "Which questions stand in training text: where, by which rule, with the text that matched.",
    ),
    (
        "judgments",
        "evals_judgments:app",
        "What several people said of the same items: who is right, how sure that is, whom to believe.",
    ),
    ("context", "evals_context:context", "Demonstrations in the context against fine-tuning on the same ones."),
):
    app.command(f"wholestack.cli.{place}", name=name, help=says)
