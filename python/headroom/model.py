"""A model and what can be done with it."""
from __future__ import annotations

import codecs
import json
import os
import queue
import tempfile
import threading
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from . import _engine
from ._engine import Evaluation, MachineProfile, ModelFacts, Step, Training
from .options import pairs
from .plan import Plan

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
OnPlan = Optional[Callable[[Plan], None]]
OnNote = Optional[Callable[[str], None]]
OnProgress = Optional[Callable[[int, int], None]]


class Model:
    """A model directory in Hugging Face layout, and the options that its runs share.

        model = headroom.Model("models/SmolLM2-135M", memory="6GiB", device="cpu")

    Each call takes further options as keywords, and those of the shared options that it knows. Memory that the process
    already holds counts against the budget. Several threads may call at the same time; each call stays inside its own
    budget. Between calls the model of the last generate() or write() stays loaded (see generate()). All calls raise the
    classes of headroom.errors: UsageError for options, FormatError for files, RunError for input, output and devices."""

    path: str

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = os.fspath(path)
        self._session = _engine.Session(self.path, pairs(options))

    def describe(self) -> ModelFacts:
        """What config.json says of the model (`ModelFacts`)."""
        return _engine.describe_model(self.path)

    def plan(self, **options: Any) -> Plan:
        """The fastest plan of a training run inside the budget (`Plan`). A plan that does not fit is not an error."""
        return Plan(self._session.plan(pairs(options)))

    def least_budgets(self, **options: Any) -> list[dict[str, Any]]:
        """The least memory of a training run, by how far from exact it may go: a list of dicts, from exact to lossy.

        Each has "allow", "minimum_bytes", "host_bytes", "disk_bytes", "step_seconds", "techniques" and "command"."""
        return self._ask("minimum", "levels", options)

    def technique_ladder(self, **options: Any) -> list[dict[str, Any]]:
        """What each technique saves (bytes) and costs (seconds of a step), alone and together: a list of dicts."""
        return self._ask("ladder", "rungs", options)

    def plans_by_budget(self, **options: Any) -> list[dict[str, Any]]:
        """The plan that each budget buys: a list of dicts, the least budget first.

        Each has "budget_bytes", "peak_bytes", "host_bytes", "disk_bytes", "step_seconds", "techniques" and "command"."""
        return self._ask("curve", "points", options)

    def measure_plans(self, *, on_note: OnNote = None, **options: Any) -> list[dict[str, Any]]:
        """Runs the fastest plan inside the budget and the two next smaller ones on this machine, five steps each.

        A list of dicts with "predicted_step_seconds", "measured_step_seconds", "peak_bytes", "choices" and "command",
        the fastest prediction first. Writes nothing. Ctrl-C ends it before the next plan."""
        return self._ask("measure", "plans", options, on_note)

    def _ask(self, question: str, member: str, options: dict[str, Any], on_note: OnNote = None) -> list[dict[str, Any]]:
        return json.loads(self._session.ask(question, pairs(options), on_note))[member]

    def train(self, data: Optional[Paths] = None, output_dir: Optional[Path] = None, *, on_step: Optional[Callable[[Step], None]] = None,
              on_plan: OnPlan = None, on_note: OnNote = None,
              on_evaluation: Optional[Callable[[int, str, Evaluation], None]] = None,
              on_save: Optional[Callable[[int, str], None]] = None, **options: Any) -> Training:
        """Plans a run and executes the plan. Ctrl-C saves a checkpoint, then raises KeyboardInterrupt.

        on_step(Step), on_plan(Plan), on_note(str), on_evaluation(step, set, Evaluation) and on_save(step, directory) are
        called between steps. Returns `Training`: steps, stopped, output_dir. Raises Refusal before anything is written."""
        given = pairs({"data": data, "output_dir": output_dir, **options})
        return self._session.train(given, _with_plan(on_plan), on_note, on_step, on_evaluation, on_save)

    def evaluate(self, data: Paths, *, on_plan: OnPlan = None, on_note: OnNote = None, on_progress: OnProgress = None,
                 **options: Any) -> Evaluation:
        """The loss (nats per target) and perplexity over files (`Evaluation`). Raises Refusal.

        on_plan(Plan) is called before it runs, on_note(str) with lines of text for people, on_progress(done, total) after
        each batch. Ctrl-C ends it after a batch with KeyboardInterrupt."""
        return self._session.evaluate(pairs({"data": data, **options}), _with_plan(on_plan), on_note, on_progress)

    def generate(self, prompt: str, *, on_plan: OnPlan = None, on_note: OnNote = None, **options: Any) -> Iterator[str]:
        """An iterator over pieces of text as they are generated. Closing it ends the generation at the next piece. Raises Refusal at the
        first piece where the budget is too small.

        On a CPU the model stays planned and loaded for the next text, inside the budget, until plan(), train(),
        evaluate(), a question about plans or release() is called, or the Model is gone. on_plan(Plan) is called, from
        another thread, only if the model is planned and loaded: for the first text, and again if options about the model
        or the machine are others, if the model's files were replaced since, if the text is longer than the plan has
        positions for, or if the budget does not hold the loaded model and the prompt. on_note(str) gets lines of text for
        people, from another thread."""
        return _stream(self._session, prompt, pairs(options), _with_plan(on_plan), on_note)

    def write(self, prompt: str, *, on_plan: OnPlan = None, on_note: OnNote = None, **options: Any) -> str:
        """The whole generated text. Raises Refusal. The model stays loaded, as after generate()."""
        return "".join(self.generate(prompt, on_plan=on_plan, on_note=on_note, **options))

    def release(self) -> None:
        """Frees the model that generate() and write() keep loaded, if any."""
        self._session.release()


