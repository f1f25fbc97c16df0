#!/usr/bin/env python3
"""Runs the acceptance scripts of SHARED/accept on a headroom binary and sums up their results.

Usage: accept.py HEADROOM_BINARY SHARED_DIR
Each script prints "N passed, N failed"; one that ends without such a line counts as one failure. Scripts whose command
the binary does not have are skipped. The last line is the sum. Standard library only.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

COUNTS = re.compile(r'^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$', re.M)
BUDGET_FRACTIONS = (0.0, 0.5, 1.0)  # of the way from the least budget to plenty
SECONDS_PER_SCRIPT = 900
# Every exact and reassociating technique alone, then three together. fused-optimizer cannot clip, as the goldens do.
ALONE = ('--technique recompute=on', '--technique recompute=drop-cheap', '--technique recompute=drop-attention',
         '--technique recompute=off', '--technique chunked-loss=on', '--technique chunked-loss=7', '--technique chunked-loss=off',
         '--micro-batch-size 1', '--micro-batch-size 3', '--technique flash-attention=on', '--arithmetic fixed',
         '--technique recompute=on --technique recompute-segments=on',
         '--technique recompute=on --micro-batch-size 3 --technique chunked-loss=on')
# Fresh models for budget.py, one per family; all with the vocabulary of stories260K.
LAYERS = dict(hidden_size=128, intermediate_size=320, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=256, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act='silu')
FAMILIES = {
    'qwen3': dict(LAYERS, architectures=['Qwen3ForCausalLM'], head_dim=32, tie_word_embeddings=True),
    'gemma2': dict(LAYERS, architectures=['Gemma2ForCausalLM'], head_dim=32, hidden_activation='gelu_pytorch_tanh',
                   query_pre_attn_scalar=32, sliding_window=64, attn_logit_softcapping=50.0, final_logit_softcapping=30.0),
    'gpt2': dict(architectures=['GPT2LMHeadModel'], n_embd=128, n_head=4, n_layer=4, n_positions=256,
                 activation_function='gelu_new', layer_norm_epsilon=1e-5),
    'gpt_neox': dict(LAYERS, architectures=['GPTNeoXForCausalLM'], hidden_act='gelu', rotary_pct=0.25, layer_norm_eps=1e-5,
                     use_parallel_residual=True, tie_word_embeddings=False),
    'phi3': dict(LAYERS, architectures=['Phi3ForCausalLM'], tie_word_embeddings=False, sliding_window=100, pad_token_id=0),
}


class Acceptance:
    def __init__(self, binary, shared):
        self.binary = os.path.abspath(binary)
        self.shared = os.path.abspath(shared)
        self.total = [0, 0, 0]

    def script(self, name, *arguments):
        """Runs accept/NAME with the binary and the arguments; adds its counts."""
        command = [sys.executable, os.path.join(self.shared, 'accept', name), self.binary, *map(str, arguments)]
        shown = ' '.join([name, *(str(a).replace(self.shared, '../shared') for a in arguments)])
        began = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_PER_SCRIPT, check=False)
            output, code = done.stdout, done.returncode
            if code:
                output += done.stderr[-2000:]
        except subprocess.TimeoutExpired as late:
            output, code = (late.stdout or b'').decode(errors='replace'), 'timeout'
        found = COUNTS.findall(output)
        counts = [int(c or 0) for c in found[-1]] if found else [0, 1, 0]
        if code and not counts[1]:
            counts[1] = 1
        self.total = [a + b for a, b in zip(self.total, counts)]
        print(f'{shown}: {counts[0]} ok, {counts[1]} bad, {counts[2]} left out, {time.monotonic() - began:.0f} s')
        if counts[1]:
            print('\n'.join('    ' + line for line in output.split('\n') if 'FAIL' in line or not found)[-3000:])
        sys.stdout.flush()

    def has(self, command):
        known = subprocess.run([self.binary, command, '--help'], capture_output=True, check=False).returncode == 0
        if not known:
            print(f'skipped: the program has no command {command}')
            self.total[2] += 1
        return known

    def at(self, *parts):
        return os.path.join(self.shared, *parts)

    def golden(self):
        self.script('golden.py')
        for options in ALONE:
            self.script('golden.py', f'--extra=--threads 1 {options}')
        for case in sorted(os.listdir(self.at('accept', 'golden'))):
            self.fused_optimizer(case)
        for case in sorted(os.listdir(self.at('accept', 'golden'))):
            self.golden_at_budgets(case)

    def optimizers(self):
        """Every optimizer's curve, as planned and under the techniques that touch updates."""
        cases = self.at('accept', 'golden-optim')
        if not os.path.isdir(cases):
            return
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.binary)) as disk:  # beside the program: not in memory
            for options in ('', '--technique recompute=on', '--micro-batch-size 1',
                            f'--technique offload-optimizer=on --disk-memory {disk}:1GiB'):
                self.script('golden.py', cases, f'--extra={options}')

    def quantized(self):
        """Adapters trained further over quantised bases, as planned and under the techniques that move or redo things."""
        cases = self.at('accept', 'golden-qlora')
        if not os.path.isdir(cases):
            return
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.binary)) as disk:
            for options in ('', '--technique recompute=on', '--micro-batch-size 1',
                            f'--technique offload-parameters=on --disk-memory {disk}:1GiB'):
                self.script('golden.py', cases, f'--extra={options}')

    def quantization_aware(self):
        """Training for quantised weights and activations, as planned and under the techniques that move or redo things."""
        cases = self.at('accept', 'golden-qat')
        if not os.path.isdir(cases):
            return
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.binary)) as disk:
            for options in ('', '--technique recompute=on', '--micro-batch-size 1', '--technique sequence-chunks=2',
                            f'--technique offload-parameters=on --disk-memory {disk}:1GiB'):
                self.script('golden.py', cases, f'--extra={options}')

    def quantized_losses(self):
        """Checkpoints that other programs quantised: the loss of each, to 1e-5."""
        folder = self.at('data', 'quantized')
        for kind in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            case = os.path.join(folder, kind)
            if not os.path.exists(os.path.join(case, 'loss.json')):
                continue
            with open(os.path.join(case, 'loss.json'), encoding='utf-8') as text:
                wanted = json.load(text)
            done = subprocess.run([self.binary, 'evaluate', '--model', f'{case}/model', '--data', f'{case}/rows.jsonl', '--memory', '256MiB',
                                   '--max-seq-length', '64', '--json'], capture_output=True, text=True, check=False)
            found = json.loads(done.stdout) if done.returncode == 0 else {}
            good = found.get('tokens') == wanted['tokens'] and abs(found['loss'] - wanted['loss']) <= 1e-5
            self.total[not good] += 1
            print(f'evaluate {kind}: {found.get("loss", done.stderr[-300:])}, wanted {wanted["loss"]}: {"ok" if good else "FAIL"}')

    def fused_optimizer(self, case):
        """A golden case without clipping: the same losses and weights, bitwise, with the update inside the backward pass."""
        folder, results = self.at('accept', 'golden', case), []
        for setting in ('off', 'on'):
            with tempfile.TemporaryDirectory() as out:
                done = subprocess.run([self.binary, 'train', '--model', f'{folder}/model', '--data', f'{folder}/data.jsonl', '--memory', '1GiB',
                                       '--output-dir', out, '--max-steps', '6', '--max-seq-length', '64', '--learning-rate', '2e-3',
                                       '--threads', '1', '--max-grad-norm', '0', '--micro-batch-size', '8', '--technique', f'fused-optimizer={setting}',
                                       '--quiet'],
                                      capture_output=True, text=True, check=False)
                if done.returncode:
                    results.append(f'exit {done.returncode}: {done.stderr[-300:]}')
                    continue
                with open(f'{out}/metrics.jsonl', encoding='utf-8') as rows, open(f'{out}/model.safetensors', 'rb') as weights:
                    results.append(([json.loads(row)['loss'] for row in rows], weights.read()))
        good = results[0] == results[1] and not isinstance(results[0], str)
        self.total[not good] += 1
        print(f'fused-optimizer, {case}: {"bitwise the same" if good else [r if isinstance(r, str) else r[0] for r in results]}')

    def golden_at_budgets(self, case):
        """golden.py takes one budget for all of its cases; each case has its own least budget."""
        folder = self.at('accept', 'golden', case)
        with open(os.path.join(folder, 'case.json'), encoding='utf-8') as text:
            options = json.load(text)
        try:
            least, plenty = self.budgets(folder, options)
        except (ValueError, KeyError, subprocess.SubprocessError) as why:
            print(f'golden.py {case}: no budgets: {why}')
            self.total[1] += 1
            return
        with tempfile.TemporaryDirectory() as cases:
            os.symlink(folder, os.path.join(cases, case))
            for fraction in BUDGET_FRACTIONS:
                self.script('golden.py', cases, '--memory', int(least + fraction * (plenty - least)))

    def budgets(self, folder, options):
        """The least budget for a golden case, and the peak with plenty."""
        command = [self.binary, 'plan', '--json', '--memory', '1GiB', '--model', os.path.join(folder, 'model'),
                   '--data', os.path.join(folder, 'data.jsonl'), '--precision', '32-true',
                   '--global-batch-size', str(options['global_batch_size']),
                   '--max-seq-length', str(options['max_seq_length']), '--max-grad-norm', str(options['max_grad_norm'])]
        plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
        return plan['minimum_bytes'], plan['peak_bytes']

    def gpu(self):
        """The goldens by the GPU's kernels on the CPU (docs/cuda.md), as planned and under three techniques."""
        shim = os.path.join(os.path.dirname(self.binary), 'headroom_on_shim')
        if not os.path.exists(shim):
            print('skipped: no program on the shim is built')
            self.total[2] += 1
            return
        self.binary, program = shim, self.binary
        for options in ('', '--technique recompute=on --micro-batch-size 3 --technique chunked-loss=on'):
            self.script('golden.py', f'--extra=--device cuda:0 --profile H100-80GB {options}')
        self.binary = program

    def budget(self):
        stories = (self.at('data', 'stories260K'), self.at('data', 'text', 'tinyshakespeare.txt'))
        extra = '--extra=--global-batch-size 8 --max-seq-length 256'
        self.script('budget.py', *stories, extra)
        self.script('budget.py', *stories, '--bitwise', extra)
        with open(stories[1], encoding='utf-8') as text, open('few-lines.txt', 'w', encoding='utf-8') as few:
            few.write(text.read(60000))
        for family, config in FAMILIES.items():
            self.budget_of(family, dict(config, model_type=family, vocab_size=512, bos_token_id=1, eos_token_id=2))
        # Weights, gradients and states of 175 MiB: the least budget keeps them on disk, and the kernel's limit is below them. The
        # embedding is larger than every matrix of a layer: its update goes by slices.
        self.budget_of('llama', dict(LAYERS, architectures=['LlamaForCausalLM'], model_type='llama', vocab_size=4096, hidden_size=512,
                                     intermediate_size=1280, num_attention_heads=8, num_key_value_heads=8, num_hidden_layers=3,
                                     bos_token_id=1, eos_token_id=2), '--fractions', '0.5,0.0', more='--disk-memory .:4GiB')

    def budget_of(self, family, config, *arguments, more=''):
        """budget.py on a fresh model, with more options of the program."""
        with tempfile.TemporaryDirectory(dir='.') as folder:
            with open(f'{folder}/config.json', 'w', encoding='utf-8') as file:
                json.dump(config, file)
            model = f'{folder}/{family}'
            made = subprocess.run([self.binary, 'init', '--config', f'{folder}/config.json', '--output-dir', model, '--tokenizer',
                                   self.at('data', 'stories260K', 'tokenizer.json')], capture_output=True, text=True, check=False)
            if made.returncode:
                print(f'init {family}: {made.stderr}')
                self.total[1] += 1
                return
            self.script('budget.py', model, 'few-lines.txt', *arguments, f'--extra=--threads 1 --global-batch-size 8 --max-seq-length 128 {more}')

    def run(self):
        if self.has('tokenize'):
            tokenizers = ('gpt2', 'qwen2.5', 'llama2', 'gpt-neox-20b', 'bert-base-uncased')
            self.script('tokenizer.py', *(self.at('data', 'tokenizers', name) for name in tokenizers))
        if self.has('generate'):
            self.script('generate.py', self.at('data', 'stories260K'))
        if self.has('serve'):
            self.script('serve.py', self.at('data', 'stories260K'))
        if self.has('train') and self.has('evaluate'):
            self.golden()
            self.optimizers()
            self.quantized()
            self.quantization_aware()
            self.quantized_losses()
            self.gpu()
        if self.has('plan'):
            self.budget()
        if self.has('doctor'):
            self.script('doctor_messages.py', self.at('data', 'oom_messages.jsonl'))
            self.script('doctor_threads.py')
        passed, failed, skipped = self.total
        print(f'{passed} passed, {failed} failed, {skipped} skipped')
        return 1 if failed or not passed else 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # budget.py writes its runs into the current directory, which must not be a tmpfs.
    os.makedirs('build/ci', exist_ok=True)
    acceptance = Acceptance(*sys.argv[1:])
    os.chdir('build/ci')
    sys.exit(acceptance.run())


if __name__ == '__main__':
    main()
