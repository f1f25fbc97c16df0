"""What fits, a short run inside it, and text from the result. Usage: plan_and_train.py MODEL DATA OUTPUT_DIR"""
import sys

import headroom

model, data, output = sys.argv[1:]

# The least budget, then a plan a little above it: what was recomputed, in which micro-batches, and how long a step takes.
least = headroom.plan(model, memory='1MiB', max_seq_length=64).minimum_bytes
plan = headroom.plan(model, memory=least + (8 << 20), max_seq_length=64)
print(plan)
print(plan.explanation())

# The same run, exactly as planned.
headroom.train(model, data, output, memory=least + (32 << 20), max_seq_length=64, max_steps=20, learning_rate=1e-3,
               on_step=lambda step: print(f'step {step.step}: loss {step.loss:.4f}, {step.resident_bytes >> 20} MiB'))

for text in headroom.Model(output, memory='512MiB').generate('the ', max_new_tokens=32):
    print(text, end='', flush=True)
print()
