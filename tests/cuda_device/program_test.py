#!/usr/bin/env python3
"""The command line with a GPU's kernels: train, save, resume, evaluate and generate, compared with the CPU.

Usage: program_test.py HEADROOM HEADROOM_ON_SHIM
The second program is the same as the first, with the shim instead of a GPU (--device cuda:0). Prints N passed, N failed.
"""
import concurrent.futures
import filecmp
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from served import Server  # noqa: E402

CONFIG = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'vocab_size': 258, 'hidden_size': 32, 'intermediate_size': 48,
          'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'max_position_embeddings': 64,
          'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, 'hidden_act': 'silu', 'tie_word_embeddings': True, 'torch_dtype': 'float32',
          'initializer_range': 0.2, 'bos_token_id': 256, 'eos_token_id': 257}
EXPERTS = CONFIG | {'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'num_local_experts': 4, 'num_experts_per_tok': 2,
                    'output_router_logits': True, 'router_aux_loss_coef': 0.5}
ENCODER = {'architectures': ['BertModel'], 'model_type': 'bert', 'vocab_size': 258, 'hidden_size': 32, 'intermediate_size': 48, 'num_hidden_layers': 2,
           'num_attention_heads': 4, 'max_position_embeddings': 64, 'type_vocab_size': 2, 'hidden_act': 'gelu', 'initializer_range': 0.2, 'pad_token_id': 0}
WIDE = CONFIG | {'architectures': ['MistralForCausalLM'], 'model_type': 'mistral', 'hidden_size': 192, 'intermediate_size': 512}
ROWS = [{'text': f'row {n}: ' + 'abc'[n % 3] * 4} for n in range(12)]
GPU = ['--device', 'cuda:0', '--profile', 'H100-80GB', '--memory', '1GiB']
CPU = ['--memory', '1GiB']
passed, failed = 0, []


def check(name, holds, figure=''):
    global passed
    print(('ok   ' if holds else 'FAIL ') + name, figure)
    if holds:
        passed += 1
    else:
        failed.append(name)


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-1500:])
    return done.returncode, done.stdout


def train(program, where, model, data, out, *more):
    return call(program, 'train', '--model', model, '--data', data, '--output-dir', out, '--max-seq-length', 16, '--global-batch-size', 4,
                '--learning-rate', '1e-2', '--shuffle', 'false', '--lr-scheduler-type', 'constant', '--eval-data', data, '--eval-max-batches', 1, *where, *more)[0]


def values(out, key):
    with open(os.path.join(out, 'metrics.jsonl'), encoding='utf-8') as text:
        return [row[key] for row in map(json.loads, text) if key in row]


def near(found, expected, tolerance=1e-4):
    return len(found) == len(expected) and all(abs(a - b) <= tolerance * abs(b) for a, b in zip(found, expected))


def make_model(program, folder, config):
    """A fresh model of the config in its own folder."""
    file, model = (os.path.join(folder, config['model_type'] + end) for end in ('.json', ''))
    with open(file, 'w', encoding='utf-8') as out:
        json.dump(config, out)
    call(program, 'init', '--config', file, '--tokenizer', 'bytes', '--output-dir', model)
    return model


def check_experts(program, shim, folder, data):
    """A mixture of experts with the load-balancing loss."""
    model = make_model(program, folder, EXPERTS)
    cpu, gpu = (os.path.join(folder, 'experts-' + name) for name in ('cpu', 'gpu'))
    done = [train(binary, where, model, data, out, '--max-steps', 2) for binary, where, out in ((program, CPU, cpu), (shim, GPU, gpu))]
    check('experts train', done == [0, 0], done)
    check('losses of experts agree', near(values(gpu, 'loss'), values(cpu, 'loss')), f"{values(gpu, 'loss')} {values(cpu, 'loss')}")
    check('gradient norms of experts agree', near(values(gpu, 'grad_norm'), values(cpu, 'grad_norm'), 1e-3))


def check_loss_scale(program, shim, folder, model, data):
    """Steps overflow and are skipped until the scale is small enough, with and without clipping; gradients have the scale taken back."""
    for name, more in (('clipped', []), ('unclipped', ['--max-grad-norm', 0])):
        cpu, gpu = (os.path.join(folder, f'scale-{name}-{place}') for place in ('cpu', 'gpu'))
        scaled = ['--precision', '16-mixed', '--fp16-initial-scale-power', 24, '--optim', 'sgd', '--max-steps', 12, *more]
        done = [train(binary, where, model, data, out, *scaled) for binary, where, out in ((program, CPU, cpu), (shim, GPU, gpu))]
        check(f'{name}: 16-mixed trains', done == [0, 0], done)
        check(f'{name}: steps that overflow are skipped', True in values(cpu, 'skipped') and values(gpu, 'skipped') == values(cpu, 'skipped'),
              values(gpu, 'skipped'))
        check(f'{name}: losses agree', near(values(gpu, 'loss'), values(cpu, 'loss'), 2e-3), f"{values(gpu, 'loss')} {values(cpu, 'loss')}")


