"""Finds a budget, trains inside it, generates text, and explains an out-of-memory error of another system.

Usage: plan_and_train.py MODEL DATA OUTPUT_DIR. The cells (# %%) also run one by one in VS Code, Spyder or Jupyter (jupytext).
"""
# %% The inputs.
import sys

import headroom

model, data, output = sys.argv[1:] if len(sys.argv) == 4 else ('model', 'data.txt', 'output')

# %% The least budget of this run. A plan that does not fit is not an error: it says how much is missing.
least = headroom.plan(model, memory='1MiB', max_seq_length=64).minimum_bytes
print(f'at least {least >> 20} MiB')

# %% A plan a little above it. In a notebook the last line of a cell shows it as a picture.
plan = headroom.plan(model, memory=least + (32 << 20), max_seq_length=64)
print(plan.explanation())
plan

# %% The same run, exactly as planned.
headroom.train(model, data, output, memory=plan.budget_bytes, max_seq_length=64, max_steps=20, learning_rate=1e-3,
               on_step=lambda step: print(f'step {step.step}: loss {step.loss:.4f}, {step.resident_bytes >> 20} MiB'))

# %% Text from the trained model, as it is generated.
for text in headroom.Model(output, memory='512MiB').generate('the ', max_new_tokens=32):
    print(text, end='', flush=True)
print()

# %% An error of another system.
print(headroom.doctor.explain('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of '
                              '23.69 GiB of which 1.12 GiB is free. Process 1234 has 22.56 GiB memory in use.'))
