"""onepass: exact attention in one pass over the data.

`attention` computes it, `attention_varlen` for packed sequences; `plan` and `explain` say how,
`merge` joins partial results, and `onepass.reference` is the float64 meaning of a call, step by
step in NumPy.
"""

from . import reference
from ._onepass import (
    Plan,
    __version__,
    attention,
    attention_varlen,
    explain,
    merge,
    plan,
)

__all__ = [
    "Plan",
    "__version__",
    "attention",
    "attention_varlen",
    "explain",
    "merge",
    "plan",
    "reference",
]