def lies_in_memory(directory):
    kind = subprocess.run(['stat', '-f', '-c', '%T', directory], capture_output=True, text=True, check=True).stdout.strip()
    return kind in ('tmpfs', 'ramfs')


def check_disk(shim, folder, model, data):
    """States, gradients and weights in a scratch file, because the host is too small: bitwise the plain run, also resumed, and no file is left."""
    scratch, plain, out = (os.path.join(folder, name) for name in ('scratch', 'in-memory', 'on-disk'))
    os.mkdir(scratch)
    train(shim, GPU, model, data, plain, '--max-steps', 3)
    disk = ['--disk-memory', scratch + ':1GiB', '--host-memory', '585MiB']
    for name in ('optimizer', 'gradients', 'parameters'):
        disk += ['--technique', f'offload-{name}=on']
    train(shim, GPU + disk, model, data, out, '--max-steps', 2)
    done = train(shim, GPU + disk, model, data, out, '--max-steps', 3, '--resume-from-checkpoint', 'true')
    check('the GPU trains and resumes with a disk', done == 0, done)
    check('with a disk bitwise', values(out, 'loss') == values(plain, 'loss') and values(out, 'eval_loss')[-1:] == values(plain, 'eval_loss'), values(out, 'loss'))
    check('with a disk the same model', filecmp.cmp(*(os.path.join(run, 'model.safetensors') for run in (plain, out)), shallow=False))
    with open(os.path.join(out, 'run.json'), encoding='utf-8') as text:
        run = json.load(text)
    check('scratch file planned == measured', 0 < run['disk_planned_bytes'] == run['disk_measured_bytes'], run['disk_measured_bytes'])
    check('nothing is left of it', not os.listdir(scratch))


def check_attention_order(shim, folder, model, data):
    """The permission is given on the command line and recorded in the plan. A resumed run has it if it is given again. Calls that cuDNN refuses use
    headroom's kernels."""
    bf16 = [*GPU, '--precision', 'bf16-mixed']
    fixed, any_order = (os.path.join(folder, 'order-' + name) for name in ('fixed', 'any'))
    train(shim, bf16, model, data, fixed, '--max-steps', 3)
    check('trains with any order', train(shim, [*bf16, '--attention-order', 'any'], model, data, any_order, '--max-steps', 2) == 0)
    with open(os.path.join(any_order, 'plan.json'), encoding='utf-8') as text:
        check('the plan says so', json.load(text).get('attention_order') == 'any')
    check('without the library the same bits', values(any_order, 'loss') == values(fixed, 'loss')[:2], values(any_order, 'loss'))
    command = [shim, 'train', '--model', model, '--data', data, '--output-dir', any_order, '--max-seq-length', 16, '--global-batch-size', 4, '--learning-rate', '1e-2',
               '--shuffle', 'false', '--lr-scheduler-type', 'constant', *bf16, '--max-steps', 3, '--resume-from-checkpoint', 'true']
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    check('a resumed run has no permission of its own', done.returncode == 0 and 'attention-order=fixed (was any)' in done.stdout + done.stderr, done.stderr[-300:])
    with open(os.path.join(any_order, 'plan.json'), encoding='utf-8') as text:
        check('nor has its plan', 'attention_order' not in json.load(text))
    refused = subprocess.run([str(part) for part in (shim, 'train', '--model', model, '--data', data, '--output-dir', os.path.join(folder, 'order-cpu'), *CPU, '--precision', 'bf16-mixed',
                                                     '--technique', 'attention-order=any')], capture_output=True, text=True)
    check('a CPU refuses it', refused.returncode == 2 and 'has a fixed order at no cost' in refused.stderr, refused.stderr[-300:])
    unknown = subprocess.run([shim, 'train', '--model', model, '--full-determinism', 'true'], capture_output=True, text=True)
    check('its name elsewhere is known', '--attention-order fixed' in unknown.stderr, unknown.stderr[-300:])


def least_memory(program, *command):
    """The least --memory that works, read from a refusal."""
    refused = subprocess.run([str(part) for part in (program, *command, '--memory', '1MiB')], capture_output=True, text=True)
    return int(re.search(r'give --memory (\d+) or more', refused.stderr)[1])


