"""Simulated hosts that answer the commands of real tools, healthy or with an injected fault.

Written from the tools' documented formats; knows nothing of the checks (an import-linter contract), so that what is
measured with it is not what was put into it.
"""
