"""A plan as an object, with a picture in notebooks."""
from __future__ import annotations

import html
import json
from typing import Any

from . import _engine
from ._engine import Change

_PARTS = ("weights", "gradients", "optimizer", "activations", "workspace", "data", "alignment")
_COLOURS = ("#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#eeca3b", "#b8b8b8", "#9d755d")


def size(count: int) -> str:
    """A number of bytes as text: '1.5 GiB'."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count} bytes"


class Plan:
    """What a training run will hold, before it runs. Sizes in bytes, times in seconds."""

    def __init__(self, engine: _engine.Plan) -> None:
        self._engine = engine

    @property
    def feasible(self) -> bool:
        """Whether the budget is enough. If not, the other figures are 0, except budget_bytes and minimum_bytes."""
        return self._engine.feasible

    @property
    def budget_bytes(self) -> int:
        """The budget that was given."""
        return self._engine.budget_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that the kernel charges to the process in any phase; for a run on a GPU the most GPU memory."""
        return self._engine.peak_bytes

    @property
    def minimum_bytes(self) -> int:
        """The least budget that holds a plan, with the other options unchanged."""
        return self._engine.minimum_bytes

    @property
    def arena_bytes(self) -> int:
        """The one allocation that holds every tensor."""
        return self._engine.arena_bytes

    @property
    def process_bytes(self) -> int:
        """All other memory of the process."""
        return self._engine.process_bytes

    @property
    def step_seconds(self) -> float:
        """The predicted time of an optimizer step."""
        return self._engine.step_seconds

    @property
    def micro_batch_size(self) -> int:
        """Sequences that go through the network at once."""
        return self._engine.micro_batch_size

    @property
    def gradient_accumulation_steps(self) -> int:
        """Micro-batches of an optimizer step."""
        return self._engine.gradient_accumulation_steps

    @property
    def changes(self) -> list[Change]:
        """Options that need less memory, the mildest first, if the plan is not feasible."""
        return self._engine.changes

    def explanation(self) -> str:
        """What `headroom plan --explain` prints; empty for plans of on_plan."""
        return self._engine.explanation()

    def json(self) -> str:
        """All of plan.json as text (docs/plan_format.md)."""
        return self._engine.json()

    def to_dict(self) -> dict[str, Any]:
        """All of plan.json as a dict (docs/plan_format.md)."""
        return json.loads(self.json())

    @property
    def breakdown(self) -> dict[str, int]:
        """Bytes of the arena by class: weights, gradients, optimizer ..."""
        return self.to_dict().get("breakdown", {})

    def __repr__(self) -> str:
        if not self.feasible:
            return f"<headroom.Plan: does not fit {size(self.budget_bytes)}; minimum_bytes {self.minimum_bytes} ({size(self.minimum_bytes)})>"
        return (f"<headroom.Plan: peak {size(self.peak_bytes)} of {size(self.budget_bytes)}, micro-batch {self.micro_batch_size} x "
                f"{self.gradient_accumulation_steps}, {self.step_seconds:.3g} s per step>")

    def _repr_html_(self) -> str:
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
