#!/usr/bin/env python3
"""Measures what training on the CPU with PyTorch takes: benchmarks/doctor_data/cpu_runs.tsv, the CPU part of doctor's accuracy figures.

    doctor_measure.py OUT.tsv          # runs the cases that OUT.tsv lacks, one at a time, each in its own process
    doctor_measure.py --one NAME       # one case, prints bytes

Needs torch, transformers and peft. A run is two steps with random weights and tokens, one thread. What is recorded is the peak of the resident
set during the steps (sampled every 2 ms, and the kernel's own high-water mark) minus the resident set after the imports
(a step of a tiny model included, so that everything is imported), before the model exists.
"""
import argparse, json, os, subprocess, sys

# The bases, as config.json fields over the family's defaults; `model` names what doctor is given.
LLAMA = dict(model_type='llama', tie_word_embeddings=True, rope_theta=1e5, max_position_embeddings=8192)
BASES = {
    'smollm2-135m': dict(LLAMA, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, vocab_size=49152),
    'llama-60m': dict(LLAMA, hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=8, vocab_size=32000),
    'llama-25m': dict(LLAMA, hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6, num_key_value_heads=2, vocab_size=32000),
    'llama-200m': dict(LLAMA, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4, vocab_size=32000),
    'gpt2': dict(model_type='gpt2'),
    'pythia-70m': dict(model_type='gpt_neox', hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8, vocab_size=50304, tie_word_embeddings=False),
    # Attention and MLP side by side.
    'gptj-small': dict(model_type='gptj', n_embd=768, n_layer=8, n_head=12, rotary_dim=32, vocab_size=32000, n_positions=2048, tie_word_embeddings=False),
    'falcon-small': dict(model_type='falcon', hidden_size=768, num_hidden_layers=8, num_attention_heads=12, vocab_size=32000, multi_query=True, parallel_attn=True, bias=False, alibi=False, new_decoder_architecture=False, tie_word_embeddings=True),
    'phi-small': dict(model_type='phi', hidden_size=768, intermediate_size=3072, num_hidden_layers=8, num_attention_heads=12, vocab_size=32000, resid_pdrop=0.0, embd_pdrop=0.0, tie_word_embeddings=False),
    'neox-small': dict(model_type='gpt_neox', hidden_size=768, intermediate_size=3072, num_hidden_layers=8, num_attention_heads=12, vocab_size=32000, tie_word_embeddings=False),
    'qwen3-small': dict(model_type='qwen3', hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4, head_dim=64, vocab_size=65536, tie_word_embeddings=True),
}
# name of base: (batch, sequence, further options)
def grid():
    rows = []
    def add(base, batch, sequence, **options): rows.append((base, batch, sequence, options))
    for batch in (1, 2, 4): add('smollm2-135m', batch, 256)
    add('smollm2-135m', 1, 512); add('smollm2-135m', 1, 1024, checkpointing=1); add('smollm2-135m', 2, 512, checkpointing=1)
    add('smollm2-135m', 2, 256, optimizer='sgd'); add('smollm2-135m', 2, 256, optimizer='adafactor'); add('smollm2-135m', 2, 256, weights='bfloat16')
    add('smollm2-135m', 2, 256, autocast='bfloat16'); add('smollm2-135m', 2, 256, lora=16); add('smollm2-135m', 2, 512, attention='eager')
    add('llama-60m', 2, 256); add('llama-60m', 8, 256); add('llama-60m', 4, 512); add('llama-60m', 8, 128, optimizer='sgd'); add('llama-60m', 4, 512, attention='eager')
    add('llama-60m', 4, 512, checkpointing=1); add('llama-60m', 4, 512, autocast='bfloat16'); add('llama-60m', 4, 512, optimizer='adafactor')
    add('llama-60m', 4, 512, weights='bfloat16'); add('llama-60m', 4, 512, lora=8); add('llama-60m', 2, 1024, attention='eager')
    add('llama-25m', 4, 512); add('llama-25m', 8, 512, checkpointing=1); add('llama-25m', 2, 1024, attention='eager'); add('llama-25m', 4, 512, autocast='bfloat16')
    add('llama-200m', 1, 256); add('llama-200m', 2, 512); add('llama-200m', 2, 512, checkpointing=1, optimizer='sgd'); add('llama-200m', 2, 512, lora=16, weights='bfloat16')
    add('gpt2', 2, 256); add('gpt2', 4, 256, autocast='bfloat16'); add('gpt2', 2, 512, checkpointing=1)
    add('pythia-70m', 4, 256); add('pythia-70m', 4, 512, attention='eager'); add('qwen3-small', 2, 512); add('qwen3-small', 2, 512, autocast='bfloat16')
    for base in ('gptj-small', 'falcon-small', 'phi-small', 'neox-small'):
        kernel = dict(attention='eager') if base == 'gptj-small' else {}
        add(base, 2, 256, **kernel); add(base, 2, 512, checkpointing=1, **kernel)
    return {'-'.join([b, f'b{n}', f's{s}'] + [f'{k}_{v}' if v != 1 else k for k, v in o.items()]): (b, n, s, o) for b, n, s, o in rows}

