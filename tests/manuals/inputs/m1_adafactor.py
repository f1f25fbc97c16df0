# The same, with Adafactor.
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

model = AutoModelForMaskedLM.from_pretrained("google-bert/bert-large-uncased")
arguments = TrainingArguments(
    output_dir="result",
    num_train_epochs=3,
    save_strategy="no",
    per_device_train_batch_size=4,
    per_device_eval_batch_size=4,
    gradient_accumulation_steps=8,
    optim="adafactor",
    report_to="none",
)
Trainer(model=model, args=arguments, train_dataset=rows).train()
