"""Evaluation: a sealed set of items, the loss of the answers, and what a comparison on them can show.

``wholestack.evals.scoring`` holds the scorer and needs torch; everything here needs numpy and scipy only.
"""

from wholestack.evals.continuation import build_continuation_items
from wholestack.evals.items import Item, ItemSet, metric_name, read_items
from wholestack.evals.prepared import PreparedItems, prepare_items
from wholestack.evals.scores import ItemScores, Metric, Scores, compare, paired_difference
from wholestack.evals.statistics import detectable_difference

__all__ = [
    "Item",
    "ItemScores",
    "ItemSet",
    "Metric",
    "PreparedItems",
    "Scores",
    "build_continuation_items",
    "compare",
    "detectable_difference",
    "metric_name",
    "paired_difference",
    "prepare_items",
    "read_items",
]
