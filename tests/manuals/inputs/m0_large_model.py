# A model of seven billion weights, one row at a time: the batch can shrink no further.
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")
arguments = TrainingArguments(
    output_dir="result",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=16,
    bf16=True,
)
Trainer(model=model, args=arguments, train_dataset=texts).train()
