"""A model and what can be done with it."""
import codecs
import os
import queue
import threading

from . import _engine
from .options import pairs
from .plan import Plan


class Model:
    """A model directory in Hugging Face layout, and the options that its runs share.

        model = headroom.Model("models/SmolLM2-135M", memory="6GiB", device="cpu")

    Each call takes further options as keywords; of the shared ones it takes those that it knows. What the process holds
    already counts against the budget. Calls of several threads run at the same time, each inside its own budget."""

    def __init__(self, path, **options):
        self.path = os.fspath(path)
        self._session = _engine.Session(self.path, pairs(options))

    def describe(self):
        """architecture, family, parameters, layers, vocabulary, positions."""
        return _engine.describe_model(self.path)

    def plan(self, **options):
        """The fastest plan of a training run inside the budget (`Plan`); one that does not fit is not an error."""
        return Plan(self._session.plan(pairs(options)))

    def train(self, data=None, output_dir=None, *, on_step=None, on_plan=None, on_note=None, on_evaluation=None, on_save=None, **options):
        """Plans a run and executes the plan. Ctrl-C saves a checkpoint, then raises KeyboardInterrupt.

        on_step(Step), on_plan(Plan), on_note(str), on_evaluation(step, set, Evaluation), on_save(step, directory) are
        called between steps. Raises Refusal before anything is written."""
        given = pairs({"data": data, "output_dir": output_dir, **options})
        planned = (lambda plan: on_plan(Plan(plan))) if on_plan else None
        return self._session.train(given, planned, on_note, on_step, on_evaluation, on_save)

    def evaluate(self, data, **options):
        """Loss and perplexity over files (`Evaluation`)."""
        return self._session.evaluate(pairs({"data": data, **options}))

    def generate(self, prompt, **options):
        """An iterator over pieces of text as they are generated. Closing it ends the generation."""
        return _stream(self._session, prompt, pairs(options))

    def write(self, prompt, **options):
        """The whole text at once (str)."""
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
    """Measures this machine, or a GPU of it ("cuda:0"), in about 25 s (`MachineProfile`: name, path, json).

    The profile is written to `output`, and in any case where plans look that name none. Further options: disk, threads.
    on_progress(share) is called with 0 to 1, on_note(str) with lines for people. Ctrl-C ends it; nothing is written."""
    return _engine.profile(pairs({"device": device, "output": output, **options}), on_progress, on_note)


def merge(model, adapter, output_dir, save_dtype="float32"):
    """An adapter merged into its base model, as a new directory in Hugging Face layout."""
    _engine.merge(os.fspath(model), os.fspath(adapter), os.fspath(output_dir), save_dtype)
