"""Python's values as the options of the command line."""
from __future__ import annotations

import json
import os
from typing import Any


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def pairs(options: dict[str, Any]) -> list[tuple[str, str]]:
    """[(name, text)] of keyword arguments: None is left out, a list is a repeated option, a dict one of NAME=VALUE, a schema its text."""
    found = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, dict) and name.replace("-", "_") == "json_schema":
            value = json.dumps(value)
        if isinstance(value, dict):
            value = [f"{key}={_text(setting)}" for key, setting in value.items()]
        for one in value if isinstance(value, (list, tuple)) else [value]:
            found.append((name, _text(one)))
    return found
