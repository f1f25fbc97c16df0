# A classifier of long texts with the Trainer's batch brought down to one row.
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-large-uncased", num_labels=4)
arguments = TrainingArguments(
    output_dir="result",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=16,
    learning_rate=2e-5,
    num_train_epochs=2,
)
Trainer(model=model, args=arguments, train_dataset=texts).train()