def _with_plan(on_plan: OnPlan) -> Optional[Callable[[_engine.Plan], None]]:
    """The engine's callback for on_plan."""
    return (lambda plan: on_plan(Plan(plan))) if on_plan else None


def _stream(session: _engine.Session, prompt: str, options: _engine.Options, on_plan: Optional[Callable[[_engine.Plan], None]],
            on_note: OnNote) -> Iterator[str]:
    pieces: queue.Queue[Any] = queue.Queue()
    wanted = threading.Event()
    wanted.set()

    def work() -> None:
        try:
            session.generate(prompt, options, lambda piece: pieces.put(piece) or wanted.is_set(), on_plan, on_note)
            pieces.put(None)
        except BaseException as error:  # raised where the text is read
            pieces.put(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        while (piece := pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            if text := decoder.decode(piece):
                yield text
    finally:
        wanted.clear()
        worker.join()


def describe(model: Path) -> ModelFacts:
    """What config.json says of a model (`ModelFacts`)."""
    return _engine.describe_model(os.fspath(model))


def plan(model: Path, **options: Any) -> Plan:
    """`Model(model).plan(**options)`: headroom.plan("models/M", memory="6GiB")."""
    return Model(model).plan(**options)


def train(model: Path, data: Optional[Paths] = None, output_dir: Optional[Path] = None, **options: Any) -> Training:
    """`Model(model).train(...)`."""
    return Model(model).train(data, output_dir, **options)


def evaluate(model: Path, data: Paths, **options: Any) -> Evaluation:
    """`Model(model).evaluate(...)`."""
    return Model(model).evaluate(data, **options)


def profile(device: str = "cpu", output: Optional[Path] = None, *, on_progress: Optional[Callable[[float], None]] = None,
            on_note: OnNote = None, **options: Any) -> MachineProfile:
    """Measures this machine, or one of its GPUs ("cuda:0"), in about 25 s (`MachineProfile`: name, path, json).

    Writes the profile to `output`, and always to the file that plans without a named profile read. Further options: disk,
    threads. on_progress(share) is called with 0 to 1, on_note(str) with lines of text for people. Ctrl-C ends the
    measurement, and nothing is written."""
    return _engine.profile(pairs({"device": device, "output": output, **options}), on_progress, on_note)


def merge(model: Path, adapter: Path, output_dir: Path, save_dtype: str = "float32", memory_bytes: int = 0, *,
          on_progress: OnProgress = None) -> None:
    """Merges an adapter into its base model and writes a new directory in Hugging Face layout.

    save_dtype: "float32" or "bfloat16"; memory_bytes: what the process may take (0: as much as it needs);
    on_progress(done, total) is called after each tensor. Ctrl-C ends it after a tensor with KeyboardInterrupt. A partial
    output is removed."""
    _engine.merge(os.fspath(model), os.fspath(adapter), os.fspath(output_dir), save_dtype, memory_bytes, on_progress)


def quantize(model: Path, output_dir: Path, weights: str = "nf4", memory_bytes: int = 0, *, on_progress: OnProgress = None) -> None:
    """Writes a model to a new directory with the matrices of its layers in 4 or 8 bits, in Hugging Face layout.

    weights: "nf4", "nf4-dq" or "fp4" as bitsandbytes writes them, "int8" or "int4" as compressed-tensors does;
    memory_bytes: what the process may take (0: as much as it needs); on_progress(done, total) is called after each
    tensor. Ctrl-C ends it after a tensor with KeyboardInterrupt. A partial output is removed."""
    _engine.quantize(os.fspath(model), os.fspath(output_dir), weights, memory_bytes, on_progress)


def suggest_models(directory: Path, **options: Any) -> list[dict[str, Any]]:
    """Which of the models below a directory train or serve within `memory`: a list of dicts, best first.

    Each has "path", "family", "parameters", "train" and "serve" (docs/questions.md)."""
    return json.loads(_engine.suggest_models(os.fspath(directory), pairs(options)))["models"]


def compare_plans(plan_a: Union[Plan, Path], plan_b: Union[Plan, Path]) -> dict[str, Any]:
    """What makes one plan larger or slower than another: a dict (docs/questions.md). Takes `Plan` objects, or paths of
    plan.json."""
    with tempfile.TemporaryDirectory() as folder:
        first = _plan_file(plan_a, os.path.join(folder, "plan_a.json"))
        second = _plan_file(plan_b, os.path.join(folder, "plan_b.json"))
        return json.loads(_engine.compare_plans(first, second))


def _plan_file(plan: Union[Plan, Path], path: str) -> str:
    if not isinstance(plan, Plan):
        return os.fspath(plan)
    with open(path, "w", encoding="utf-8") as out:
        json.dump(plan.to_dict(), out)
    return path
