"""An endpoint passes the suite of every backend: of bytes and of byte pairs, and one that only writes."""

import pytest

from wholestack.evals.backend import Opening
from wholestack.evals.models.endpoint import open_endpoint
from wholestack.testing.endpoint import Dialect, NgramModel, loopback_endpoint
from wholestack.testing.evals_backend import BackendConformance

TEXT = "the sky is blue and two and two make four; Grüße aus Köln, 東京は日本の首都です " * 3


class EndpointConformance(BackendConformance):
    tolerance_nats = 1e-9
    models = (NgramModel.of_bytes(), NgramModel.of_bytes(seed=1))
    dialect = Dialect(longest_bytes=100_000)

    @pytest.fixture(autouse=True)
    def servers(self):
        with (
            loopback_endpoint(self.models[0], dialect=self.dialect) as self.server,
            loopback_endpoint(self.models[1], dialect=self.dialect) as self.other,
        ):
            yield

    def make_backend(self):
        return open_endpoint(self.server.url, Opening(requests_at_a_time=3))

    def make_other(self):
        return open_endpoint(self.other.url, Opening())


class TestEndpointOfBytes(EndpointConformance):
    pass


class TestEndpointOfBytePairs(EndpointConformance):
    models = (NgramModel.of_byte_pairs(TEXT, merges=80), NgramModel.of_byte_pairs(TEXT, merges=80, seed=1))
    dialect = Dialect(longest_bytes=100_000, names="bytes", start_token=True)


class TestEndpointWithoutLogProbabilities(EndpointConformance):
    scores = False
    dialect = Dialect(chat_only=True)
