"""Writes checkpoint_manager.json: which checkpoints TensorFlow's CheckpointManager keeps.

Each case is a sequence of saves and of new managers at given times; after each the file lists what is managed, what lies in the folder,
and when a checkpoint was preserved last. Run it with TensorFlow 2.21.
"""

import json
import os
import random
import tempfile
import time
from unittest import mock

import tensorflow as tf


def names(paths):
    return [os.path.basename(path) for path in paths]


def run(case):
    clock = [case["start"]]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(time, "time", lambda: clock[0]):
        checkpoint = tf.train.Checkpoint(step=tf.Variable(0))

        def manager():
            return tf.train.CheckpointManager(
                checkpoint, folder, case["max_to_keep"],
                keep_checkpoint_every_n_hours=case["keep_every_n_hours"])

        current, after = manager(), []
        for passed, number in case["saves"]:
            clock[0] += passed
            if number is None:
                current = manager()
            else:
                current.save(checkpoint_number=number)
            state = tf.train.get_checkpoint_state(folder)
            after.append({
                "checkpoints": names(current.checkpoints),
                "files": sorted(name[:-6] for name in os.listdir(folder) if name.endswith(".index")),
                "last_preserved": state.last_preserved_timestamp if state else None,
                "latest": os.path.basename(state.model_checkpoint_path) if state else None,
            })
        return after


def main():
    draw = random.Random(16)
    cases = []
    for keep, hours in [(3, None), (1, None), (None, None), (2, 1), (3, 2.5), (1, 0.25), (None, 1), (5, 24)]:
        for turns_back in [False, True]:
            saves, number = [], 0
            for _ in range(24):
                passed = draw.choice([0.5, 60, 900, 1800, 3600, 7200.25])
                if turns_back and draw.random() < 0.15:
                    passed = -passed
                if draw.random() < 0.15:
                    saves.append([passed, None])
                    continue
                # Sometimes a number that was used before.
                number = max(1, number - 1) if draw.random() < 0.15 else number + draw.choice([1, 1, 10])
                saves.append([passed, number])
            cases.append({"start": 1000000.0, "max_to_keep": keep, "keep_every_n_hours": hours, "saves": saves})
    for case in cases:
        case["after"] = run(case)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoint_manager.json")
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
