"""text_to_qkv.py TEXT FOLDER: a text's bytes as attention input, where no model is at hand.

Each byte becomes a seeded random vector plus a sinusoidal position; seeded random projections give
q (1, s, 8, 64) and k, v (1, s, 2, 64), float32, written as q.npy, k.npy, v.npy.
"""

import pathlib
import sys

import numpy as np


def main(text, folder):
    data = np.frombuffer(pathlib.Path(text).read_bytes(), np.uint8)
    rng = np.random.default_rng(1)
    width = 128
    angles = np.arange(len(data))[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    embedded = rng.standard_normal((256, width))[data]
    embedded += np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(data), width)
    for name, heads in (("q", 8), ("k", 2), ("v", 2)):
        projection = rng.standard_normal((width, heads, 64)) / np.sqrt(width)
        array = np.einsum("sw,whd->shd", embedded, projection)[None].astype(np.float32)
        np.save(pathlib.Path(folder) / f"{name}.npy", array)


if __name__ == "__main__":
    main(*sys.argv[1:])
