"""Phases 2 and 3: the corpus with its provenance, and the fixed evaluation from its held-out documents."""

from dataclasses import dataclass
from pathlib import Path

from wholestack.data.build import prepare
from wholestack.data.corpus import Corpus
from wholestack.data.tokenizer import Tokenizer
from wholestack.data.unigram import unigram_bits_per_byte
from wholestack.evals.continuation import build_continuation_items
from wholestack.evals.items import ItemSet, metric_name, read_items
from wholestack.evals.prepared import prepare_items
from wholestack.evals.statistics import ASSUMED_PAIRED_SD_BPB, detectable_difference
from wholestack.experiments import claims
from wholestack.experiments.records import BASELINES, PREPARED, STATEMENT, Baselines
from wholestack.experiments.sources import sources_of
from wholestack.experiments.stage import Stage
from wholestack.finding import Status, finding
from wholestack.journal import write_atomic

DATA_SEED = 0
"""The corpus and the evaluation do not depend on the rehearsal's seed: five seeds are measured by one item set."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """The corpus's tokenizer as the evaluation wants it: a list of ids."""

    tokenizer: Tokenizer

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return [int(token) for token in self.tokenizer.encode(text)]


def run_data(stage: Stage, *, tokenizer: Tokenizer | None = None) -> str:
    """Read, refuse, split, tokenise (with a tokenizer that is given, or one of its own); seal what the data are."""
    stage.tell("data", "reading documents", left_s=stage.clock.left_s)
    corpus = prepare(
        sources_of(stage.recipe),
        stage.run.path / "data",
        vocab_size=stage.recipe.vocab_size,
        seed=DATA_SEED,
        held_out_fraction=stage.recipe.held_out_fraction,
        tokenizer=tokenizer,
    )
    statement = corpus.statement()
    write_atomic(stage.run.path / STATEMENT, statement.text().encode())
    refused = corpus.refused()
    stage.run.report(
        finding("data", "data.documents", "ok", evidence=[f"{len(refused)} refused by name"], at=stage.clock.now)
    )
    claims.seal_data(stage, corpus)
    tokens = sum(len(corpus.stream("train", source)) for source in corpus.sources)
    return f"{tokens:,} training tokens from {', '.join(corpus.sources)}; {len(refused)} documents refused"


def given_items(path: Path) -> ItemSet:
    """Another item set: a folder that was saved and sealed, or a JSON Lines file in the same schema.

    Raises:
        InputError: neither is there, or a line is wrong; names file and line.
    """
    return read_items(path) if path.is_file() else ItemSet.load(path)


def run_evaluation(stage: Stage) -> str:
    """Make or take the items, prepare them for the tokenizer, seal the manifest."""
    stage.tell("evaluation", "cutting items from held-out documents", left_s=stage.clock.left_s)
    corpus = Corpus.open(stage.run.path / "data")
    folder = stage.run.folder("items")
    if stage.recipe.items:
        items = given_items(Path(stage.recipe.items))
    else:
        items = build_continuation_items(
            corpus.documents("held_out"),
            count=stage.recipe.item_count,
            seed=DATA_SEED,
            per_document=stage.recipe.items_per_document,
        )
    items.save(folder)
    prepared = prepare_items(items, Encoder(corpus.tokenizer), context_tokens=stage.recipe.context)
    prepared.save(stage.run.path / PREPARED)
    answers = [item.delimiter + item.answer for item in items.items]
    stage.run.write(BASELINES, Baselines(unigram_bpb=unigram_bits_per_byte(corpus, answers)))
    smallest = detectable_difference(
        items=len(items.items),
        clusters=len({item.cluster for item in items.items}),
        paired_sd=ASSUMED_PAIRED_SD_BPB,
    )
    claims.seal_evaluation(stage, items, smallest.difference)
    unscorable = sum(reason != "" for reason in prepared.reasons.tolist())
    status: Status = "ok" if unscorable == 0 else "warn"
    stage.run.report(
        finding(
            "evaluation",
            "evaluation.scorable",
            status,
            at=stage.clock.now,
            evidence=[f"{unscorable} of {len(items.items)} items cannot be scored"],
            cause="" if status == "ok" else "items that do not fit the context",
            remedy="" if status == "ok" else "use a longer context or shorter items",
        )
    )
    return f"{len(items.items)} items, {metric_name(stage.recipe.metric, items)}"
