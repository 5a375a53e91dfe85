"""Callbacks of `fit`, written in Python."""

import json
import math
import os
import urllib.parse
import urllib.request
import warnings

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

    # `fit` fills it itself; these are for a loop of a program.

    def on_train_begin(self, logs=None):
        self.epoch = []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


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
    """Saves the model after epochs, or each `save_freq` batches; `filepath` may contain `{epoch}`, `{batch}` and names of the logs."""

    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, mode="auto",
                 save_freq="epoch", initial_value_threshold=None):
        super().__init__(monitor, mode)
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(f"ModelCheckpoint: save_freq is {save_freq!r}; it must be 'epoch' or a number of batches.")
        self.filepath, self.verbose = str(filepath), verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.save_freq, self._batches, self._epoch = save_freq, 0, 0
        if initial_value_threshold is not None:
            self.best = initial_value_threshold

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.save_freq == "epoch":
            return
        self._batches += 1
        if self._batches % self.save_freq == 0:
            self._save(self._epoch, {"batch": batch + 1, **(logs or {})})

    def on_epoch_end(self, epoch, logs=None):
        if self.save_freq == "epoch":
            self._save(epoch, logs or {})

    def _save(self, epoch, logs):
        if self.save_best_only:
            value = self._value(logs)
            if not self._is_better(value):
                return
            self.best = value
        path = self.filepath.format(epoch=epoch + 1, **logs)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
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


class CallbackList(Callback):
    """Callbacks as one, for a training loop of a program."""

    def __init__(self, callbacks=None, add_history=False, add_progbar=False, model=None, **params):
        super().__init__()
        if add_progbar:
            raise TypeError("CallbackList: add_progbar is not supported; use keras.utils.Progbar in the loop.")
        self.callbacks = list(callbacks or ())
        if add_history and not any(isinstance(callback, History) for callback in self.callbacks):
            self.callbacks.append(History())
        if model is not None:
            self.set_model(model)
        self.set_params(params)

    def append(self, callback):
        self.callbacks.append(callback)

    def set_model(self, model):
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)
            if isinstance(callback, History):
                model.history = callback

    def set_params(self, params):
        super().set_params(params)
        for callback in self.callbacks:
            callback.set_params(params)


def _for_all(name):
    def method(self, *arguments, **options):
        for callback in self.callbacks:
            getattr(callback, name)(*arguments, **options)

    method.__name__, method.__qualname__ = name, f"CallbackList.{name}"
    return method


for _name in [name for name in vars(Callback) if name.startswith("on_")]:
    setattr(CallbackList, _name, _for_all(_name))


class RemoteMonitor(Callback):
    """Sends the logs of each epoch to a server by HTTP: as a field of a form, or as JSON."""

    def __init__(self, root="http://localhost:9000", path="/publish/epoch/end/", field="data", headers=None, send_as_json=False):
        super().__init__()
        self.root, self.path, self.field, self.headers, self.send_as_json = root, path, field, headers, send_as_json

    def on_epoch_end(self, epoch, logs=None):
        logs = {"epoch": epoch} | {key: float(value) for key, value in (logs or {}).items()}
        text = json.dumps(logs)
        kind = "application/json" if self.send_as_json else "application/x-www-form-urlencoded"
        body = text if self.send_as_json else urllib.parse.urlencode({self.field: text})
        request = urllib.request.Request(self.root + self.path, body.encode(), {"Content-Type": kind, **(self.headers or {})})
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError as error:
            warnings.warn(f"RemoteMonitor: the server at {self.root} did not take the logs: {error}", stacklevel=2)


class SwapEMAWeights(Callback):
    """Gives the model the averages of its weights, which an optimizer with `use_ema` keeps, for evaluations and predictions; with
    `swap_on_epoch` also at the end of each epoch, such as for a `ModelCheckpoint` behind it."""

    _of_batches = False

    def __init__(self, swap_on_epoch=False):
        super().__init__()
        self.swap_on_epoch, self._swapped = swap_on_epoch, False

    def _pairs(self):
        """The weights with their averages; none before the first step."""
        optimizer = self.model.optimizer
        if not getattr(optimizer, "inner_optimizer", optimizer).get_config()["use_ema"]:
            raise ValueError("SwapEMAWeights: the optimizer keeps no averages; make it with use_ema=True.")
        averages = [v for name, v, _ in optimizer._native.variables() if name.split("/")[-2:-1] == ["average"]]
        weights = self.model.trainable_variables
        if averages and [v.shape for v in averages] != [v.shape for v in weights]:
            raise ValueError(f"SwapEMAWeights: the optimizer has {len(averages)} averages for {len(weights)} weights that training changes.")
        return list(zip(weights, averages))

    def _swap(self, swapped):
        if self._swapped != swapped:
            for weight, average in self._pairs():
                value = weight.read_value()
                weight.assign(average)
                average.assign(value)
            self._swapped = swapped

    def on_epoch_begin(self, epoch, logs=None):
        if self.swap_on_epoch:
            self._swap(False)

    def on_epoch_end(self, epoch, logs=None):
        if self.swap_on_epoch:
            self._swap(True)
            if epoch == self.params["epochs"] - 1:
                # The end of `fit` gives the weights what the averages are then.
                for weight, average in self._pairs():
                    average.assign(weight)
                self._swapped = False

    def on_test_begin(self, logs=None):
        self._swap(True)

    def on_test_end(self, logs=None):
        self._swap(False)

    on_predict_begin, on_predict_end = on_test_begin, on_test_end
