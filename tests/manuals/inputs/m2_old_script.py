# The head of a fine-tuning script of lit-gpt's first year, before it had a command line.
import lightning as L
from lit_gpt.model import GPT, Config

micro_batch_size = 4
batch_size = 64 // 1
override_max_seq_length = None
devices = 1


def setup(precision="bf16-true"):
    from lightning.fabric.strategies import FSDPStrategy

    strategy = FSDPStrategy(auto_wrap_policy={}, cpu_offload=False)
    fabric = L.Fabric(devices=devices, strategy=strategy, precision=precision)
    fabric.launch(main, "checkpoints/meta-llama/Llama-2-7b-hf")
