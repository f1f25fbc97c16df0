# Everything that makes activations small, so that the update of the weights is the peak.
from oumi.core.configs import ModelParams, TrainingConfig, TrainingParams

config = TrainingConfig(
    model=ModelParams(
        model_name="meta-llama/Llama-3.2-1B",
        torch_dtype_str="float32",
        model_max_length=512,
    ),
    training=TrainingParams(
        per_device_train_batch_size=1,
        enable_gradient_checkpointing=True,
        optimizer="adamw_torch",
    ),
)
