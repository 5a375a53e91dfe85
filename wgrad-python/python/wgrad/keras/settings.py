"""The settings of `compile` in `.keras` files."""

import json
import zipfile

_WRITER = "wgrad"


def _settings_of(path):
    """The settings of `compile` in a file that `save` has written."""
    try:
        with zipfile.ZipFile(path) as file:
            if json.loads(file.read("metadata.json")).get("written_by") == _WRITER:
                return json.loads(file.read("config.json")).get("compile_config")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        # The native part says what is wrong with the file.
        pass
    return None


def _object_of(value, tables):
    if isinstance(value, dict) and "class_name" in value:
        for table in tables:
            if value["class_name"] in table:
                return table[value["class_name"]](**{
                    key: _object_of(item, tables) for key, item in value["config"].items()
                })
        raise ValueError(f"load_model: there is no class '{value['class_name']}'; load the model with compile=False.")
    if isinstance(value, dict):
        return {key: _object_of(item, tables) for key, item in value.items()}
    return [_object_of(item, tables) for item in value] if isinstance(value, list) else value
