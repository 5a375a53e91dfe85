import os
from collections.abc import Callable
from typing import Any

_Logs = dict[str, Any] | None

class Callback:
    model: Any
    params: Any
    def __init__(self) -> None: ...
    def set_model(self, model: Any) -> None: ...
    def set_params(self, params: Any) -> None: ...
    def on_train_begin(self, logs: _Logs = None) -> None: ...
    def on_train_end(self, logs: _Logs = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: _Logs = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: _Logs = None) -> None: ...
    def on_train_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: _Logs = None) -> None: ...
    def on_test_begin(self, logs: _Logs = None) -> None: ...
    def on_test_end(self, logs: _Logs = None) -> None: ...
    def on_test_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_test_batch_end(self, batch: int, logs: _Logs = None) -> None: ...
    def on_predict_begin(self, logs: _Logs = None) -> None: ...
    def on_predict_end(self, logs: _Logs = None) -> None: ...
    def on_predict_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_predict_batch_end(self, batch: int, logs: _Logs = None) -> None: ...

class History(Callback):
    history: dict[str, list[float]]
    epoch: list[int]

class LambdaCallback(Callback):
    def __init__(
        self, on_epoch_begin: Callable[..., Any] | None = None, on_epoch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None, on_train_end: Callable[..., Any] | None = None,
        on_train_batch_begin: Callable[..., Any] | None = None, on_train_batch_end: Callable[..., Any] | None = None,
    ) -> None: ...

class _Watching(Callback):
    monitor: str
    best: float
    min_delta: float
    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None: ...

class EarlyStopping(_Watching):
    stopped_epoch: int
    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0, patience: int = 0, verbose: int = 0, mode: str = "auto",
        baseline: float | None = None, restore_best_weights: bool = False, start_from_epoch: int = 0,
    ) -> None: ...

class ModelCheckpoint(_Watching):
    def __init__(
        self, filepath: str | os.PathLike[str], monitor: str = "val_loss", verbose: int = 0, save_best_only: bool = False,
        save_weights_only: bool = False, mode: str = "auto", save_freq: str | int = "epoch", initial_value_threshold: float | None = None,
    ) -> None: ...

class BackupAndRestore(Callback):
    backup_dir: str
    save_freq: str | int
    double_checkpoint: bool
    delete_checkpoint: bool
    def __init__(
        self, backup_dir: str | os.PathLike[str], save_freq: str | int = "epoch", double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None: ...

class LearningRateScheduler(Callback):
    def __init__(self, schedule: Callable[[int, float], float], verbose: int = 0) -> None: ...

class ReduceLROnPlateau(_Watching):
    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0, mode: str = "auto",
        min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
    ) -> None: ...

class TerminateOnNaN(Callback): ...

class CSVLogger(Callback):
    def __init__(self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None: ...

class TensorBoard(Callback):
    log_dir: str
    def __init__(
        self, log_dir: str | os.PathLike[str] = "logs", histogram_freq: int = 0, write_graph: bool = True, write_images: bool = False,
        write_steps_per_second: bool = False, update_freq: str | int = "epoch", **options: Any,
    ) -> None: ...

class CallbackList(Callback):
    callbacks: list[Callback]
    def __init__(
        self, callbacks: Any = None, add_history: bool = False, add_progbar: bool = False, model: Any = None, **params: Any
    ) -> None: ...
    def append(self, callback: Callback) -> None: ...

class RemoteMonitor(Callback):
    root: str
    path: str
    field: str
    headers: dict[str, str] | None
    send_as_json: bool
    def __init__(
        self, root: str = "http://localhost:9000", path: str = "/publish/epoch/end/", field: str = "data",
        headers: dict[str, str] | None = None, send_as_json: bool = False,
    ) -> None: ...

class SwapEMAWeights(Callback):
    swap_on_epoch: bool
    def __init__(self, swap_on_epoch: bool = False) -> None: ...
