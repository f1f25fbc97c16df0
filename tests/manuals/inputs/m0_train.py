# A classifier of long texts with the Trainer's ordinary settings.
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-large-uncased", num_labels=4)
arguments = TrainingArguments(
    output_dir="result",
    per_device_train_batch_size=16,
    gradient_accumulation_steps=1,
    learning_rate=2e-5,
    num_train_epochs=2,
)
Trainer(model=model, args=arguments, train_dataset=texts).train()
