"""A model and what can be done with it."""
import codecs
import json
import os
import queue
import tempfile
import threading

from . import _engine
from .options import pairs
from .plan import Plan


class Model:
    """A model directory in Hugging Face layout, and the options that its runs share.

        model = headroom.Model("models/SmolLM2-135M", memory="6GiB", device="cpu")

    Each call takes further options as keywords, and those of the shared options that it knows. Memory that the process
    already holds counts against the budget. Several threads may call at the same time; each call stays inside its own
    budget. All calls raise the classes of headroom.errors: UsageError for options, FormatError for files, RunError for
    input, output and devices."""

    def __init__(self, path, **options):
        self.path = os.fspath(path)
        self._session = _engine.Session(self.path, pairs(options))

    def describe(self):
        """What config.json says of the model (`ModelFacts`)."""
        return _engine.describe_model(self.path)

    def plan(self, **options):
        """The fastest plan of a training run inside the budget (`Plan`). A plan that does not fit is not an error."""
        return Plan(self._session.plan(pairs(options)))

    def least_budgets(self, **options):
        """The least memory of a training run, by how far from exact it may go: a list of dicts, from exact to lossy.

        Each has "allow", "minimum_bytes", "host_bytes", "disk_bytes", "step_seconds", "techniques" and "command"."""
        return self._ask("minimum", "levels", options)

    def technique_ladder(self, **options):
        """What each technique saves (bytes) and costs (seconds of a step), alone and together: a list of dicts."""
        return self._ask("ladder", "rungs", options)

    def plans_by_budget(self, **options):
        """The plan that each budget buys: a list of dicts, the least budget first.

        Each has "budget_bytes", "peak_bytes", "host_bytes", "disk_bytes", "step_seconds", "techniques" and "command"."""
        return self._ask("curve", "points", options)

    def measure_plans(self, *, on_note=None, **options):
        """Runs the fastest plan inside the budget and the two next smaller ones on this machine, five steps each.

        A list of dicts with "predicted_step_seconds", "measured_step_seconds", "peak_bytes", "choices" and "command",
        the fastest prediction first. Writes nothing. Ctrl-C ends it before the next plan."""
        return self._ask("measure", "plans", options, on_note)

    def _ask(self, question, member, options, on_note=None):
        return json.loads(self._session.ask(question, pairs(options), on_note))[member]

    def train(self, data=None, output_dir=None, *, on_step=None, on_plan=None, on_note=None, on_evaluation=None, on_save=None, **options):
        """Plans a run and executes the plan. Ctrl-C saves a checkpoint, then raises KeyboardInterrupt.

        on_step(Step), on_plan(Plan), on_note(str), on_evaluation(step, set, Evaluation) and on_save(step, directory) are
        called between steps. Returns `Training`: steps, output_dir. Raises Refusal before anything is written."""
        given = pairs({"data": data, "output_dir": output_dir, **options})
        planned = (lambda plan: on_plan(Plan(plan))) if on_plan else None
        return self._session.train(given, planned, on_note, on_step, on_evaluation, on_save)

    def evaluate(self, data, **options):
        """The loss (nats per target) and perplexity over files (`Evaluation`). Raises Refusal."""
        return self._session.evaluate(pairs({"data": data, **options}))

    def generate(self, prompt, **options):
        """An iterator over pieces of text as they are generated. Closing it ends the generation. Raises Refusal at the
        first piece where the budget is too small."""
        return _stream(self._session, prompt, pairs(options))

    def write(self, prompt, **options):
        """The whole generated text (str). Raises Refusal."""
        return "".join(self.generate(prompt, **options))


def _stream(session, prompt, options):
    pieces = queue.Queue()
    wanted = threading.Event()
    wanted.set()

    def work():
        try:
            session.generate(prompt, options, lambda piece: pieces.put(piece) or wanted.is_set())
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


def describe(model):
    """What config.json says of a model (`ModelFacts`)."""
    return _engine.describe_model(os.fspath(model))


def plan(model, **options):
    """`Model(model).plan(**options)`: headroom.plan("models/M", memory="6GiB")."""
    return Model(model).plan(**options)


def train(model, data=None, output_dir=None, **options):
    """`Model(model).train(...)`."""
    return Model(model).train(data, output_dir, **options)


def evaluate(model, data, **options):
    """`Model(model).evaluate(...)`."""
    return Model(model).evaluate(data, **options)


def profile(device="cpu", output=None, *, on_progress=None, on_note=None, **options):
    """Measures this machine, or one of its GPUs ("cuda:0"), in about 25 s (`MachineProfile`: name, path, json).

    Writes the profile to `output`, and always to the file that plans without a named profile read. Further options: disk,
    threads. on_progress(share) is called with 0 to 1, on_note(str) with lines of text for people. Ctrl-C ends the
    measurement, and nothing is written."""
    return _engine.profile(pairs({"device": device, "output": output, **options}), on_progress, on_note)


def merge(model, adapter, output_dir, save_dtype="float32", memory_bytes=0):
    """Merges an adapter into its base model and writes a new directory in Hugging Face layout.

    save_dtype: "float32" or "bfloat16"; memory_bytes: what the process may take (0: as much as it needs). A partial output
    is removed."""
    _engine.merge(os.fspath(model), os.fspath(adapter), os.fspath(output_dir), save_dtype, memory_bytes)


def quantize(model, output_dir, weights="nf4", memory_bytes=0):
    """Writes a model to a new directory with the matrices of its layers in 4 or 8 bits, in Hugging Face layout.

    weights: "nf4", "nf4-dq" or "fp4" as bitsandbytes writes them, "int8" or "int4" as compressed-tensors does;
    memory_bytes: what the process may take (0: as much as it needs). A partial output is removed."""
    _engine.quantize(os.fspath(model), os.fspath(output_dir), weights, memory_bytes)


def suggest_models(directory, **options):
    """Which of the models below a directory train or serve within `memory`: a list of dicts, best first.

    Each has "path", "family", "parameters", "train" and "serve" (docs/questions.md)."""
    return json.loads(_engine.suggest_models(os.fspath(directory), pairs(options)))["models"]


def compare_plans(plan_a, plan_b):
    """What makes one plan larger or slower than another: a dict (docs/questions.md). Takes `Plan` objects, or paths of
    plan.json."""
    with tempfile.TemporaryDirectory() as folder:
        first = _plan_file(plan_a, os.path.join(folder, "plan_a.json"))
        second = _plan_file(plan_b, os.path.join(folder, "plan_b.json"))
        return json.loads(_engine.compare_plans(first, second))


def _plan_file(plan, path):
    if not isinstance(plan, Plan):
        return os.fspath(plan)
    with open(path, "w", encoding="utf-8") as out:
        json.dump(plan.to_dict(), out)
    return path
