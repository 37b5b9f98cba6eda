"""The scorer: cost of a pass beside one row a choice and beside the bare forward pass, and the spread between models.

    python benchmarks/scoring.py speed     # about 2 minutes on one core
    python benchmarks/scoring.py spread    # about 2 minutes on one core: trains five small models

Items: 400 continuation choices from every tenth module of the standard library and every second help topic; the
models of ``spread`` train on the others. One thread; times are CPU seconds of this process, best of two.
"""

import argparse
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional

from wholestack.evals import ItemScores, build_continuation_items, paired_difference, prepare_items
from wholestack.evals.prepared import PreparedItems, lay_out
from wholestack.evals.scores import summarise
from wholestack.evals.scoring import score_items

CONTEXT_TOKENS = 256
VOCABULARY = 1024
METRICS = ("answer_bpb", "choice_nll_raw", "choice_nll_per_byte", "accuracy_raw", "accuracy_per_byte")
LEFT_OUT = {"site-packages", "test", "pydoc_data"}
"""The last one holds the help topics as a module, those held out too."""


@dataclass(frozen=True)
class Document:
    id: str
    source: str
    path: str
    text: str


class Bpe:
    """Byte-level BPE of the tokenizers library."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._tokenizer = Tokenizer(models.BPE())
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False)
        self._tokenizer.train_from_iterator(texts, trainer)

    def encode(self, text: str) -> Sequence[int]:
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids


class Decoder(nn.Module):
    """A plain pre-norm decoder with learned positions, the peer's model and ours."""

    def __init__(self, *, width: int, layers: int, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(VOCABULARY, width)
            self.place = nn.Embedding(CONTEXT_TOKENS, width)
            nn.init.normal_(self.embedding.weight, std=0.02)
            nn.init.normal_(self.place.weight, std=0.02)
            self.blocks = nn.ModuleList(
                nn.ModuleDict(
                    {
                        "qkv": nn.Linear(width, 3 * width),
                        "out": nn.Linear(width, width),
                        "up": nn.Linear(width, 4 * width),
                        "down": nn.Linear(4 * width, width),
                    }
                )
                for _ in range(layers)
            )
        self.width = width

    def hidden(self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(tokens.shape[1])
        x = self.embedding(tokens) + self.place(positions)
        for block in self.blocks:
            assert isinstance(block, nn.ModuleDict)
            normed = functional.layer_norm(x, (self.width,))
            q, k, v = block["qkv"](normed).unflatten(-1, (3, self.width // 32, 32)).permute(2, 0, 3, 1, 4)
            attend_to = None if mask is None else mask[:, None]
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=attend_to, is_causal=mask is None)
            x = x + block["out"](mixed.transpose(1, 2).flatten(-2))
            x = x + block["down"](functional.gelu(block["up"](functional.layer_norm(x, (self.width,)))))
        return functional.layer_norm(x, (self.width,))

    def unembed(self, hidden: Tensor) -> Tensor:
        return hidden @ self.embedding.weight.T

    def forward(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        return self.unembed(self.hidden(tokens, positions=positions, mask=mask))


class Whole(nn.Module):
    """The same model without its two steps: logits everywhere."""

    def __init__(self, inner: Decoder) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.inner(tokens, positions, mask)
        return logits


def documents() -> tuple[list[Document], list[Document]]:
    """Held-out and other documents."""
    root = Path(sysconfig.get_path("stdlib"))
    modules = sorted(path for path in root.rglob("*.py") if not LEFT_OUT & set(path.parts))
    held_out: list[Document] = []
    others: list[Document] = []
    for number, path in enumerate(modules):
        name = str(path.relative_to(root))
        document = Document(name, "code", name, path.read_text(encoding="utf-8", errors="ignore"))
        (others if number % 10 else held_out).append(document)
    for number, (name, text) in enumerate(sorted(topics.items())):
        (others if number % 2 else held_out).append(Document(name, "prose", name, text))
    return held_out, others


def one_row_a_choice(model: nn.Module, prepared: PreparedItems, batch_size: int) -> np.ndarray:
    """The peer: what an evaluation harness does, rows sorted by length, right padding, logits everywhere."""
    contexts = np.split(prepared.contexts, prepared.context_offsets[1:-1])
    answers = np.split(prepared.answers, prepared.answer_offsets[1:-1])
    of_item = np.repeat(np.arange(len(contexts)), np.diff(prepared.choice_offsets))
    texts = [np.concatenate((contexts[item], answer)) for item, answer in zip(of_item, answers, strict=True)]
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    nll = np.zeros(len(texts))
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            rows = nn.utils.rnn.pad_sequence([torch.from_numpy(texts[index]) for index in batch], batch_first=True)
            log_p = model(rows[:, :-1]).log_softmax(-1).gather(-1, rows[:, 1:, None])[..., 0]
            for row, index in enumerate(batch):
                first = len(contexts[of_item[index]]) - 1
                nll[index] = -log_p[row, first : len(texts[index]) - 1].double().sum()
    return nll


def cpu_s(work: Callable[[], object], *, times: int = 2) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def forward_only(model: nn.Module, prepared: PreparedItems, batch_size: int) -> None:
    """The bare forward pass over as many positions in rows as long, without masks and without scoring."""
    lengths = np.sort(lay_out(prepared).lengths)[::-1]
    with torch.inference_mode():
        for start in range(0, len(lengths), batch_size):
            chunk = lengths[start : start + batch_size]
            width = int(chunk[0])
            model(torch.zeros(len(chunk), width, dtype=torch.long), torch.zeros(len(chunk), width, dtype=torch.long))


def speed() -> None:
    held_out, others = documents()
    item_set = build_continuation_items(held_out, count=400, seed=0)
    tokenizer = Bpe([document.text for document in others[::4]])
    prepared = prepare_items(item_set, tokenizer, context_tokens=CONTEXT_TOKENS)
    print(f"build {cpu_s(lambda: build_continuation_items(held_out, count=400, seed=0), times=1):.2f} s")
    print(f"prepare {cpu_s(lambda: prepare_items(item_set, tokenizer, context_tokens=CONTEXT_TOKENS)):.2f} s")
    print(f"lay out {1000 * cpu_s(lambda: lay_out(prepared)):.0f} ms")
    print("| parameters | way | batch | positions | CPU s | of the peer | of its bare forward pass | max nats |")
    print("|---|---|---|---|---|---|---|---|")
    for width, layers in ((64, 2), (128, 4)):
        speed_of(Decoder(width=width, layers=layers).eval(), prepared)


def speed_of(model: Decoder, prepared: PreparedItems) -> None:
    """The rows of one model."""
    nn.init.normal_(model.embedding.weight, std=0.3)
    size = sum(parameter.numel() for parameter in model.parameters())
    expected = one_row_a_choice(model, prepared, 16)
    peer_s = cpu_s(partial(one_row_a_choice, model, prepared, 16))
    peer_positions = int((np.diff(prepared.context_offsets).repeat(4) + prepared.answer_tokens - 1).sum())
    print(f"| {size:,} | one row a choice (peer) | 16 | {peer_positions:,} | {peer_s:.2f} | 1.00 | | |")
    ways: tuple[tuple[str, nn.Module], ...] = (("shared", Whole(model)), ("shared, logits where scored", model))
    for name, ours in ways:
        for batch_size in (8, 32):
            found = score_items(ours, prepared, batch_size=batch_size)
            taken_s = cpu_s(partial(score_items, ours, prepared, batch_size=batch_size))
            bare_s = cpu_s(partial(forward_only, model, prepared, batch_size))
            gap = np.abs(found.nll_nats - expected).max()
            print(
                f"| {size:,} | {name} | {batch_size} | {found.positions:,} | {taken_s:.2f} |"
                f" {taken_s / peer_s:.2f} | {taken_s / bare_s:.2f} | {gap:.1e} |",
                flush=True,
            )


def train(tokens: Tensor, *, width: int, layers: int, lr: float, steps: int, seed: int) -> Decoder:
    model = Decoder(width=width, layers=layers, seed=seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95))
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * min(1, (step + 1) / 50) * (1 - step / steps)
        starts = torch.randint(0, len(tokens) - 129, (8,), generator=generator)
        rows = torch.stack([tokens[start : start + 129] for start in starts])
        loss = functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def spread() -> None:
    held_out, others = documents()
    tokenizer = Bpe([document.text for document in others[::4]])
    prepared = prepare_items(
        build_continuation_items(held_out, count=400, seed=0), tokenizer, context_tokens=CONTEXT_TOKENS
    )
    mixed = np.random.default_rng(0).permutation(len(others))
    tokens = torch.tensor([token for index in mixed[:500] for token in tokenizer.encode(others[index].text[:20000])])
    recipes: dict[str, dict[str, float]] = {
        "base": {"width": 64, "layers": 2, "lr": 3e-3, "steps": 500, "seed": 0},
        "other seed": {"width": 64, "layers": 2, "lr": 3e-3, "steps": 500, "seed": 1},
        "half the steps": {"width": 64, "layers": 2, "lr": 3e-3, "steps": 250, "seed": 0},
        "wider": {"width": 96, "layers": 3, "lr": 3e-3, "steps": 500, "seed": 0},
        "a third of the rate": {"width": 64, "layers": 2, "lr": 1e-3, "steps": 500, "seed": 0},
    }
    scored: dict[str, ItemScores] = {}
    for name, recipe in recipes.items():
        model = train(tokens, **recipe)  # type: ignore[arg-type]  # whole numbers stay whole in the table above
        scored[name] = score_items(model, prepared)
        for each in map(summarise(scored[name]).metric, METRICS):
            print(f"{name}: {each.full_name} {each.value:.4f} +- {each.standard_error:.4f}", flush=True)
    print("| pair | metric | difference | paired SD an item | detectable | p |")
    print("|---|---|---|---|---|---|")
    for name in list(recipes)[1:]:
        for metric in METRICS:
            found = paired_difference(scored["base"], scored[name], metric=metric)
            assert found.detectable is not None
            print(
                f"| base, {name} | {metric} | {found.difference:+.4f} | {found.detectable.paired_sd:.3f} |"
                f" {found.detectable.difference:.4f} | {found.p_value:.2g} |"
            )


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("speed", "spread"))
    {"speed": speed, "spread": spread}[parser.parse_args().part]()
