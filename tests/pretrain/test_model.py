"""The transformer against a plain one written from the papers, and the invariances that a scorer needs."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.pretrain import ModelConfig
from wholestack.pretrain.model import Transformer, rotate

VARIANTS = [
    {},
    {"kv_heads": 4},
    {"kv_heads": 1, "qk_norm": False},
    {"tied_embeddings": True, "head_size": 16, "kv_heads": 1},
]


def trained_looking(config, seed=0):
    """A float64 model whose head and gains are not at their initial values."""
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(config, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return model.eval()


def make(**change):
    shape = {"vocab_size": 37, "context": 16, "layers": 2, "width": 32, "head_size": 8, "kv_heads": 2}
    return ModelConfig(**{**shape, **change})


def plain_logits(model, tokens):
    """One sequence, one position and one head at a time, with Python complex numbers for the rotation."""
    config, weights = model.config, model.state_dict()
    scale = 1.0 if "head" in weights else 2.0 / (0.3 / math.sqrt(config.width))
    stream = [scale * weights["embedding"][token] for token in tokens]

    def normed(x, gain):
        return x / math.sqrt(float((x * x).mean()) + config.norm_epsilon) * gain

    def turned(x, position):
        out = []
        for i in range(config.head_size // 2):
            angle = position * config.rope_base ** (-2 * i / config.head_size)
            z = complex(x[2 * i], x[2 * i + 1]) * complex(math.cos(angle), math.sin(angle))
            out += [z.real, z.imag]
        return torch.tensor(out, dtype=torch.float64)

    for layer in range(config.layers):
        block = {k.split(".", 2)[2]: v for k, v in weights.items() if k.startswith(f"blocks.{layer}.")}
        fused = [block["query_key_value"] @ normed(x, block["attention_norm"]) for x in stream]
        heads = [f.reshape(-1, config.head_size) for f in fused]
        gain = block.get("query_key_gain")
        for position in range(len(tokens)):
            mixed = []
            for head in range(config.heads):
                shared = head // (config.heads // config.kv_heads)

                def part(at, row, heads=heads, gain=gain):
                    x = heads[at][row]
                    return turned(normed(x, gain) if gain is not None else x, at)

                query = part(position, head)
                scores = torch.stack([query @ part(at, config.heads + shared) for at in range(position + 1)])
                shares = torch.softmax(scores / math.sqrt(config.head_size), 0)
                values = [heads[at][config.heads + config.kv_heads + shared] for at in range(position + 1)]
                mixed.append(sum(s * v for s, v in zip(shares, values, strict=True)))
            x = stream[position] + block["attention_out"] @ torch.cat(mixed)
            gate, up = (block["gate_up"] @ normed(x, block["mlp_norm"])).chunk(2)
            stream[position] = x + block["down"] @ (gate / (1 + torch.exp(-gate)) * up)
    final = torch.stack([normed(x, weights["norm"]) for x in stream])
    return final @ (weights["head"] if "head" in weights else weights["embedding"]).T


@pytest.mark.parametrize("change", VARIANTS)
def test_it_computes_what_the_papers_say(change):
    model = trained_looking(make(**change))
    tokens = [3, 36, 0, 7, 7, 12, 1]
    with torch.no_grad():
        found = model(torch.tensor([tokens]))[0]
    torch.testing.assert_close(found, plain_logits(model, tokens), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("change", VARIANTS)
@settings(max_examples=15, deadline=None)
@given(cut=st.integers(1, 15), seed=st.integers(0, 1000))
def test_no_position_sees_a_later_token(change, cut, seed):
    model = trained_looking(make(**change))
    tokens = torch.randint(0, 37, (1, 16), generator=torch.Generator().manual_seed(seed))
    other = tokens.clone()
    other[:, cut:] = (other[:, cut:] + 1) % 37
    with torch.no_grad():
        before, after = model(tokens), model(other)
    assert torch.equal(before[:, :cut], after[:, :cut])
    assert not torch.allclose(before[:, cut:], after[:, cut:])


def test_padding_on_the_right_and_other_rows_change_nothing():
    model = trained_looking(make())
    row = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        alone = model(row)
        padded = model(torch.cat([torch.cat([row, torch.zeros(1, 9, dtype=torch.long)], 1), torch.ones(1, 13).long()]))
    torch.testing.assert_close(padded[:1, :4], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("change", VARIANTS)
@pytest.mark.parametrize("dimensions", [3, 4])
def test_choices_that_share_a_prefix_score_as_they_do_alone(change, dimensions):
    model = trained_looking(make(**change))
    prefix, choices = [1, 2, 3, 4], [[5, 6], [7, 8, 9], [10]]
    row, positions, owner = list(prefix), list(range(4)), [0] * 4
    for number, choice in enumerate(choices, start=1):
        row += choice
        positions += range(4, 4 + len(choice))
        owner += [number] * len(choice)
    owners = torch.tensor(owner)
    mask = (owners[:, None] == owners) | (owners == 0)
    mask = (mask & torch.ones(len(row), len(row), dtype=torch.bool).tril())[None]
    with torch.no_grad():
        packed = model(torch.tensor([row]), torch.tensor([positions]), mask if dimensions == 3 else mask[:, None])[0]
        for number, choice in enumerate(choices, start=1):
            alone = model(torch.tensor([prefix + choice]))[0]
            torch.testing.assert_close(packed[owners == number], alone[4:], rtol=0, atol=1e-12)


def test_positions_and_mask_that_say_the_default_change_nothing():
    model = trained_looking(make())
    tokens = torch.randint(0, 37, (2, 16), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(2, 16, 16, dtype=torch.bool).tril()
    with torch.no_grad():
        torch.testing.assert_close(model(tokens, torch.arange(16), mask), model(tokens), rtol=0, atol=1e-12)


def test_the_written_out_rotation_is_the_complex_one():
    generator = torch.Generator().manual_seed(0)
    model = Transformer(make())
    heads = torch.randn(2, 16, 4, 8, generator=generator)
    rotations = model.get_buffer("rotations")[:, None]
    exact, rounded = rotate(heads, rotations), rotate(heads.bfloat16(), rotations)
    torch.testing.assert_close(rounded.float(), exact, rtol=0.05, atol=0.05)
    assert rounded.dtype == torch.bfloat16


def test_scores_depend_on_the_distance_of_positions_only():
    model = trained_looking(make())
    tokens = torch.tensor([[4, 9, 2]])
    with torch.no_grad():
        torch.testing.assert_close(
            model(tokens, torch.tensor([5, 6, 7])), model(tokens, torch.tensor([0, 1, 2])), rtol=0, atol=1e-12
        )


def test_more_tokens_or_positions_than_the_context_are_refused():
    model = Transformer(make())
    with pytest.raises(InputError, match="17 positions, the model's context is 16"):
        model(torch.zeros(1, 17, dtype=torch.long))
    with pytest.raises(InputError, match="16"):
        model(torch.zeros(1, 2, dtype=torch.long), torch.tensor([3, 16]))


def test_initial_weights_come_from_the_generator_and_leave_the_global_one_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again = (Transformer(make(), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    other = Transformer(make(), generator=torch.Generator().manual_seed(4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.embedding, other.embedding)


@pytest.mark.parametrize("layers", [1, 8])
@pytest.mark.parametrize("width", [32, 128])
def test_a_fresh_model_is_near_the_uniform_prediction_at_every_size(layers, width):
    model = Transformer(make(layers=layers, width=width, vocab_size=256))
    tokens = torch.randint(0, 256, (8, 16), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    assert abs(float(loss) - math.log(256)) < 0.2
