"""What several people said of the same items: what is right, how sure that is, and whom to believe.

``votes.py`` reads who said what; ``models/`` infer the truth, one file each; ``copying.py`` finds those who do not vote
by themselves; ``reviewers.py`` says what each reviewer is worth; ``asking.py`` whom to ask next; ``aggregate.py`` puts
it together.
"""
