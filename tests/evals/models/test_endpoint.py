"""A model behind HTTP: the numbers of the same model here, in every dialect, and a clear end for every way to fail."""

import contextlib
import dataclasses
import datetime
import email.utils
import itertools
import math
import pickle
import socket
import threading

import pytest

from wholestack.errors import InputError
from wholestack.evals.backend import Backend, Opening, Writing
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.models import echoed, endpoint, transport
from wholestack.evals.models.endpoint import open_endpoint
from wholestack.evals.models.transport import Patience, parse_address
from wholestack.evals.prepared import NO_CONTEXT, prepare_items
from wholestack.evals.rows import NOT_TEXT
from wholestack.testing.endpoint import Dialect, Fault, NgramModel, loopback_endpoint

BYTES = NgramModel.of_bytes()
PAIRS = NgramModel.of_byte_pairs("the cat sat on the mat, the hat; 東京の東京 Straße ééé naïve " * 4, merges=60)
KEY = "sk-a-secret-of-tests"
ITEMS = [
    make_item("The cat sat on the", ["mat", "hat", "Straße"], 0, source="s", id="plain"),
    make_item("Die Straße, naïve", ["東京", "é"], 1, source="s", id="not ascii"),
    make_item("東京の", ["東京", "the"], 0, delimiter="", source="s", id="no delimiter"),
    make_item("mat, the cat", ["sat", "hat"], 0, source="s", id="spans the join"),
    make_item("", ["cat", "hat"], 1, delimiter="", source="s", id="no context"),
]


def opened(server, *, notes=None, waits=None, tries=3, timeout_s=60.0, **opening):
    """An endpoint that never sleeps: what it would wait is written down."""
    return open_endpoint(
        server.url,
        Opening(**opening),
        patience=Patience(timeout_s=timeout_s, tries=tries),
        notice=(notes if notes is not None else []).append,
        sleep=(waits if waits is not None else []).append,
    )


def direct(model, items, *, start=False):
    """Scores by the local preparation and the model itself."""
    shift = [] if not start else [1_000_000]
    prepared = prepare_items(seal_items(items, kind="items from a file"), model, context_tokens=10_000)
    for place, item in enumerate(items):
        context = list(prepared.contexts[prepared.context_offsets[place] : prepared.context_offsets[place + 1]])
        first = prepared.choice_offsets[place]
        spans = zip(prepared.answer_offsets[first:], prepared.answer_offsets[first + 1 :], strict=False)
        answers = [list(prepared.answers[low:high]) for (low, high), _ in zip(spans, item.choices, strict=False)]
        numbers = [model.logprobs([*shift, *context, *answer])[len(shift + context) :] for answer in answers]
        yield prepared.reasons[place], [-math.fsum(n) for n in numbers if all(x is not None for x in n)]


DIALECTS = {
    "openai": Dialect(names="bytes", strict=True),
    "half characters replaced": Dialect(),
    "no counts, byte offsets": Dialect(usage=False, offsets="bytes"),
    "writes one token": Dialect(zero_tokens=False, strict=True),
    "writes one token, no counts": Dialect(zero_tokens=False, usage=False),
    "vllm with ids": Dialect(names="late", ids=True, zero_tokens=False),
    "vllm prompt_logprobs": Dialect(echo=False, prompt_logprobs=True, ids=True),
}


@pytest.mark.parametrize("model", [BYTES, PAIRS], ids=["bytes", "byte pairs"])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_scores_equal_those_of_the_model_itself(model, dialect):
    with loopback_endpoint(model, dialect=dialect) as server:
        scores = list(opened(server).score(ITEMS))
    assert [score.id for score in scores] == [item.id for item in ITEMS]
    for score, (reason, nll_nats) in zip(scores, direct(model, ITEMS), strict=True):
        assert score.reason == reason
        if not reason:
            assert score.nll_nats == pytest.approx(nll_nats, rel=1e-12)
    assert scores[-1].reason == NO_CONTEXT


def test_a_token_that_spans_the_join_is_scored_with_the_choice_and_counted():
    with loopback_endpoint(PAIRS) as server:
        spanning = {score.id: score.spanning for score in opened(server).score(ITEMS)}
    assert spanning["spans the join"]
    assert not spanning["no context"]


