"""Answers about out-of-memory errors, for users of PyTorch and the systems on top of it. Needs none of them.

    with headroom.doctor.watch():            # prints doctor's answer when the code inside runs out of memory
        trainer.train()

    trainer.add_callback(headroom.doctor.TrainerCallback())     # of transformers' Trainer: the same, with its settings

    print(headroom.doctor.explain(error, config="sft.yaml"))
"""
from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from typing import Any, Iterator, Optional, Sequence, TextIO, Union

from . import _engine

Path = Union[str, "os.PathLike[str]"]

__all__ = ["Diagnosis", "TrainerCallback", "explain", "is_out_of_memory", "watch"]


class Diagnosis:
    """doctor's answer: str() is the screen, .details everything, .to_dict() the JSON record as a dict."""

    screen: str
    details: str

    def __init__(self, engine: _engine.Diagnosis) -> None:
        self.screen, self.details, self._json = engine.screen, engine.details, engine.json

    def to_dict(self) -> dict[str, Any]:
        """The JSON record as a dict (docs/doctor.md)."""
        return json.loads(self._json)

    def __str__(self) -> str:
        return self.screen

    __repr__ = __str__


def _listed(value: Union[Path, Sequence[Path], None]) -> list[str]:
    return [] if value is None else [os.fspath(v) for v in (value if isinstance(value, (list, tuple)) else [value])]


def explain(problem: Union[BaseException, str, None] = None, config: Union[Path, Sequence[Path], None] = None, *,
            files: Union[Path, Sequence[Path], None] = None, command: Union[str, Sequence[str], None] = None, model: Path = "",
            parameters: str = "", gpu: str = "", gpus: int = 0, micro_batch_size: int = 0, max_seq_length: int = 0) -> Diagnosis:
    """doctor's answer (`Diagnosis`) to an exception or the text of an error, a configuration, a command, or all of them.

    config, files: paths, or lists of them; command: words of another system's command line; model: config.json, its
    directory, or a published name; gpu: "a100-40gb", or its memory as "24GiB". Raises UsageError when nothing is brought."""
    text = message_of(problem) if isinstance(problem, BaseException) else problem or ""
    words = command.split() if isinstance(command, str) else list(command or [])
    return Diagnosis(_engine.explain(text, _listed(files), _listed(config), words, os.fspath(model), parameters, gpu, gpus, micro_batch_size,
                                     max_seq_length))


def message_of(error: BaseException) -> str:
    """As an uncaught exception is printed: "torch.OutOfMemoryError: CUDA out of memory. ..."."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}: {error}"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, of a device or of the host."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return type(error).__name__ == "OutOfMemoryError" or any(
        sign in text for sign in ("out of memory", "can't allocate memory", "cannot allocate memory", "cublas_status_alloc_failed"))


def _live_facts() -> dict[str, Any]:
    """What the process knows of its GPU: keywords of explain()."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_available():
            return {}
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return {"gpu": f"{properties.total_memory / 2**30:.2f}GiB", "gpus": torch.cuda.device_count()}
    except Exception:  # a device that is lost tells nothing
        return {}


def _snapshot(folder: str) -> list[str]:
    """torch's record of its allocations, where it was asked to keep one."""
    torch = sys.modules.get("torch")
    path = os.path.join(folder, "snapshot.pickle")
    try:
        if torch is not None and torch.cuda.is_available() and torch.cuda.memory._snapshot()["device_traces"][0]:
            torch.cuda.memory._dump_snapshot(path)
            return [path]
    except Exception:
        pass
    return []


def _answer(error: BaseException, known: dict[str, Any]) -> str:
    facts = {**_live_facts(), **{key: value for key, value in known.items() if value}}
    with tempfile.TemporaryDirectory() as folder:
        for more in ({"files": _snapshot(folder)}, {}):
            for narrowed in (facts, {}):  # a fact that doctor cannot use does not cost the answer
                try:
                    return str(explain(error, **{**narrowed, **more}))
                except Exception:
                    continue
    return ""


def _print_answer(error: BaseException, known: dict[str, Any], file: Optional[TextIO]) -> None:
    if answer := _answer(error, known):
        print("\n" + answer, file=file or sys.stderr, flush=True)


@contextlib.contextmanager
def watch(*, file: Optional[TextIO] = None, **known: Any) -> Iterator[None]:
    """Prints doctor's answer when the code inside runs out of memory; the exception propagates.

    known: keywords of explain() beside what the live process tells (its GPU, torch's snapshot). file: where to print
    (sys.stderr)."""
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            _print_answer(error, known, file)
        raise


class TrainerCallback:
    """For transformers' Trainer: when training runs out of memory and the script ends because of it, doctor's answer is printed
    behind the traceback, filled with the trainer's model and arguments.

        Trainer(..., callbacks=[headroom.doctor.TrainerCallback()])

    Inside `with headroom.doctor.watch():` or a notebook, where no exception ends the program, use `watch(**callback.known)`."""

    file: Optional[TextIO]
    known: dict[str, Any]

    def __init__(self, file: Optional[TextIO] = None) -> None:
        self.file = file
        self.known = {}
        self._folder: Any = None
        self._hook: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> Any:
        """Keeps the trainer's model and arguments, and answers an error that ends the program from now on."""
        self._folder = self._folder or tempfile.TemporaryDirectory()
        self.known = {"micro_batch_size": getattr(args, "per_device_train_batch_size", 0)}
        if hasattr(args, "to_json_string"):
            self.known["config"] = self._keep("arguments.json", args.to_json_string())
        if hasattr(getattr(model, "config", None), "to_json_string"):
            self.known["model"] = self._keep("config.json", model.config.to_json_string(use_diff=False))
        if self._hook is None:
            self._hook, sys.excepthook = sys.excepthook, self._uncaught
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        """Answers no further error."""
        if self._hook is not None:
            sys.excepthook, self._hook = self._hook, None
        return control

    def _keep(self, name: str, text: str) -> str:
        path = os.path.join(self._folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def _uncaught(self, kind: Any, error: BaseException, trace: Any) -> None:
        self._hook(kind, error, trace)
        if is_out_of_memory(error):
            _print_answer(error, self.known, self.file)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):  # the trainer's other events
            return lambda args, state, control, **others: control
        raise AttributeError(name)
