#!/usr/bin/env python3
"""Makes tests/oracle/CASE/rounding.json: how far the gradients under torch's bf16 autocast are from those in fp32.

Needs torch, transformers and safetensors (not needed to build or test headroom: the files are committed).
Usage: make_rounding.py [CASE...]

Eight batches are made of the case's one by moving its tokens and classes around (other_batch). With d the L2 distance of a
tensor's gradient from fp32's, a tensor's row is the mean over the batches of
  autocast    ln d
  spread      the standard deviation of the difference of two such means whose roundings are independent: weights that differ
              by less than a rounding to bf16 give other roundings of nearly the same numbers
  fused       ln d with torch's fused attention instead of the plain one, less the first (0 where soft caps forbid it)
  truncated   ln d with every rounding to bf16 cutting the lower bits off instead, less the first
  bf16        ln d with the whole model in bf16, less the first
`spread` beside the tensors is that of the mean over all of them.
"""
import contextlib
import copy
import json
import math
import os
import statistics
import sys

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from make_oracle import CASES, FIRST, IGNORED, gradients, graph_gradients, head_class, objective, write_json

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES, DRAWS, SPECIAL = 8, 8, 3  # ids below SPECIAL stay


def load(name):
    config_class, arguments, _ = CASES[name]
    config = config_class(**arguments)
    model = head_class(config).from_pretrained(os.path.join(HERE, name, 'model'), attn_implementation='eager',
                                               dtype=torch.float32).train()
    model.config._experts_implementation = 'eager'
    with open(os.path.join(HERE, name, 'batch.json'), encoding='utf-8') as text:
        batch = json.load(text)
    return model, torch.tensor(batch['input_ids']), torch.tensor(batch['labels'])


def other_batch(config, ids, labels, number):
    def moved(tokens):
        return torch.where(tokens >= SPECIAL, SPECIAL + (tokens - SPECIAL + 17 * number) % (config.vocab_size - SPECIAL), tokens)
    classes = objective(config) == 'classes'
    others = (labels + number) % config.num_labels if classes else moved(labels)
    return moved(ids), torch.where(labels == IGNORED, labels, others)


class Truncating(TorchDispatchMode):
    """Computes what gives bf16 from the same numbers in fp32 and cuts the lower bits of the result off."""
    COPIES = {'view', 't', 'transpose', 'expand', 'slice', 'detach', 'alias', 'permute', 'unsqueeze', 'squeeze', 'select',
              'split', '_unsafe_view', 'as_strided', 'split_with_sizes', 'clone', 'unbind', 'zeros_like', 'new_zeros', 'zeros',
              'slice_backward', 'select_backward', 'empty_like', 'cat', 'copy_', 'stack', 'empty', 'new_empty_strided'}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        outs = out if isinstance(out, (tuple, list)) else (out,)
        narrow = [isinstance(o, torch.Tensor) and o.dtype == torch.bfloat16 for o in outs]
        if function._overloadpacket.__name__ in self.COPIES or not any(narrow):
            return out
        wide = function(*tree_map(self.widened, args), **tree_map(self.widened, kwargs or {}))
        cut = [self.cut(w) if n else w for w, n in zip(wide if isinstance(wide, (tuple, list)) else (wide,), narrow)]
        return type(out)(cut) if isinstance(out, (tuple, list)) else cut[0]

    @staticmethod
    def widened(value):
        if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:
            return value.float()
        return torch.float32 if value is torch.bfloat16 else value

    @staticmethod
    def cut(values):
        return (values.contiguous().view(torch.int32) & -65536).view(torch.float32).bfloat16()


def found(model, batch, *modes):
    with contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        return graph_gradients(model.config, gradients(model, *batch)[2])


def errors(model, batches, *modes, narrow=False, fused=False):
    """ln d of every tensor, the mean over the batches."""
    other = copy.deepcopy(model)
    if narrow:
        other.bfloat16()
    if fused:
        other.set_attn_implementation('sdpa')
    sums = {}
    for batch in batches:
        exact, rounded = found(model, batch), found(other, batch, *modes)
        for name in exact:
            distance = float((rounded[name].double() - exact[name].double()).norm())
            sums[name] = sums.get(name, 0) + math.log(max(distance, 1e-30)) / len(batches)
    return sums


def write_rounding(name):
    model, ids, labels = load(name)
    batches = [other_batch(model.config, ids, labels, number) for number in range(BATCHES)]
    autocast = torch.autocast('cpu', dtype=torch.bfloat16)
    plain = errors(model, batches, autocast)
    fused = plain if getattr(model.config, 'attn_logit_softcapping', None) else errors(model, batches, autocast, fused=True)
    truncated = errors(model, batches, Truncating(), autocast)
    bf16 = errors(model, batches, narrow=True)
    draws, start = [plain], copy.deepcopy(model.state_dict())
    for draw in range(1, DRAWS + 1):
        model.load_state_dict(start)
        generator = torch.Generator().manual_seed(draw)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + 2 ** -9 * (2 * torch.rand(parameter.shape, generator=generator) - 1))
        draws.append(errors(model, batches, autocast))
    spread = lambda values: round(2 ** 0.5 * statistics.stdev(values), 4)
    write_json(os.path.join(HERE, name, 'rounding.json'), {
        'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__, 'batches': BATCHES,
        'spread': spread([statistics.fmean(draw.values()) for draw in draws]),
        'tensors': {tensor: {'autocast': round(plain[tensor], 4), 'spread': spread([draw[tensor] for draw in draws]),
                             'fused': round(fused[tensor] - plain[tensor], 4),
                             'truncated': round(truncated[tensor] - plain[tensor], 4),
                             'bf16': round(bf16[tensor] - plain[tensor], 4)} for tensor in plain}})


def main():
    for name in sys.argv[1:] or [case for case in CASES if case not in FIRST[1:] and not case.endswith('_padding')]:
        write_rounding(name)
        print(name, end=' ', flush=True)
    print()


if __name__ == '__main__':
    main()