def test_a_start_token_of_the_server_makes_an_empty_context_scorable():
    with loopback_endpoint(BYTES, dialect=Dialect(start_token=True)) as server:
        (score,) = opened(server).score(ITEMS[-1:])
    expected = [-math.fsum(BYTES.logprobs([1_000_000, *BYTES.encode(text)])[1:]) for text in ("cat", "hat")]
    assert score.nll_nats == pytest.approx(expected)


def test_several_requests_at_a_time_change_neither_order_nor_numbers():
    items = [make_item(f"the cat {n}", ["a", "b"], 0, source="s", id=str(n)) for n in range(24)]
    with loopback_endpoint(PAIRS) as server:
        alone = list(opened(server, requests_at_a_time=1).score(items))
        together = list(opened(server, requests_at_a_time=8).score(items))
        backwards = list(opened(server).score(items[::-1]))
    assert together == alone == backwards[::-1]


def test_requests_really_go_out_several_at_a_time():
    together = threading.Barrier(3, timeout=60)

    class Meeting(NgramModel):
        def write(self, tokens, count):
            together.wait()
            return super().write(tokens, count)

    with loopback_endpoint(BYTES) as server:
        backend = opened(server, requests_at_a_time=3)
        server.model = Meeting.of_bytes()
        written = list(backend.generate(["a", "b", "c"], Writing(max_tokens=2)))
    assert [each.tokens for each in written] == [2, 2, 2]


def test_it_is_a_backend_and_its_identity_is_of_what_is_known():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        assert isinstance(backend, Backend)
        assert backend.identity == opened(server).identity
        assert backend.identity.parts["weights"] == "unverified"
        assert backend.identity.name == f"{server.url}#ngram"
        assert server.url in backend.identity.parts["address"]


@pytest.mark.parametrize("other", [NgramModel.of_bytes(seed=1), PAIRS], ids=["weights", "tokenizer"])
def test_another_model_behind_the_same_name_has_another_identity(other):
    with loopback_endpoint(BYTES) as server:
        before = opened(server).identity
        server.model = other
        after = opened(server).identity
    assert before.name == after.name
    assert before.digest != after.digest


class Wandering:
    """A model whose numbers or texts never come twice."""

    def __init__(self, model, *, noise_nats=0.0, shift_nats=0.0, texts=False):
        self.model, self.noise_nats, self.shift_nats, self.texts = model, noise_nats, shift_nats, texts
        self.calls = 0

    def encode(self, text):
        return self.model.encode(text)

    def name(self, token):
        return self.model.name(token)

    def logprobs(self, tokens):
        self.calls += 1
        wander = (self.noise_nats if self.calls % 2 else 0.0) + self.shift_nats
        first, second, *rest = self.model.logprobs(tokens)
        return [first, second - wander, *rest]

    def write(self, tokens, count):
        self.calls += 1
        return self.model.encode(f"{self.calls} abcdefghijklmnopq")[:count] if self.texts else []


@pytest.mark.parametrize("dialect", [Dialect(echo=False), Dialect(chat_only=True)], ids=["no echo", "chat"])
def test_where_nothing_repeats_no_two_calls_share_a_key_and_that_is_said_once(dialect):
    notes = []
    with loopback_endpoint(Wandering(BYTES, texts=True), dialect=dialect) as server:
        first, second = (opened(server, notes=notes).identity for _ in range(2))
    assert first.digest != second.digest
    assert len([note for note in notes if "no later call" in note]) == 2


def test_little_noise_does_not_hide_another_model():
    digests = []
    for shift in (0.0, 0.2):
        with loopback_endpoint(Wandering(BYTES, noise_nats=2e-4, shift_nats=shift)) as server:
            found = opened(server).identity
            digests.append({**found.parts, "address": ""})
    assert digests[0]["fingerprint_step"] == "0.01 nats"
    assert digests[0] != digests[1]


def test_the_day_of_the_fingerprint_stands_beside_the_key():
    with loopback_endpoint(BYTES) as server:
        found = opened(server).identity
    assert datetime.date.fromisoformat(found.taken_at)
    assert dataclasses.replace(found, taken_at="2001-02-03").digest == found.digest


def test_a_model_that_is_exchanged_while_it_is_scored_is_noticed():
    with loopback_endpoint(BYTES) as server:
        scores = opened(server).score(ITEMS[:2])
        next(scores)
        server.model = NgramModel.of_bytes(seed=1)
        with pytest.raises(InputError, match="another model than when it was opened"):
            list(scores)


