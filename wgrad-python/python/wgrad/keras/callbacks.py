"""Callbacks of `fit`, written in Python."""

import math
import os

import numpy as np

from .. import _wgrad


class Callback:
    """Is called during training; `self.model` is the model."""

    # A callback that has methods for batches and does not need them now sets this to False: each batch waits for its logs.
    _of_batches = True

    def __init__(self):
        self.model = None
        self.params = None

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params

    def on_train_begin(self, logs=None):
        pass

    def on_train_end(self, logs=None):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        pass

    def on_epoch_end(self, epoch, logs=None):
        pass

    def on_train_batch_begin(self, batch, logs=None):
        pass

    def on_train_batch_end(self, batch, logs=None):
        pass

    def on_test_begin(self, logs=None):
        pass

    def on_test_end(self, logs=None):
        pass

    def on_test_batch_begin(self, batch, logs=None):
        pass

    def on_test_batch_end(self, batch, logs=None):
        pass

    def on_predict_begin(self, logs=None):
        pass

    def on_predict_end(self, logs=None):
        pass

    def on_predict_batch_begin(self, batch, logs=None):
        pass

    def on_predict_batch_end(self, batch, logs=None):
        pass


_OF_BATCHES = [f"on_{phase}_batch_{end}" for phase in ("train", "test", "predict") for end in ("begin", "end")]


class History(Callback):
    """The losses and metrics of each epoch."""

    def __init__(self):
        super().__init__()
        self.history, self.epoch = {}, []


def wrapped(callbacks, model, params):
    """The callbacks as the native `fit` takes them: each with whether it needs every batch."""
    found = []
    for callback in callbacks or ():
        if type(callback) is History or isinstance(callback, BackupAndRestore):
            continue
        if not isinstance(callback, Callback):
            raise TypeError(f"fit: {callback!r} is no callback; derive it from keras.callbacks.Callback.")
        callback.set_model(model)
        callback.set_params(params)
        kind = type(callback)
        batches = any(getattr(kind, name) is not getattr(Callback, name) for name in _OF_BATCHES)
        found.append((callback, batches and callback._of_batches))
    return found


class LambdaCallback(Callback):
    """Calls functions."""

    def __init__(self, on_epoch_begin=None, on_epoch_end=None, on_train_begin=None, on_train_end=None,
                 on_train_batch_begin=None, on_train_batch_end=None):
        super().__init__()
        self._calls = {
            "epoch_begin": on_epoch_begin, "epoch_end": on_epoch_end, "train_begin": on_train_begin,
            "train_end": on_train_end, "batch_begin": on_train_batch_begin, "batch_end": on_train_batch_end,
        }
        self._of_batches = on_train_batch_begin is not None or on_train_batch_end is not None

    def _call(self, name, *arguments):
        if self._calls[name] is not None:
            self._calls[name](*arguments)

    def on_train_begin(self, logs=None):
        self._call("train_begin", logs)

    def on_train_end(self, logs=None):
        self._call("train_end", logs)

    def on_epoch_begin(self, epoch, logs=None):
        self._call("epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch, logs=None):
        self._call("epoch_end", epoch, logs)

    def on_train_batch_begin(self, batch, logs=None):
        self._call("batch_begin", batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self._call("batch_end", batch, logs)


class _Watching(Callback):
    """Compares a value of each epoch with the best one so far."""

    def __init__(self, monitor, mode, min_delta=0.0):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is {mode!r}; it must be 'auto', 'min' or 'max'.")
        self.monitor = monitor
        self._sign = -1 if mode == "max" or mode == "auto" and ("acc" in monitor or "auc" in monitor) else 1
        self.min_delta = abs(min_delta)
        self.best = math.inf * self._sign

    def _value(self, logs):
        if self.monitor not in logs:
            raise ValueError(f"{type(self).__name__}: the logs have no '{self.monitor}'; they have {', '.join(logs)}.")
        return logs[self.monitor]

    def _is_better(self, value):
        return self._sign * (self.best - value) > self.min_delta


class EarlyStopping(_Watching):
    """Ends the training when a value has not become better for `patience` epochs."""

    def __init__(self, monitor="val_loss", min_delta=0, patience=0, verbose=0, mode="auto", baseline=None,
                 restore_best_weights=False, start_from_epoch=0):
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch

    def on_train_begin(self, logs=None):
        self.wait, self.stopped_epoch, self.best_weights = 0, 0, None
        self.best = math.inf * self._sign if self.baseline is None else self.baseline

    def on_epoch_end(self, epoch, logs=None):
        if epoch < self.start_from_epoch:
            return
        value = self._value(logs)
        if self._is_better(value):
            self.best, self.wait = value, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= max(self.patience, 1) and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.verbose:
                print(f"Epoch {epoch + 1}: early stopping")

    def on_train_end(self, logs=None):
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)


class ModelCheckpoint(_Watching):
    """Saves the model after epochs; `filepath` may contain `{epoch}` and names of the logs."""

    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, mode="auto"):
        super().__init__(monitor, mode)
        self.filepath, self.verbose = str(filepath), verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only

    def on_epoch_end(self, epoch, logs=None):
        if self.save_best_only:
            value = self._value(logs)
            if not self._is_better(value):
                return
            self.best = value
        path = self.filepath.format(epoch=epoch + 1, **logs)
        (self.model.save_weights if self.save_weights_only else self.model.save)(path)
        if self.verbose:
            print(f"Epoch {epoch + 1}: saved {path}")


