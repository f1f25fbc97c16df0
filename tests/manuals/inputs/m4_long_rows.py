# Supervised fine-tuning with TRL: long rows, 8 at a time.
from trl import SFTConfig, SFTTrainer

arguments = SFTConfig(
    output_dir="result",
    per_device_train_batch_size=8,
    max_length=4096,
    bf16=True,
    gradient_checkpointing=False,
)
SFTTrainer(model="meta-llama/Llama-3.2-1B", args=arguments, train_dataset=rows).train()
