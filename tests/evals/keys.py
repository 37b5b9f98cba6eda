"""What the tests of keys share: a model that remembers what it was asked, and what must hold after a mutation."""

from wholestack.evals.results import score_into


class Watched:
    """A model as it is, and the ids of the items that it scored."""

    def __init__(self, inner):
        self.inner, self.asked = inner, []
        self.identity = inner.identity

    def score(self, given, *, done=()):
        for score in self.inner.score(given, done=done):
            self.asked.append(score.id)
            yield score


def scored_anew(backend, item_set, out, before):
    """The result of a mutated model or item set, scored into the folder that holds the result from before."""
    watched = Watched(backend)
    after = score_into(watched, item_set, out)
    assert after.plan.key != before.plan.key
    assert after.folder != before.folder
    assert watched.asked == [item.id for item in item_set.items], "an old result was taken"
    assert [each.nll_nats for each in after.by_item] == [each.nll_nats for each in backend.score(item_set.items)]
    return after
