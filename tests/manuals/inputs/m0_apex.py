# Mixed precision the way it was done before PyTorch had it.
from apex import amp
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-large-uncased", num_labels=4)
arguments = TrainingArguments(
    output_dir="result",
    per_device_train_batch_size=16,
    fp16=True,
    fp16_opt_level="O1",
    half_precision_backend="apex",
)
Trainer(model=model, args=arguments, train_dataset=texts).train()
