"""Callbacks of `fit`, written in Python."""

import math

import numpy as np


class Callback:
    """Is called during training; `self.model` is the model."""

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


class History(Callback):
    """The losses and metrics of each epoch."""

    def __init__(self):
        super().__init__()
        self.history, self.epoch = {}, []


def wrapped(callbacks, model, params):
    """The callbacks as the native `fit` takes them: each with whether it needs every batch."""
    found = []
    for callback in callbacks or ():
        if not isinstance(callback, Callback):
            raise TypeError(f"fit: {callback!r} is no callback; derive it from keras.callbacks.Callback.")
        callback.set_model(model)
        callback.set_params(params)
        kind = type(callback)
        batches = (kind.on_train_batch_begin, kind.on_train_batch_end) != (
            Callback.on_train_batch_begin,
            Callback.on_train_batch_end,
        )
        found.append((callback, batches))
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


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch: `schedule(epoch, rate)`."""

    def __init__(self, schedule, verbose=0):
        super().__init__()
        self.schedule = schedule

    def on_epoch_begin(self, epoch, logs=None):
        self.model.optimizer.learning_rate = self.schedule(epoch, self.model.optimizer.learning_rate)


class ReduceLROnPlateau(_Watching):
    """Reduces the learning rate when a value has not become better for `patience` epochs."""

    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto", min_delta=1e-4, cooldown=0,
                 min_lr=0.0):
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor is {factor}; it must be below 1.")
        self.factor, self.patience, self.cooldown, self.min_lr = factor, patience, cooldown, min_lr

    def on_train_begin(self, logs=None):
        self.wait = self._cooling = 0
        self.best = math.inf * self._sign

    def on_epoch_end(self, epoch, logs=None):
        value = self._value(logs)
        if self._cooling > 0:
            self._cooling, self.wait = self._cooling - 1, 0
        if self._is_better(value):
            self.best, self.wait = value, 0
        elif self._cooling <= 0:
            self.wait += 1
            rate = self.model.optimizer.learning_rate
            if self.wait >= self.patience and rate > self.min_lr:
                self.model.optimizer.learning_rate = max(rate * self.factor, self.min_lr)
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