class BackupAndRestore(Callback):
    """Saves the whole training while it runs, so that the same `fit` continues where it was interrupted."""

    def __init__(self, backup_dir, save_freq="epoch", double_checkpoint=False, delete_checkpoint=True):
        super().__init__()
        if not backup_dir:
            raise ValueError("BackupAndRestore: backup_dir is empty; give a folder that contains nothing else.")
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(f"BackupAndRestore: save_freq is {save_freq!r}; it must be 'epoch' or a number of batches.")
        self.backup_dir, self.save_freq = str(backup_dir), save_freq
        self.double_checkpoint, self.delete_checkpoint = bool(double_checkpoint), bool(delete_checkpoint)

    def _plan(self):
        return self.backup_dir, None if self.save_freq == "epoch" else self.save_freq, self.double_checkpoint, self.delete_checkpoint


def _note_rate(model, logs):
    """Adds the learning rate of an epoch to its logs."""
    if logs is not None:
        logs["learning_rate"] = float(model.optimizer.learning_rate)


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch: `schedule(epoch, rate)`."""

    def __init__(self, schedule, verbose=0):
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch, logs=None):
        rate = float(self.schedule(epoch, float(self.model.optimizer.learning_rate)))
        self.model.optimizer.learning_rate = rate
        if self.verbose > 0:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch, logs=None):
        _note_rate(self.model, logs)


class ReduceLROnPlateau(_Watching):
    """Reduces the learning rate when a value has not become better for `patience` epochs."""

    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto", min_delta=1e-4, cooldown=0,
                 min_lr=0.0):
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor is {factor}; it must be below 1.")
        self.factor, self.patience, self.cooldown, self.min_lr, self.verbose = factor, patience, cooldown, min_lr, verbose

    def on_train_begin(self, logs=None):
        self.wait = self._cooling = 0
        self.best = math.inf * self._sign

    def on_epoch_end(self, epoch, logs=None):
        _note_rate(self.model, logs)
        value = self._value(logs)
        if self._cooling > 0:
            self._cooling, self.wait = self._cooling - 1, 0
        if self._is_better(value):
            self.best, self.wait = value, 0
        elif self._cooling <= 0:
            self.wait += 1
            rate = self.model.optimizer.learning_rate
            if self.wait >= self.patience and rate > self.min_lr:
                rate = self.model.optimizer.learning_rate = max(rate * self.factor, self.min_lr)
                if self.verbose > 0:
                    print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {rate}.")
                self._cooling, self.wait = self.cooldown, 0


class TerminateOnNaN(Callback):
    """Ends the training when the loss is NaN or infinite."""

    def on_train_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class CSVLogger(Callback):
    """Writes the logs of each epoch to a file."""

    def __init__(self, filename, separator=",", append=False):
        super().__init__()
        self.filename, self.separator, self.append = filename, separator, append

    def on_train_begin(self, logs=None):
        self._file = open(self.filename, "a" if self.append else "w", encoding="utf-8")
        self._keys = None

    def on_epoch_end(self, epoch, logs=None):
        if self._keys is None:
            self._keys = sorted(logs)
            if not self.append or self._file.tell() == 0:
                self._file.write(self.separator.join(["epoch", *self._keys]) + "\n")
        values = [str(logs.get(key, "NA")) for key in self._keys]
        self._file.write(self.separator.join([str(epoch), *values]) + "\n")
        self._file.flush()

    def on_train_end(self, logs=None):
        self._file.close()


class TensorBoard(Callback):
    """Writes the logs of each epoch for TensorBoard: those of training into `train`, of validation into `validation`."""

    def __init__(self, log_dir="logs", histogram_freq=0, write_graph=True, write_images=False, write_steps_per_second=False,
                 update_freq="epoch", **options):
        super().__init__()
        if histogram_freq or write_images or write_steps_per_second:
            raise TypeError("TensorBoard: histogram_freq, write_images and write_steps_per_second are not supported; leave them out.")
        self.log_dir, self.update_freq, self._steps = str(log_dir), update_freq, 0
        self._of_batches = update_freq != "epoch"

    def on_train_begin(self, logs=None):
        self._writers = {}

    def _write(self, part, values, step, prefix):
        if not values:
            return
        if part not in self._writers:
            self._writers[part] = _wgrad.SummaryWriter(os.path.join(self.log_dir, part))
        with self._writers[part]:
            for name, value in values.items():
                _wgrad.summary_scalar(prefix + name, float(value), step)

    def on_train_batch_end(self, batch, logs=None):
        self._steps += 1
        if self.update_freq == "batch" or isinstance(self.update_freq, int) and self._steps % self.update_freq == 0:
            self._write("train", logs or {}, self._steps, "batch_")

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        validation = {key[4:]: value for key, value in logs.items() if key.startswith("val_")}
        training = {key: value for key, value in logs.items() if not key.startswith("val_")}
        self._write("train", training, epoch, "epoch_")
        self._write("validation", validation, epoch, "epoch_")

    def on_train_end(self, logs=None):
        self._writers = {}
