"""What preparing a corpus costs: CPU seconds by phase, bytes a second, and growth with the amount of text.

Run: ``OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 python benchmarks/data.py``. The reference loop hashes 64 MiB with
SHA-256 and splits 8 MB of text into words, so a figure can be carried to another machine as a ratio.
"""

import hashlib
import re
import resource
import tempfile
import time
from pathlib import Path

from wholestack.data import Loader, MemorySource, SourceDocument, python_sources
from wholestack.data.build import prepare
from wholestack.data.corpus import Corpus


def reference_s() -> float:
    start = time.process_time()
    hashlib.sha256(bytes(64 << 20)).hexdigest()
    re.findall(r"\w+", "some words of text, " * 400_000)
    return time.process_time() - start


def phases(sources: object, folder: Path) -> tuple[Corpus, dict[str, float]]:
    starts: dict[str, float] = {}
    corpus = prepare(
        sources,  # type: ignore[arg-type]
        folder,
        vocab_size=512,
        seed=0,
        progress=lambda phase, done, total: void(starts.setdefault(phase, time.process_time())),
    )
    ends = [*list(starts.values())[1:], time.process_time()]
    return corpus, {phase: end - start for (phase, start), end in zip(starts.items(), ends, strict=True)}


def void(_: object) -> None:
    """Progress hands nothing back."""


def main() -> None:
    reference = reference_s()
    print(f"reference loop: {reference:.2f} CPU s")
    with tempfile.TemporaryDirectory() as scratch:
        start = time.process_time()
        corpus, parts = phases(python_sources(), Path(scratch) / "corpus")
        total = time.process_time() - start
        size = sum(entry.size_bytes for entry in corpus.ledger)
        print(f"standard library: {size:,} bytes, {total:.2f} CPU s = {total / reference:.1f} x reference")
        print(f"  {size / total / 1e6:.2f} MB/s; " + ", ".join(f"{name} {s:.2f}" for name, s in parts.items()))
        loader = Loader(corpus, {"python-code": 0.7, "python-prose": 0.3}, 32, 256, 0)
        start = time.process_time()
        for step in range(300):
            loader.batch(step)
        print(f"loader: {(time.process_time() - start) / 300 * 1e3:.2f} ms a batch of 32 x 257")
        growth(Path(scratch))
    print(f"peak resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def growth(scratch: Path) -> None:
    """The same text with each word marked by the number of the copy, so that no copy is a near-duplicate."""
    plain = [each for each in python_sources()[0].documents() if isinstance(each, SourceDocument)]
    for copies in (1, 2, 4, 8):
        texts = {
            f"{copy}/{each.path}": re.sub(r"([a-z]{3,})", rf"\g<1>{copy}", each.text) if copy else each.text
            for copy in range(copies)
            for each in plain
        }
        start = time.process_time()
        corpus, parts = phases([MemorySource("marked", texts, given="PSF-2.0")], scratch / f"x{copies}")
        seconds = time.process_time() - start
        size = sum(entry.size_bytes for entry in corpus.ledger)
        print(f"{size / 1e6:7.1f} MB  {seconds:6.2f} CPU s  {size / seconds / 1e6:.2f} MB/s  {parts}")


if __name__ == "__main__":
    main()
