#!/usr/bin/env python3
"""Published training runs as cases of doctor's table: benchmarks/doctor_data/published_runs.tsv.

    doctor_published_runs.py RUNS.tsv OUT.tsv

RUNS.tsv has a row per run (columns source, model, gpus, gpu_type, tp, pp, dp_fsdp, cp, seq, micro_batch, precision, recompute, memory_per_gpu_gib,
outcome, notes). Kept are those whose inputs say all that an estimate needs. Statistic "ok" or "oom": the run's outcome where no memory is printed.
  Aleph Alpha   layouts of LLaMA 13B and 65B on A100 80 GB (Megatron's layers, ZeRO-1), 603 outcomes
  SimuMax       Megatron on B200, llama3-70b's layers, 12 of them (ZeRO-1), peak of the allocator
  torchtitan    Llama 3.1 8B on H100, FSDP2, selective checkpointing, sequences of 8192 (its default), peak reserved
"""
import csv, json, os, sys

LLAMA = dict(model_type='llama', num_key_value_heads=8, vocab_size=128256, max_position_embeddings=131072, tie_word_embeddings=False)
MODELS = {'llama-65b': dict(LLAMA, hidden_size=8192, intermediate_size=22016, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=64, vocab_size=32000, max_position_embeddings=8192),
          'llama-13b': dict(LLAMA, hidden_size=5120, intermediate_size=13824, num_hidden_layers=40, num_attention_heads=40, num_key_value_heads=40, vocab_size=32000, max_position_embeddings=8192),
          'llama-3-70b-12-layers': dict(LLAMA, hidden_size=8192, intermediate_size=28672, num_hidden_layers=12, num_attention_heads=64)}

def case(row):
    """(source, model, fields) or None where something an estimate needs is not stated."""
    source, notes = row['source'], row['notes']
    if source.startswith('Aleph Alpha'):
        kernel = 'eager' if 'kernel torch' in notes else 'flash_attention_2'
        return 'aleph-alpha', 'models/' + row['model'].lower(), f'system=neox gpu=A100-80GB gpus={row["gpus"]} sharding=zero1 attention={kernel} checkpointing={int(row["recompute"] == "full")}'
    if source.startswith('SimuMax') and row['model'] == 'llama3-70b, 12 layers':
        return 'simumax', 'models/llama-3-70b-12-layers', f'system=neox gpu=B200 gpus={row["gpus"]} sharding=zero1 attention=flash_attention_2 accumulation={notes.split(" microbatches")[0].split()[-1]} checkpointing=0'
    if source == 'torchtitan benchmarks' and row['model'] == 'Llama-3.1-8B' and row['precision'] == 'bf16' and 'compile' not in notes:
        row['seq'] = row['seq'] or '8192'
        return 'torchtitan', 'llama-3.1-8b', f'system=pytorch gpu=H100-80GB gpus={row["gpus"]} sharding=zero3 autocast=bfloat16 attention=flash checkpointing=selective'
    return None

def main():
    runs, out = sys.argv[1:3]
    folder = os.path.join(os.path.dirname(os.path.abspath(out)), 'models')
    for name, fields in MODELS.items():
        os.makedirs(os.path.join(folder, name), exist_ok=True); json.dump(fields, open(os.path.join(folder, name, 'config.json'), 'w'), indent=1)
    with open(out, 'w') as f:
        f.write('# published runs, made by benchmarks/doctor_published_runs.py: source, name, statistic (ok, oom: outcomes), bytes, model, job\n')
        for number, row in enumerate(csv.DictReader(open(runs), delimiter='\t'), 2):
            found = case(row)
            if not found: continue
            source, model, fields = found
            weights = 'float32' if source == 'torchtitan' else 'bfloat16'
            fields += f' batch={row["micro_batch"]} sequence={row["seq"]} weights={weights} optimizer=adamw packing=1'
            for key, column in (('tensor', 'tp'), ('pipeline', 'pp'), ('context', 'cp')):
                if row[column] not in ('', '1'): fields += f' {key}={row[column]}'
            memory = row['memory_per_gpu_gib']
            statistic = ('allocated' if source == 'simumax' else 'reserved') if memory else row['outcome']
            f.write('\t'.join([source, f'row-{number}', statistic, str(round(float(memory) * 2**30)) if memory else '0', model, fields]) + '\n')

if __name__ == '__main__': main()
