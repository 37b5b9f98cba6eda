"""What the tests of models share: tiny real models in folders, and an oracle that knows no short cut."""

import json
import math

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from wholestack.evals.items import make_item

END = "<|end|>"


def byte_tokenizer() -> Tokenizer:
    """Byte-level without a merge."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={each: number for number, each in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def small_bpe() -> Tokenizer:
    """Byte-level with four merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n")]
    words = [*alphabet, *(left + right for left, right in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={each: number for number, each in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder) -> None:
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)


def tiny_llama(vocabulary: int, **changed) -> LlamaForCausalLM:
    """Random weights, large enough that context matters much."""
    settings = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**{**settings, **changed})).eval()


def save_llama(folder, tokenizer: Tokenizer, **changed) -> str:
    """A folder as a user has it; one token more than the tokenizer has is the end token."""
    save_tokenizer(tokenizer, folder)
    tiny_llama(tokenizer.get_vocab_size() + 1, **changed).save_pretrained(folder)
    return str(folder)


def ragged_items():
    """Items of different numbers of choices and lengths, some with a long beginning in common, one without context."""
    shots = "".join(f"Question: what is {n} plus {n}? Answer: {2 * n}\n" for n in range(3, 9))
    few_shot = [
        make_item(
            f"{shots}Question: what is {n} plus 1? Answer:", [str(n + 1), "eleven of them", "no"], 0, source="few"
        )
        for n in range(5)
    ]
    own = [
        make_item("Zwei und zwei", ["sind vier", "sind", "x" * 40], 1, source="own"),
        make_item("\u00e97", ["b", "cc"], 0, delimiter="", source="own"),
        make_item(
            "\u6f22\u5b57" * 20, ["\U0001f388", "\u00e9" * 30, "zz", "yyy", "x"], 4, delimiter="\n", source="own"
        ),
        make_item("The Ans", ["wer is", "vil"], 0, delimiter="", source="own"),
        make_item("A long one: " + "the cat and the other cat. " * 9, ["Yes", "No"], 0, source="own"),
        make_item("A longer one: " + "a bird, then two birds. " * 12, ["a", "b", "c and d", "e"], 2, source="own"),
    ]
    return [own[0], *few_shot[:2], *own[1:4], *few_shot[2:], *own[4:]]


def oracle(model, encode, items) -> list[list[float]]:
    """Each text alone through the plain model, log-softmax over all logits, the token rule written out again."""
    totals = []
    for item in items:
        alone = encode(item.context)
        whole = [encode(item.context + item.delimiter + choice) for choice in item.choices]
        shared = next(n for n in range(len(alone), -1, -1) if all(tokens[:n] == alone[:n] for tokens in whole))
        of_item = []
        for tokens in whole:
            with torch.no_grad():
                log_p = model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
            of_item.append(-math.fsum(float(log_p[at - 1, tokens[at]]) for at in range(shared, len(tokens))))
        totals.append(of_item)
    return totals


def gap_per_token(scores, expected) -> float:
    """Largest difference, in nats a scored token."""
    return max(
        abs(found - right) / tokens
        for score, of_item in zip(scores, expected, strict=True)
        for found, right, tokens in zip(score.nll_nats, of_item, score.tokens, strict=True)
    )


def texts_of(generations) -> list[str]:
    return [each.text for each in generations]


def as_array(scores) -> np.ndarray:
    return np.array([nll for score in scores for nll in score.nll_nats])


def save_gguf(path, tokenizer: Tokenizer, kind: str = "F32", *, seed: int = 0, freq_base: float = 10000.0) -> str:
    """A small llama with random weights as a GGUF file; ``kind`` names how its matrices are stored."""
    content = json.loads(tokenizer.to_str())["model"]
    tokens = [*sorted(content["vocab"], key=content["vocab"].get), END]
    width, inner, heads, kept = 32, 64, 4, 2
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kept)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(freq_base)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(tokens) - 1) + [gguf.TokenType.CONTROL])
    writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in content["merges"]])
    writer.add_bos_token_id(len(tokens) - 1)
    writer.add_eos_token_id(len(tokens) - 1)
    matrices = {"token_embd": (len(tokens), width), "output": (len(tokens), width)}
    norms = ["output_norm"]
    for layer in range(2):
        block = f"blk.{layer}"
        norms += [f"{block}.attn_norm", f"{block}.ffn_norm"]
        matrices |= {f"{block}.attn_q": (width, width), f"{block}.attn_output": (width, width)}
        matrices |= {f"{block}.attn_{each}": (width * kept // heads, width) for each in "kv"}
        matrices |= {f"{block}.ffn_{each}": (inner, width) for each in ("gate", "up")}
        matrices |= {f"{block}.ffn_down": (width, inner)}
    rng, stored = np.random.default_rng(seed), gguf.GGMLQuantizationType[kind]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    for name, shape in matrices.items():
        numbers = gguf.quants.quantize(rng.normal(0, 0.3, shape).astype(np.float32), stored)
        writer.add_tensor(f"{name}.weight", numbers, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(path)
