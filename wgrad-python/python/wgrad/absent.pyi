from collections.abc import Callable
from typing import Any

INSTEAD: dict[str, str]

def getter(module: str, namespace: str = "") -> Callable[[str], Any]: ...

class compat:
    v1: Any
    v2: Any
    @staticmethod
    def as_bytes(bytes_or_text: str | bytes, encoding: str = "utf-8") -> bytes: ...
    @staticmethod
    def as_text(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str: ...
    @staticmethod
    def as_str(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str: ...
    @staticmethod
    def as_str_any(value: Any, encoding: str = "utf-8") -> str: ...
    @staticmethod
    def path_to_str(path: Any) -> str: ...
