"""A plan as an object, with a picture in notebooks."""
import html
import json

_PARTS = ("weights", "gradients", "optimizer", "activations", "workspace", "data", "alignment")
_COLOURS = ("#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#eeca3b", "#b8b8b8", "#9d755d")


def size(count):
    """A number of bytes as text: '1.5 GiB'."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count} bytes"


class Plan:
    """What a training run will hold, before it runs. Sizes in bytes, times in seconds.

    feasible: whether the budget is enough; budget_bytes: the budget; peak_bytes: the most that the kernel charges to the
    process in any phase; minimum_bytes: the least budget that holds a plan; arena_bytes: the one allocation of all
    tensors; process_bytes: all other memory of the process; step_seconds: the predicted time of an optimizer step;
    micro_batch_size: sequences; gradient_accumulation_steps: micro-batches of a step; changes: options that need less
    memory, where the plan is not feasible (`Change`); explanation(): what `headroom plan --explain` prints."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._engine, name)

    def to_dict(self):
        """All of plan.json as a dict (docs/plan_format.md)."""
        return json.loads(self._engine.json())

    @property
    def breakdown(self):
        """Bytes of the arena by class: weights, gradients, optimizer ..."""
        return self.to_dict().get("breakdown", {})

    def __repr__(self):
        if not self.feasible:
            return f"<headroom.Plan: does not fit {size(self.budget_bytes)}; minimum_bytes {self.minimum_bytes} ({size(self.minimum_bytes)})>"
        return (f"<headroom.Plan: peak {size(self.peak_bytes)} of {size(self.budget_bytes)}, micro-batch {self.micro_batch_size} x "
                f"{self.gradient_accumulation_steps}, {self.step_seconds:.3g} s per step>")

    def _repr_html_(self):
        if not self.feasible:
            rows = "".join(f"<li><code>{html.escape(c.options)}</code> {size(c.minimum_bytes)} {html.escape(c.effect)}"
                           f"{' <b>fits</b>' if c.fits else ''}</li>" for c in self.changes)
            return (f"<div><b>Does not fit {size(self.budget_bytes)}.</b> The least is {size(self.minimum_bytes)} "
                    f"({self.minimum_bytes} bytes).<ul>{rows}</ul></div>")
        parts = [(name, self.breakdown.get(name, 0)) for name in _PARTS] + [("process", self.process_bytes)]
        total = max(self.budget_bytes, 1)
        bars = "".join(f'<span title="{name}: {size(count)}" style="display:inline-block;height:1.4em;background:{colour};'
                       f'width:{100 * count / total:.3f}%"></span>' for (name, count), colour in zip(parts, _COLOURS) if count)
        legend = ", ".join(f'<span style="color:{colour}">&#9632;</span> {name} {size(count)}'
                           for (name, count), colour in zip(parts, _COLOURS) if count)
        return (f'<div>{html.escape(repr(self)[1:-1])}<div style="width:100%;background:#eee;line-height:0">{bars}</div>'
                f'<small>{legend}</small></div>')
