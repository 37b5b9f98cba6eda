"""Figures of the search for benchmark items in training text.

    python benchmarks/contamination.py planted --items ITEMS --count 300 --seed 1
    python benchmarks/contamination.py speed --items ITEMS --megabytes 200

* ``planted``: leaks of drawn questions, each within a page of clean text, in ways of their own: as they are; laid out
  anew (bullets, capitals, other signs, line breaks, lettered choices, a number in front); a share of the words
  replaced; half of the sentence turned round; words replaced by others of the same kind (synonyms of a table). Recall
  is the share of questions that are flagged, and by which rule. False flags are counted on documents without any:
  Python's library (code and comments), licences and package documents (boilerplate and legal text), and pages of the
  benchmark's *other* questions, none of which is looked for (some of them stand on the same passages).
* ``speed``: megabytes a second of one process, reading included.
"""

import argparse
import json
import random
import re
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from wholestack.data.training_text import Text, texts_of
from wholestack.evals.contamination.index import Index, Wanted
from wholestack.evals.contamination.matching import match_document
from wholestack.evals.contamination.searching import search, wanted_of
from wholestack.evals.layouts.catalog import read_questions

SYNONYMS = {
    "which": "what", "following": "below", "is": "constitutes", "are": "represent", "the": "this", "best": "ideal",
    "a": "one", "of": "among", "most": "chiefly", "likely": "probable", "true": "correct", "false": "wrong",
    "because": "since", "when": "whenever", "person": "individual", "has": "possesses", "used": "employed",
    "not": "never", "can": "may", "in": "within", "large": "big", "small": "little", "statement": "claim",
}  # fmt: skip


def as_it_is(item: Wanted, rng: random.Random) -> str:
    return "\n".join([item.text, *item.choices])


def laid_out(item: Wanted, rng: random.Random) -> str:
    text = " ".join(item.text.split())
    text = text.upper() if rng.random() < 0.3 else text
    text = re.sub(r"[,;:]", " -", text) if rng.random() < 0.5 else text
    words = text.split(" ")
    for place in range(rng.randint(6, 14), len(words), 12):
        words[place] = "\n> " + words[place]
    mark = rng.choice(["* ", "- ", f"{rng.randint(1, 99)}. ", f"**Q{rng.randint(1, 99)}** "])
    letters = rng.choice(["ABCD", "1234", "abcd"])
    choices = "\n".join(f"  ({letter}) {choice}" for letter, choice in zip(letters, item.choices, strict=False))
    return f"{mark}{' '.join(words)}\n{choices}"


def replaced(share: float) -> Callable[[Wanted, random.Random], str]:
    def leak(item: Wanted, rng: random.Random) -> str:
        return " ".join(rng.choice(NONSENSE) if rng.random() < share else word for word in item.text.split())

    return leak


