# Written by stubs.py from the tables of the package.
from .config import (
    backend as backend,
    clear_session as clear_session,
    disable_interactive_logging as disable_interactive_logging,
    disable_traceback_filtering as disable_traceback_filtering,
    enable_interactive_logging as enable_interactive_logging,
    enable_traceback_filtering as enable_traceback_filtering,
    epsilon as epsilon,
    floatx as floatx,
    get_uid as get_uid,
    image_data_format as image_data_format,
    is_float_dtype as is_float_dtype,
    is_int_dtype as is_int_dtype,
    is_interactive_logging_enabled as is_interactive_logging_enabled,
    is_keras_tensor as is_keras_tensor,
    is_traceback_filtering_enabled as is_traceback_filtering_enabled,
    set_epsilon as set_epsilon,
    set_floatx as set_floatx,
    set_image_data_format as set_image_data_format,
    standardize_dtype as standardize_dtype,
)
from .policies import (
    dtype_policy as dtype_policy,
    set_dtype_policy as set_dtype_policy,
)
from .ctc import (
    ctc_batch_cost as ctc_batch_cost,
)