@pytest.mark.parametrize("trouble", ["no_logprobs", "null_logprobs", "zero_logprobs", "short", "nan"])
def test_an_endpoint_without_log_probabilities_says_so_before_the_first_item(trouble):
    with loopback_endpoint(BYTES, faults=[Fault(trouble=trouble, times=1000)]) as server:
        backend = opened(server)
        assert not backend.can_score
        with pytest.raises(InputError, match="cannot be scored") as caught:
            next(iter(backend.score(ITEMS)))
    assert "vLLM" in caught.value.remedy


@pytest.mark.parametrize("dialect", [Dialect(echo=False), Dialect(chat_only=True)], ids=["no echo", "chat"])
def test_an_endpoint_that_only_writes_can_write_and_not_score(dialect):
    with loopback_endpoint(BYTES, dialect=dialect) as server:
        backend = opened(server)
        with pytest.raises(InputError, match="cannot be scored"):
            list(backend.score(ITEMS))
        (written,) = backend.generate(["the"], Writing(max_tokens=3))
    expected = BYTES.write(BYTES.encode("the"), 3)
    assert written.text == b"".join(map(BYTES.name, expected)).decode(errors="replace")
    assert (written.tokens, written.finish) == (3, "length")


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("no_logprobs", echoed.NO_LOGPROBS),
        ("null_logprobs", echoed.NO_LOGPROBS),
        ("zero_logprobs", echoed.NO_LOGPROBS),
        ("short", echoed.WRONG_LENGTHS),
        ("fewer", echoed.NOT_THE_TEXT),
        ("nan", echoed.NOT_A_LOGPROB),
    ],
)
def test_one_item_with_a_bad_answer_has_a_reason_and_the_others_their_numbers(trouble, reason):
    with loopback_endpoint(BYTES) as server:
        clean = list(opened(server).score(ITEMS[:3]))
        server.faults.append(Fault(trouble=trouble, within=ITEMS[1].context, times=100))
        scores = list(opened(server).score(ITEMS[:3]))
    assert (scores[0], scores[2]) == (clean[0], clean[2])
    assert (scores[1].reason, scores[1].nll_nats) == (reason, ())


@pytest.mark.parametrize(
    "fault",
    [Fault(trouble="cut"), Fault(trouble="garbage"), Fault(trouble="status", status=503), Fault(trouble="silent")],
    ids=lambda fault: fault.trouble,
)
def test_a_passing_fault_changes_nothing(fault):
    with loopback_endpoint(BYTES) as server:
        clean = list(opened(server).score(ITEMS))
        backend = opened(server, timeout_s=0.5 if fault.trouble == "silent" else 60)
        server.faults.append(fault)
        waits = []
        backend._transport.sleep = waits.append
        assert list(backend.score(ITEMS)) == clean
    assert waits == [1.0]


@pytest.mark.parametrize(("header", "wait_s"), [("7", 7.0), ("0", 0.0), ("0.5", 0.5), ("", 1.0), ("soon", 1.0)])
def test_a_server_that_asks_for_patience_gets_it_and_it_is_said(header, wait_s):
    notes, waits = [], []
    with loopback_endpoint(BYTES) as server:
        backend = opened(server, notes=notes, waits=waits)
        server.faults.append(Fault(trouble="status", status=429, retry_after=header))
        assert not any(score.reason for score in backend.score(ITEMS[:2]))
    assert waits == [wait_s]
    assert notes == [f"{server.url}: HTTP 429; waits {wait_s:.0f} s (try 1 of 3)"]


def test_a_date_to_wait_for_is_understood():
    waits = []
    with loopback_endpoint(BYTES) as server:
        backend = opened(server, waits=waits)
        backend._transport.now = lambda: 1_000_000.0
        date = email.utils.formatdate(1_000_009, usegmt=True)
        server.faults.append(Fault(trouble="status", status=429, retry_after=date))
        list(backend.score(ITEMS[:1]))
    assert waits == [9.0]


@pytest.mark.parametrize("header", ["86400", "nan", "inf"])
def test_a_server_that_asks_for_a_day_is_not_waited_for(header):
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        server.faults.append(Fault(trouble="status", status=429, retry_after=header))
        with pytest.raises(InputError, match="asks to wait") as caught:
            list(backend.score(ITEMS[:1]))
    assert "later" in caught.value.remedy


def test_a_server_in_lasting_trouble_ends_the_scoring_and_blames_no_item():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        server.faults.append(Fault(trouble="status", times=10_000))
        with pytest.raises(InputError, match="HTTP 500, 3 tries"):
            list(backend.score(ITEMS))


