"""The report: one self-contained HTML page, or a terminal view, drawn from a run directory alone."""