def one(name):
    base, batch, sequence, options = grid()[name]
    import contextlib, resource, threading, time, gc
    import torch, transformers
    from transformers import AutoConfig, AutoModelForCausalLM
    if 'lora' in options: import peft
    fields = dict(BASES[base]); kind = fields.pop('model_type')
    torch.set_num_threads(1); torch.manual_seed(0)
    # A small model of the family takes a step first: what libraries import only when used belongs to the imports.
    small = {**fields, **({'n_embd': 64, 'n_layer': 2, 'n_head': 4, 'vocab_size': 1000, **({'rotary_dim': 8} if kind == 'gptj' else {})} if kind in ('gpt2', 'gptj') else
                          dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=1000))}
    m = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **small), attn_implementation=options.get('attention', 'sdpa'))
    if 'lora' in options: m = peft.get_peft_model(m, peft.LoraConfig(r=2, target_modules=['q_proj', 'v_proj']))
    if options.get('checkpointing'): m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})
    o = torch.optim.AdamW(m.parameters()); x = torch.zeros((1, 16), dtype=torch.long)
    with torch.autocast('cpu', dtype=torch.bfloat16) if options.get('autocast') else contextlib.nullcontext(): m(input_ids=x, labels=x).loss.backward()
    o.step(); del m, o
    gc.collect()
    def resident():
        with open('/proc/self/statm') as f: return int(f.read().split()[1]) * 4096
    start, peak, stop = resident(), [0], [False]
    config = AutoConfig.for_model(kind, **fields); config.use_cache = False
    m = AutoModelForCausalLM.from_config(config, attn_implementation=options.get('attention', 'sdpa'), dtype=getattr(torch, options.get('weights', 'float32')))
    if 'lora' in options:
        m = peft.get_peft_model(m, peft.LoraConfig(r=options['lora'], lora_alpha=16, target_modules=['q_proj', 'v_proj']))
        m.enable_input_require_grads()
    if options.get('checkpointing'): m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})
    m.train()
    trained = [p for p in m.parameters() if p.requires_grad]
    kinds = {'adamw': lambda: torch.optim.AdamW(trained, lr=1e-4), 'sgd': lambda: torch.optim.SGD(trained, lr=1e-4),
             'adafactor': lambda: transformers.Adafactor(trained, lr=1e-4, relative_step=False, scale_parameter=False)}
    o = kinds[options.get('optimizer', 'adamw')]()
    def watch():
        while not stop[0]: peak[0] = max(peak[0], resident()); time.sleep(0.002)
    threading.Thread(target=watch, daemon=True).start()
    x = torch.randint(0, config.vocab_size, (batch, sequence))
    for _ in range(2):
        half = options.get('autocast')
        with torch.autocast('cpu', dtype=getattr(torch, half)) if half else contextlib.nullcontext():
            out = m(input_ids=x, labels=x)
        out.loss.backward(); o.step(); o.zero_grad(set_to_none=True)
    stop[0] = True
    top = max(peak[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return dict(bytes=top - start, start=start, torch=torch.__version__, transformers=transformers.__version__, parameters=sum(p.numel() for p in m.parameters()))

def fields_of(name):
    base, batch, sequence, options = grid()[name]
    words = ['system=pytorch', 'gpu=cpu', f'batch={batch}', f'sequence={sequence}', 'weights=' + options.get('weights', 'float32'),
             'optimizer=' + options.get('optimizer', 'adamw'), 'attention=' + options.get('attention', 'sdpa'), 'checkpointing=%d' % options.get('checkpointing', 0)]
    if 'autocast' in options: words.append('autocast=' + options['autocast'])
    if 'lora' in options: words += [f'lora_rank={options["lora"]}', 'lora_targets=q_proj,v_proj']
    return ' '.join(words)

def write_configs(folder):
    for base, fields in BASES.items():
        fields = dict(fields)
        if base == 'gpt2': fields.update(n_embd=768, n_layer=12, n_head=12, vocab_size=50257, n_positions=1024, activation_function='gelu_new', attn_pdrop=0.1, resid_pdrop=0.1)
        os.makedirs(os.path.join(folder, 'models', base), exist_ok=True)
        json.dump(fields, open(os.path.join(folder, 'models', base, 'config.json'), 'w'), indent=1)

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('out', nargs='?'); p.add_argument('--one'); a = p.parse_args()
    if a.one: return print(json.dumps(one(a.one)))
    write_configs(os.path.dirname(os.path.abspath(a.out)))
    done = {line.split('\t')[1] for line in open(a.out) if not line.startswith('#')} if os.path.exists(a.out) and os.path.getsize(a.out) else set()
    for name in grid():
        if name in done: continue
        r = subprocess.run([sys.executable, __file__, '--one', name], capture_output=True, text=True)
        if r.returncode: print(name, 'failed:', r.stderr[-400:], file=sys.stderr); continue
        found = json.loads(r.stdout.splitlines()[-1])
        with open(a.out, 'a') as f:
            if not done: f.write(f'# measured on the CPU with torch {found["torch"]}, transformers {found["transformers"]}, one thread, two steps: benchmarks/doctor_measure.py\n')
            f.write('\t'.join(['cpu', name, 'resident', str(found['bytes']), 'models/' + grid()[name][0], fields_of(name)]) + '\n')
        done.add(name)
        print(name, found['bytes'] >> 20, 'MiB', file=sys.stderr, flush=True)

if __name__ == '__main__': main()
