"""Whether a benchmark's items stand in training text: which, where, by which rule, with the text that matched.

``index.py`` holds what is looked for, ``matching.py`` looks at one document, ``searching.py`` goes through a stream of
them on all cores and says what was found.
"""
