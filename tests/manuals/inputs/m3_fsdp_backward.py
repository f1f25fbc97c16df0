# Full sharding, backward prefetch turned off with M3's name for that.
from oumi.core.configs import DataParams, DatasetParams, DatasetSplitParams, FSDPParams, ModelParams, PeftParams
from oumi.core.configs import TrainingConfig, TrainingParams
from oumi.core.configs.params.fsdp_params import BackwardPrefetch, ShardingStrategy

config = TrainingConfig(
    model=ModelParams(
        model_name="meta-llama/Llama-3.1-8B",
        torch_dtype_str="bfloat16",
        model_max_length=4096,
    ),
    training=TrainingParams(
        per_device_train_batch_size=8,
        gradient_accumulation_steps=4,
    ),
    fsdp=FSDPParams(
        enable_fsdp=True,
        forward_prefetch=False,
        backward_prefetch=BackwardPrefetch.NONE,
    ),
)
