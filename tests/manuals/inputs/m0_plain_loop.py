# A training loop written by hand.
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2-large").cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for batch in DataLoader(texts, batch_size=8, num_workers=2, pin_memory=True):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
