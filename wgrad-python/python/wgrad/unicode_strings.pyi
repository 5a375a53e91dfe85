# Written by stubs.py from the tables of the package.
from collections.abc import Sequence
from typing import Any

from .dtypes import DTypeLike
from .tensor import Tensor, TensorLike

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

def unicode_decode(input: Any, input_encoding: Any, errors: Any = 'replace', replacement_char: Any = 65533, replace_control_characters: Any = False, name: str | None = None) -> Any: ...
def unicode_split(input: Any, input_encoding: Any, errors: Any = 'replace', replacement_char: Any = 65533, name: str | None = None) -> Any: ...
def unicode_encode(input: Any, output_encoding: Any, errors: Any = 'replace', replacement_char: Any = 65533, name: str | None = None) -> Any: ...
def unicode_transcode(input: Any, input_encoding: Any, output_encoding: Any, errors: Any = 'replace', replacement_char: Any = 65533, replace_control_characters: Any = False, name: str | None = None) -> Any: ...
