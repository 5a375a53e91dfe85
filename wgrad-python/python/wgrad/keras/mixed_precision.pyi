# Written by stubs.py from the tables of the package.
from .policies import (
    DTypePolicy as DTypePolicy,
    DTypePolicy as Policy,
    LossScaleOptimizer as LossScaleOptimizer,
    dtype_policy as dtype_policy,
    dtype_policy as global_policy,
    set_dtype_policy as set_dtype_policy,
    set_dtype_policy as set_global_policy,
)