def turned(item: Wanted, rng: random.Random) -> str:
    words = item.text.split()
    return " ".join(words[len(words) // 2 :] + words[: len(words) // 2])


def synonyms(item: Wanted, rng: random.Random) -> str:
    return " ".join(SYNONYMS.get(word.lower(), word) for word in item.text.split())


NONSENSE = ("lorem", "ipsum", "dolor", "sit", "amet", "elit")
LEAKS: dict[str, Callable[[Wanted, random.Random], str]] = {
    "exact": as_it_is,
    "laid out anew": laid_out,
    "5 % of words replaced": replaced(0.05),
    "10 % of words replaced": replaced(0.10),
    "20 % of words replaced": replaced(0.20),
    "halves turned round": turned,
    "synonyms": synonyms,
}


def clean_files() -> list[Path]:
    library, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    code = sorted(library.glob("*.py")) + sorted(library.glob("*/*.py"))
    legal = [
        path
        for path in sorted(packages.glob("*/**/*"))
        if re.match(r"(?i)licen[cs]e|copying|notice|metadata", path.name)
    ]
    return [*code, *(path for path in legal if path.is_file())]


def pages(texts: Sequence[str], a_page: int = 5) -> Iterator[str]:
    for start in range(0, len(texts), a_page):
        yield "\n\n".join(texts[start : start + a_page])


def planted(items: Sequence[Wanted], count: int, seed: int) -> Iterator[dict[str, object]]:
    rng = random.Random(seed)
    drawn = rng.sample(list(items), len(items))
    wanted, others = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
    index = Index(wanted)
    short = set(index.too_short)
    known = [item for item in wanted if item.id not in short]
    yield {"wanted": len(wanted), "too_short": len(short)}
    clean = [each.text for each in texts_of(clean_files()) if isinstance(each, Text)]
    cuts = [text[:20_000] for text in clean]
    for name, leak in LEAKS.items():
        rules: Counter[str] = Counter()
        answers = wrong = 0
        chosen = rng.sample(known, min(count, len(known)))
        for item in chosen:
            page = rng.choice(cuts)
            cut = rng.randrange(len(page) + 1)
            flags = match_document(index, Text("page", f"{page[:cut]}\n{leak(item, rng)}\n{page[cut:]}"))
            mine = [flag for flag in flags if flag.item == item.id]
            rules[mine[0].rule if mine else "not found"] += 1
            answers += bool(mine and mine[0].has_answer)
            wrong += len(flags) - len(mine)
        found = len(chosen) - rules["not found"]
        yield {"leak": name, "planted": len(chosen), "recall": found / len(chosen), "rules": dict(rules),
               "with_answer": answers, "flags_of_other_items": wrong}  # fmt: skip
    for name, texts in (
        ("code, licences and package documents", clean),
        ("pages of other questions of the same benchmark", list(pages([as_it_is(each, rng) for each in others]))),
    ):
        looked = (match_document(index, Text(str(place), text)) for place, text in enumerate(texts))
        flagged = [flags for flags in looked if flags]
        shown = [(flags[0].item, flags[0].share, flags[0].match[:120]) for flags in flagged[:5]]
        yield {"clean": name, "documents": len(texts), "megabytes": sum(map(len, texts)) / 1e6,
               "flagged": len(flagged), "share": len(flagged) / len(texts), "first": shown}  # fmt: skip


def speed(items: Sequence[Wanted], megabytes: int) -> Iterator[dict[str, object]]:
    text = (
        "\n".join(each.text for each in texts_of(clean_files()) if isinstance(each, Text))
        .encode(errors="replace")
        .decode()
    )
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps({"text": text[start : start + 4000]}) for start in range(0, len(text), 4000)]
        for kind in ("text", "jsonl"):
            path = Path(folder) / f"shard.{'txt' if kind == 'text' else 'jsonl'}"
            body = text.encode() if kind == "text" else "\n".join(lines).encode()
            with path.open("wb") as file:
                while file.tell() < megabytes * 1_000_000:
                    file.write(body[: megabytes * 1_000_000 - file.tell()])
                    file.write(b"\n")
            began = time.process_time()
            Index(items)
            index_s = time.process_time() - began
            began = time.process_time()
            found = search(items, path)
            used = time.process_time() - began - index_s
            path.unlink()
            began = time.process_time()
            sum(range(10**7))
            row = {"shard": kind, "megabytes": megabytes, "index_s": index_s, "cpu_s": used}
            yield {
                **row,
                "megabytes_a_second": megabytes / used,
                "documents": found.documents,
                "loop_s": time.process_time() - began,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("planted", "speed"))
    parser.add_argument("--items", type=Path, default=Path("../shared/data/evals/mmlu_redux.jsonl"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=100)
    given = parser.parse_args()
    items, _ = wanted_of(read_questions(given.items))
    rows = planted(items, given.count, given.seed) if given.what == "planted" else speed(items, given.megabytes)
    for row in rows:
        print(json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}))


if __name__ == "__main__":
    main()
