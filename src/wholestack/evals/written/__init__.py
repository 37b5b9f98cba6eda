"""Evaluation of written text: a named rule takes the answer out, a named checker judges it, and both are measured.

Two of the three purposes live here: ``reasoning`` inside a loop, where the model writes before it answers, and everyday
``usefulness``, where a checker says whether a task was done. A text without an answer is counted apart, by reason, and
is never credited with chance.
"""
