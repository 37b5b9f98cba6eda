"""Golden products again, from the definitions in words, with Python's integers alone; prints the table."""

import hashlib
import struct

M = 2**64 - 1
BITS = {"float64": (53, 53), "float32": (24, 24), "tf32": (11, 24), "float16": (11, 11), "bfloat16": (8, 8)}


def word(seed, index):
    z = (seed * 0xD1B54A32D192ED03 + (index + 1) * 0x9E3779B97F4A7C15) & M
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
    return z ^ (z >> 31)


def value(pattern, bits, seed, index):
    noise, place = word(seed, index), seed % 2 + index
    sign = -1 if noise & 1 else 1
    full = max(2**bits - 1, 1)
    if pattern == "random":
        return noise % (2 * 2**bits + 1) - 2**bits
    if pattern == "ones":
        return sign * full
    if pattern == "walking":
        return sign * 2 ** (place % (bits + 1))
    if pattern == "alternating":
        odd = sum(2**bit for bit in range(0, bits, 2)) or 1
        return sign * (odd if place % 2 == 0 else (full - odd) or 1)
    return full if place % 2 == 0 else -1


def product(pattern, precision, rows, inner, columns, seed):
    operand_bits, sum_bits = BITS[precision]
    live = min((inner - 1).bit_length(), 3 * sum_bits // 4)
    left_bits = min((sum_bits - live) // 2, operand_bits)
    right_bits = min(sum_bits - live - left_bits, operand_bits)
    order = sorted(range(inner), key=lambda place: word(2 * seed + 1, place))
    dead = set(order[2**live :])
    left = [
        [0 if k in dead else value(pattern, left_bits, 2 * seed, i * inner + k) for k in range(inner)]
        for i in range(rows)
    ]
    right = [
        [value(pattern, right_bits, 2 * seed + 1_000_003, k * columns + j) for j in range(columns)]
        for k in range(inner)
    ]
    return [[sum(row[k] * right[k][j] for k in range(inner)) for j in range(columns)] for row in left]


def digest(rows):
    return hashlib.sha256(b"".join(struct.pack(f"<{len(row)}q", *row) for row in rows)).hexdigest()[:16]


if __name__ == "__main__":
    for precision in BITS:
        for pattern in ("random", "ones", "walking", "alternating", "toggle"):
            print(f'    "{pattern} {precision}": "{digest(product(pattern, precision, 48, 96, 80, 2026))}",')