def test_an_item_that_always_breaks_the_server_is_counted_when_others_go():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        server.faults.append(Fault(trouble="status", times=10_000, within=ITEMS[1].context))
        scores = list(backend.score(ITEMS[:3]))
    assert [score.reason for score in scores] == ["", endpoint.NO_ANSWER, ""]


def test_a_text_that_is_too_long_for_the_server_is_a_counted_reason():
    long = make_item("word " * 20_000, ["a", "b"], 0, source="s", id="long")
    with loopback_endpoint(BYTES, dialect=Dialect(longest_bytes=4096)) as server:
        scores = list(opened(server).score([ITEMS[0], long]))
    assert [score.reason for score in scores] == ["", "the endpoint refused the text (HTTP 400)"]


def test_surrogates_are_never_sent():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        sent = len(server.requests)
        (written,) = backend.generate(["a\ud800"], Writing(max_tokens=2))
        assert (written.finish, written.reason) == ("none", NOT_TEXT)
        assert len(server.requests) == sent


def test_an_answer_that_never_ends_is_cut_off(monkeypatch):
    monkeypatch.setattr(transport, "MOST_ANSWER_BYTES", 3_000_000)
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        server.faults.append(Fault(trouble="huge"))
        with pytest.raises(InputError, match="larger than 3,000,000 bytes"):
            list(backend.score(ITEMS[:1]))


def test_a_server_that_drips_does_not_hold_a_request_for_ever():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server, timeout_s=0.3, tries=2)
        server.faults.append(Fault(trouble="drip", times=10_000))
        with pytest.raises(InputError, match="no whole answer in time"):
            list(backend.score(ITEMS[:1]))


def test_a_redirect_is_not_followed_and_the_key_stays_here():
    with loopback_endpoint(BYTES) as other, loopback_endpoint(BYTES, api_key=KEY) as server:
        backend = opened(server, api_key=KEY)
        server.faults.append(Fault(trouble="redirect", status=307, location=f"{other.url}/completions"))
        with pytest.raises(InputError, match=r"redirects to 127\.0\.0\.1, which is not followed"):
            list(backend.score(ITEMS[:1]))
        assert other.requests == []


def test_the_key_is_sent_and_shown_nowhere():
    with loopback_endpoint(BYTES, api_key=KEY) as server:
        notes = []
        backend = opened(server, notes=notes, api_key=KEY)
        server.faults.append(Fault(trouble="status"))
        scores = list(backend.score(ITEMS[:1]))
        assert server.requests[0]["headers"]["Authorization"] == f"Bearer {KEY}"
        shown = [repr(backend), repr(backend.identity), repr(scores), repr(notes), repr(backend._transport)]
        with pytest.raises(InputError) as caught:
            opened(server, api_key=KEY + "x")
        shown.append(str(caught.value))
    assert not any(KEY in text for text in shown)
    assert "API key was refused" in shown[-1]
    with pytest.raises(TypeError):
        pickle.dumps(backend._transport)


def test_a_key_that_is_missing_is_named():
    with loopback_endpoint(BYTES, api_key=KEY) as server, pytest.raises(InputError, match="wants an API key"):
        opened(server)


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "http://", "http://user:secret@host/v1", "http://host:99999/v1", "http://host/v1?key=secret"],
)
def test_a_bad_address_is_refused_without_repeating_secrets(url):
    with pytest.raises(InputError) as caught:
        parse_address(url)
    assert "secret" not in str(caught.value)


def test_nobody_at_the_address_is_one_line_at_once():
    with loopback_endpoint(BYTES) as server:
        pass
    waits = []
    with pytest.raises(InputError, match="connection refused") as caught:
        opened(server, waits=waits)
    assert waits == []
    assert "start the server" in caught.value.remedy


def test_a_server_of_several_models_wants_a_name():
    with loopback_endpoint(BYTES, dialect=Dialect(models=("one", "two"))) as server:
        with pytest.raises(InputError, match="lists 2 models: one, two"):
            opened(server)
        named = open_endpoint(f"{server.url}#two", Opening())
        assert named.identity.parts["model"] == "two"
        with pytest.raises(InputError, match="does not exist"):
            open_endpoint(f"{server.url}#three", Opening())


