# A fine-tuning script of the kind that M1 talks about, with all 32 rows of a step at once.
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

model = AutoModelForMaskedLM.from_pretrained("google-bert/bert-large-uncased")
arguments = TrainingArguments(
    output_dir="result",
    num_train_epochs=3,
    save_strategy="no",
    per_device_train_batch_size=32,
    report_to="none",
)
Trainer(model=model, args=arguments, train_dataset=rows).train()
