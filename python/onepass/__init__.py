"""onepass: exact attention in one pass over the data.

`attention` computes it and `attention_backward` its gradients, for packed sequences with `_varlen`
in their names; `attention_kvcache` is for inference; `plan`, `plan_backward`, `plan_kvcache` and
`explain` say how, `merge` joins partial results, `dropout_mask` shows what dropout keeps, and
`onepass.reference` is the float64 meaning of a call, step by step in NumPy.
"""

from . import reference
from ._onepass import (
    Plan,
    __version__,
    attention,
    attention_backward,
    attention_kvcache,
    attention_varlen,
    attention_varlen_backward,
    dropout_mask,
    explain,
    merge,
    plan,
    plan_backward,
    plan_kvcache,
)

__all__ = [
    "Plan",
    "__version__",
    "attention",
    "attention_backward",
    "attention_kvcache",
    "attention_varlen",
    "attention_varlen_backward",
    "dropout_mask",
    "explain",
    "merge",
    "plan",
    "plan_backward",
    "plan_kvcache",
    "reference",
]