def check_weights_below(shim, model, data, tiers):
    """Weights that do not fit on the GPU are on the host or on disk: at the least budget bitwise what a plan without them gives at its own least
    budget."""
    for command in (('generate', '--model', model, '--prompt', 'a prompt of its own', '--max-new-tokens', 6, '--temperature', 1, '--seed', 5),
                    ('evaluate', '--model', model, '--data', data, '--max-seq-length', 16)):
        command += (*GPU[:4], '--json')
        resident = (*command, '--technique', 'offload-parameters=off')
        plain = least_memory(shim, *resident)
        expected = call(shim, *resident, '--memory', plain)[1]
        for tier, options in tiers.items():
            below = (*command, *options, '--technique', f'offload-parameters={tier}')
            least = least_memory(shim, *below)
            check(f'{command[0]}: with weights on the {tier} the GPU needs less', least < plain, f'{least} {plain}')
            found = call(shim, *below, '--memory', least)
            check(f'{command[0]}: with weights on the {tier} bitwise', found == (0, expected), found)


def check_context(shim, folder, model, data):
    """A measured profile books less than the context takes: training, evaluation and generation are refused, and nothing is written."""
    profile, out = os.path.join(folder, 'cuda-0.json'), os.path.join(folder, 'above')
    with open(os.path.join(os.path.dirname(__file__), '../../src/cost/profiles/H100-80GB.json'), encoding='utf-8') as text:
        measured = json.load(text) | {'name': 'cuda-0', 'context_bytes': 100 << 20}
    with open(profile, 'w', encoding='utf-8') as text:
        json.dump(measured, text)
    where = ('--device', 'cuda:0', '--profile', profile, '--memory', '1GiB', '--model', model)
    for command in (('train', '--data', data, '--output-dir', out, '--max-seq-length', 16, '--max-steps', 1),
                    ('evaluate', '--data', data, '--max-seq-length', 16), ('generate', '--prompt', 'a prompt', '--max-new-tokens', 2)):
        refused = subprocess.run([str(part) for part in (shim, *command, *where)], capture_output=True, text=True)
        told = all(part in refused.stderr for part in (f'the plan books {100 << 20} (100 MiB)', f'{256 << 20} bytes by the context', 'headroom profile'))
        check(f'{command[0]}: more than is booked is refused', refused.returncode == 3 and told and 'estimate' not in refused.stderr, refused.stderr)
    check('and nothing is written', not os.path.exists(out))


def completions(program, where, model, prompts):
    """A server's greedy answers to prompts sent at once, and the lines that it prints before."""
    with tempfile.TemporaryDirectory() as home:
        with Server(program, model, home, *where, '--max-num-batched-tokens', '16') as server:
            def ask(prompt):
                status, text = server.post('/v1/completions', prompt=prompt, max_tokens=12, temperature=0)
                assert status == 200, text
                return json.loads(text)['choices'][0]['text']

            with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
                texts = list(pool.map(ask, prompts))
        check(f'{os.path.basename(program)}: the server ends', server.process.returncode == 0)
        return texts, server.printed


def check_server(program, shim, model):
    """Requests served together on the GPU give what each gives alone, and on the CPU."""
    prompts = ['a prompt of its own', 'row 3: aaaa and some more of it', 'x']
    together, printed = completions(shim, GPU, model, prompts)
    check('the GPU serves', all(together) and 'kv_pool' in printed and 'on the host' in printed, together)
    alone = [completions(shim, GPU, model, [prompt])[0][0] for prompt in prompts]
    check('served together as alone', together == alone, f'{together} {alone}')
    expected = completions(program, CPU, model, prompts)[0]
    check('the GPU serves what the CPU serves', together == expected, f'{together} {expected}')
    for option, remedy in ((('--kv-cache-dtype', 'int8'), 'bf16'), (('--enable-lora',), '--adapter DIR'), (('--admission', 'balanced'), 'guaranteed')):
        refused = subprocess.run([str(part) for part in (shim, 'plan', '--serve', '--model', model, *GPU, *option)], capture_output=True, text=True)
        check(f'{" ".join(option)} is refused on the GPU', refused.returncode == 2 and option[0] in refused.stderr and remedy in refused.stderr, refused.stderr)


def embeddings(program, where, model, texts):
    with tempfile.TemporaryDirectory() as home, Server(program, model, home, *where) as server:
        status, text = server.post('/v1/embeddings', input=texts)
        assert status == 200, text
        return [one['embedding'] for one in json.loads(text)['data']]