def test_writing_is_cut_in_front_of_a_stop_text_and_sends_what_decides_it():
    full = b"".join(map(PAIRS.name, PAIRS.write(PAIRS.encode("the"), 12))).decode(errors="replace")
    stop = full[3:5]
    writing = Writing(max_tokens=12, stop=("never", "not", "there", "at all", stop), temperature=0.5, seed=7)
    with loopback_endpoint(PAIRS) as server:
        (cut,) = opened(server).generate(["the"], writing)
        sent = server.requests[-1]
    assert (cut.text, cut.finish) == (full[: full.index(stop)], "stop")
    assert (sent["max_tokens"], sent["temperature"], sent["seed"], len(sent["stop"])) == (12, 0.5, 7, 4)


def test_what_it_costs_is_said_first():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server, usd_per_million_tokens=(2.0, 6.0))
        scoring = backend.expense(ITEMS)
        writing = backend.expense([], ["the cat", "sat"], Writing(max_tokens=50))
        unpriced = opened(server).expense(ITEMS)
    texts = [item.context for item in ITEMS if item.context]
    texts += [item.context + item.delimiter + choice for item in ITEMS for choice in item.choices]
    tokens = sum(len(text.encode()) for text in texts)
    assert (scoring.requests, scoring.prompt_tokens, scoring.written_tokens) == (len(texts), tokens, 0)
    assert scoring.usd == pytest.approx(2.0 * tokens / 1e6)
    assert (writing.requests, writing.prompt_tokens, writing.written_tokens) == (2, 10, 100)
    assert writing.usd == pytest.approx((2.0 * 10 + 6.0 * 100) / 1e6)
    assert unpriced.usd is None
    assert scoring.seconds > 0


def test_broken_off_it_leaves_no_request_behind():
    with loopback_endpoint(BYTES) as server:
        backend = opened(server)
        scores = backend.score(ITEMS)
        next(scores)
        server.faults.append(Fault(trouble="silent", times=10_000))
        scores.close()
        server.faults.clear()
        assert len(list(backend.score(ITEMS))) == len(ITEMS)


def _raw_server(answer):
    """A server that sends these pieces to everybody, until they end or nobody listens."""
    listening = socket.create_server(("127.0.0.1", 0))

    def one(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            for piece in answer():
                connection.sendall(piece)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=one, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listening


def test_a_server_that_never_comes_to_its_answer_does_not_hold_a_request_for_ever():
    with _raw_server(lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1#m"
        patience = Patience(timeout_s=0.3, tries=1)
        with pytest.raises(InputError, match="in time"):
            open_endpoint(url, Opening(), patience=patience, sleep=lambda _: None, notice=lambda _: None)


def _answers(monkeypatch, change):
    """Changes every answer of a server on its way in, as bytes."""
    read = transport.Transport._read
    monkeypatch.setattr(transport.Transport, "_read", lambda *args: change(read(*args)))


def test_a_key_that_the_server_repeats_reaches_no_identity():
    key = "sk-0123456789"
    with (
        loopback_endpoint(NgramModel.of_bytes(), dialect=Dialect(models=(key, "other"))) as server,
        pytest.raises(InputError, match="lists 2 models") as caught,
    ):
        opened(server, api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"data": [{', b'"data": [{"root": "\\ud800", '),
        (b'"prompt_tokens": ', b'"prompt_tokens": 1' + b"0" * 400),
        (b'"completion_tokens": ', b'"completion_tokens": 1' + b"0" * 400),
    ],
    ids=["half a character", "tokens read", "tokens written"],
)
def test_what_a_server_says_beside_its_answer_never_breaks_us(old, new, monkeypatch):
    _answers(monkeypatch, lambda raw: raw.replace(old, new))
    with loopback_endpoint(NgramModel.of_bytes()) as server:
        backend = opened(server)
        writing = Writing(max_tokens=4)
        assert backend.identity.digest
        assert backend.expense([], ["one two"], writing).prompt_tokens < 1000
        assert next(iter(backend.generate(["one two"], writing))).tokens <= 4


def test_a_log_probability_that_no_float_holds_is_none():
    with pytest.raises(echoed.UnusableAnswerError):
        echoed._logprob(-(10**400))


@pytest.mark.parametrize("location", ["http://[", "http://evil\x1b[31m.example/"])
def test_a_redirect_to_no_address_is_refused_at_once(location):
    with loopback_endpoint(NgramModel.of_bytes()) as server:
        send = transport.Transport(address=parse_address(f"{server.url}#m"))
        with pytest.raises(InputError, match="redirects to elsewhere"):
            send._judge(302, {"location": location}, b"", 0.0)
