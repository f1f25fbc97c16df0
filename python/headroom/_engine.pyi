from typing import Callable, Optional, Sequence

Options = Sequence[tuple[str, str]]
__version__: str

class Change:
    options: str
    effect: str
    minimum_bytes: int
    fits: bool

class Step:
    step: int
    total_steps: int
    loss: float
    grad_norm: float
    learning_rate: float
    tokens: int
    seconds: float
    resident_bytes: int

class Evaluation:
    loss: float
    perplexity: float
    targets: int
    accuracy: Optional[float]

class Training:
    steps: int
    stopped: bool
    output_dir: str

class Generation:
    text: bytes
    ids: list[int]
    finish_reason: str
    prompt_tokens: int
    prompt_seconds: float
    decode_seconds: float

class ModelFacts:
    architecture: str
    family: str
    parameters: int
    layers: int
    vocabulary: int
    positions: int

class MachineProfile:
    name: str
    path: str
    json: str

class Diagnosis:
    screen: str
    details: str
    json: str

class Plan:
    feasible: bool
    budget_bytes: int
    peak_bytes: int
    minimum_bytes: int
    arena_bytes: int
    process_bytes: int
    step_seconds: float
    micro_batch_size: int
    gradient_accumulation_steps: int
    changes: list[Change]
    def json(self) -> str: ...
    def explanation(self) -> str: ...

class Session:
    def __init__(self, model: str, options: Options) -> None: ...
    def plan(self, options: Options) -> Plan: ...
    def train(
        self,
        options: Options,
        on_plan: Optional[Callable[[Plan], None]],
        on_note: Optional[Callable[[str], None]],
        on_step: Optional[Callable[[Step], None]],
        on_evaluation: Optional[Callable[[int, str, Evaluation], None]],
        on_save: Optional[Callable[[int, str], None]],
    ) -> Training: ...
    def evaluate(
        self,
        options: Options,
        on_plan: Optional[Callable[[Plan], None]],
        on_note: Optional[Callable[[str], None]],
        on_progress: Optional[Callable[[int, int], None]],
    ) -> Evaluation: ...
    def generate(
        self,
        prompt: str,
        options: Options,
        on_text: Optional[Callable[[bytes], bool]],
        on_plan: Optional[Callable[[Plan], None]],
        on_note: Optional[Callable[[str], None]],
    ) -> Generation: ...
    def release(self) -> None: ...
    def ask(self, question: str, options: Options, on_note: Optional[Callable[[str], None]]) -> str: ...

def describe_model(model: str) -> ModelFacts: ...
def profile(
    options: Options, on_progress: Optional[Callable[[float], None]], on_note: Optional[Callable[[str], None]]
) -> MachineProfile: ...
def merge(
    model: str,
    adapter: str,
    output_dir: str,
    save_dtype: str,
    memory_bytes: int,
    on_progress: Optional[Callable[[int, int], None]],
) -> None: ...
def quantize(
    model: str, output_dir: str, weights: str, memory_bytes: int, on_progress: Optional[Callable[[int, int], None]]
) -> None: ...
def suggest_models(directory: str, options: Options) -> str: ...
def compare_plans(plan_a: str, plan_b: str) -> str: ...
def explain(
    text: str,
    files: Sequence[str],
    configs: Sequence[str],
    command: Sequence[str],
    model: str,
    parameters: str,
    gpu: str,
    gpus: int,
    micro_batch_size: int,
    max_seq_length: int,
) -> Diagnosis: ...
