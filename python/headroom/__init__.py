"""Train and serve language models inside a memory budget.

    import headroom
    plan = headroom.plan("models/SmolLM2-135M", memory="6GiB", max_seq_length=1024)
    run = headroom.train("models/SmolLM2-135M", data="notes.txt", output_dir="out", memory="6GiB", on_step=print)
    for text in headroom.Model("out", memory="1GiB").generate("Once upon a time"):
        print(text, end="")

Options are those of the command line with underscores for dashes (`headroom train --help`). A budget that is too small
raises `Refusal`, which carries `minimum_bytes` and the changes that would fit. Sizes are in bytes, times in seconds. Calls
may come from several threads at once; other Python threads run during a call.
"""
from . import _engine, doctor
from ._engine import Change, Evaluation, MachineProfile, ModelFacts, Step, Training, __version__
from .errors import BudgetError, Error, FormatError, InternalError, Refusal, RunError, UsageError
from .model import Model, compare_plans, describe, evaluate, merge, plan, profile, quantize, suggest_models, train
from .plan import Plan

__all__ = ["BudgetError", "Change", "Error", "Evaluation", "FormatError", "InternalError", "MachineProfile", "Model", "ModelFacts", "Plan",
           "Refusal", "RunError", "Step", "Training", "UsageError", "__version__", "compare_plans", "describe", "doctor", "evaluate", "merge",
           "plan", "profile", "quantize", "suggest_models", "train"]
