"""Models that can be evaluated: one module a backend, found by :func:`wholestack.evals.models.opening.open_backend`."""