def check_encoder(program, shim, folder):
    """Embeddings of an encoder, whose inputs are not split over steps."""
    model, texts = make_model(program, folder, ENCODER), ['a text of its own', 'x', 'row 3: aaaa and some more of it']
    gpu = embeddings(shim, GPU, model, texts)
    cpu = embeddings(program, CPU, model, texts)
    apart = max(abs(a - b) for one, other in zip(gpu, cpu) for a, b in zip(one, other))
    check('the GPU serves an encoder as the CPU does', len(gpu) == len(cpu) == 3 and apart < 1e-5, apart)
    check('its inputs together as alone', gpu[1:2] == embeddings(shim, GPU, model, texts[1:2]))


def main():
    program, shim = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, 'rows.jsonl')
        with open(data, 'w', encoding='utf-8') as out:
            out.writelines(json.dumps(row) + '\n' for row in ROWS)
        model = make_model(program, folder, CONFIG)
        check_experts(program, shim, folder, data)
        check_loss_scale(program, shim, folder, model, data)

        cpu, gpu, resumed = (os.path.join(folder, name) for name in ('cpu', 'gpu', 'resumed'))
        check('the CPU trains', train(program, CPU, model, data, cpu, '--max-steps', 3) == 0)
        check('the GPU trains', train(shim, GPU, model, data, gpu, '--max-steps', 3) == 0)
        check('losses agree', near(values(gpu, 'loss'), values(cpu, 'loss')), f"{values(gpu, 'loss')} {values(cpu, 'loss')}")
        check('gradient norms agree', near(values(gpu, 'grad_norm'), values(cpu, 'grad_norm'), 1e-3))
        check('evaluations agree', near(values(gpu, 'eval_loss'), values(cpu, 'eval_loss')), values(gpu, 'eval_loss'))
        with open(os.path.join(gpu, 'run.json'), encoding='utf-8') as text:
            run = json.load(text)
        check('arena planned == measured', run['arena_planned_bytes'] == run['arena_measured_bytes'], run['arena_measured_bytes'])

        train(shim, GPU, model, data, resumed, '--max-steps', 2)
        check('the GPU resumes', train(shim, GPU, model, data, resumed, '--max-steps', 3, '--resume-from-checkpoint', 'true') == 0)
        check('resumed bitwise', values(resumed, 'loss')[-1] == values(gpu, 'loss')[-1], f"{values(resumed, 'loss')[-1]} {values(gpu, 'loss')[-1]}")

        check_attention_order(shim, folder, model, data)

        wide = make_model(program, folder, WIDE)
        tiers = {'host': ('--host-memory', '1GiB')}
        if lies_in_memory(folder):
            print('skipped: the directory for temporary files is in memory, not on a disk')
        else:
            check_disk(shim, folder, wide, data)
            tiers['disk'] = ('--disk-memory', folder + ':1GiB')
        check_weights_below(shim, wide, data, tiers)

        evaluate = ('evaluate', '--model', gpu, '--data', data, '--max-seq-length', 16, '--json')
        losses = [json.loads(call(binary, *evaluate, *where)[1] or '{"loss": 0}')['loss'] for binary, where in ((program, CPU), (shim, GPU))]
        check('evaluate agrees', near(losses[:1], losses[1:]), losses)
        generate = ('generate', '--model', model, '--prompt', 'a prompt of its own', '--max-new-tokens', 6, '--temperature', 0, '--json')
        tokens = [json.loads(call(binary, *generate, *where)[1] or '{"ids": []}')['ids'] for binary, where in ((program, CPU), (shim, GPU))]
        check('generate agrees', tokens[0] == tokens[1] and len(tokens[0]) > 0, tokens)
        os.environ['XDG_CACHE_HOME'] = folder  # without a measured profile
        bare = os.path.join(folder, 'bare')
        check('a GPU that nobody measured trains, with what is free on it', train(shim, GPU[:2], model, data, bare, '--max-steps', 1) == 0)
        with open(os.path.join(bare, 'plan.json'), encoding='utf-8') as text:
            tiers = json.load(text)['tiers']
        check('the budgets are what is there', tiers['device']['budget_bytes'] > 2 ** 30 and tiers['host']['budget_bytes'] > 0, tiers)
        code = train(shim, [*GPU[:4], '--memory', '590MiB'], model, data, os.path.join(folder, 'small'), '--max-steps', 1)
        check('less than the context is refused', code == 3 and not os.path.exists(os.path.join(folder, 'small')), code)
        check_context(shim, folder, model, data)
        check_server(program, shim, model)
        check_encoder(program, shim, folder)
    print(f'{passed} passed, {len(failed)} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
