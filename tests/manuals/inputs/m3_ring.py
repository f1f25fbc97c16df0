# An attention kernel that was announced.
from oumi.core.configs import DataParams, DatasetParams, DatasetSplitParams, FSDPParams, ModelParams, PeftParams
from oumi.core.configs import TrainingConfig, TrainingParams

config = TrainingConfig(
    model=ModelParams(
        model_name="meta-llama/Llama-3.1-8B",
        torch_dtype_str="bfloat16",
        model_max_length=4096,
        attn_implementation="ring_attention",
    ),
    training=TrainingParams(
        per_device_train_batch_size=8,
        gradient_accumulation_steps=4,
    ),
)
