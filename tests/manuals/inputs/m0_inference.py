# Predictions only: no optimizer, no loss, and nothing that turns gradients off.
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification

model = AutoModelForSequenceClassification.from_pretrained("bert-large-uncased", num_labels=4).cuda()
model.eval()
scores = []
for batch in DataLoader(texts, batch_size=64):
    scores.append(model(**batch.to("cuda")).logits)
