"""Gradients of a loss through attention with a bias that is learnt, beside a finite difference."""

import numpy as np

import onepass

rng = np.random.default_rng(0)
q, k, v, goal = rng.standard_normal((4, 2, 50, 4, 32))  # float64: (b, s, h, d)
bias = rng.standard_normal((1, 4, 50, 50))
call = dict(mask="causal", score="bias(s, m)")


def loss(bias):
    o, lse = onepass.attention(q, k, v, **call, args={"m": bias}, return_lse=True)
    return np.square(o - goal).sum() / 2, o, lse


_, o, lse = loss(bias)
# The gradient of the loss by o, then what the forward was given and what it returned.
dq, dk, dv, dargs = onepass.attention_backward(o - goal, q, k, v, o, lse, **call,
                                               args={"m": bias}, return_args=True)
direction, step = rng.standard_normal(bias.shape), 1e-6
difference = (loss(bias + step * direction)[0] - loss(bias - step * direction)[0]) / (2 * step)
error = abs((dargs["m"] * direction).sum() / difference - 1)
print(f"gradient of the bias beside a finite difference, relative error: {error:.1e}")
