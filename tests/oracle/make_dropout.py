#!/usr/bin/env python3
"""Writes tests/oracle/dropout.json: loss and gradient norm of the golden models under dropout, over many samples.

Samples differ between systems; their mean and spread do not, unless dropout is applied at another place, or twice. Each
setting changes some keys of a model's config.json.

Needs torch, transformers and safetensors, and the models of make_oracle.py. Usage: make_dropout.py
Per setting: mean and standard deviation of the loss and of the gradient norm over DRAWS passes over batch.json.
"""
import json
import os

import torch
import transformers

from make_oracle import head_class, loss_of

torch.set_num_threads(1)

FOLDER = os.path.dirname(os.path.abspath(__file__))
DRAWS = 400
SETTINGS = [
    ('bert_masked', {'attention_probs_dropout_prob': 0.4}),
    ('bert_masked', {'hidden_dropout_prob': 0.3}),
    ('bert_classes', {'attention_probs_dropout_prob': 0.4}),
    ('roberta_classes', {'attention_probs_dropout_prob': 0.2, 'hidden_dropout_prob': 0.1, 'classifier_dropout': 0.3}),
    ('gpt2', {'attn_pdrop': 0.4}),
    ('gpt2', {'resid_pdrop': 0.3}),
    ('gpt2', {'embd_pdrop': 0.3}),
    ('gpt_neox', {'attention_dropout': 0.4}),
    ('gpt_neox', {'hidden_dropout': 0.3}),
    ('gpt_neox_sequential', {'hidden_dropout': 0.3}),
    ('starcoder2', {'attention_dropout': 0.4}),
    ('starcoder2', {'residual_dropout': 0.3}),
    ('starcoder2', {'embedding_dropout': 0.3}),
    ('phi3_longrope', {'attention_dropout': 0.4}),
    ('phi3_longrope', {'resid_pdrop': 0.3, 'embd_pdrop': 0.9}),  # embd_pdrop has no effect there
    ('llama_gqa_tied', {'attention_dropout': 0.4}),
    ('mistral_window', {'attention_dropout': 0.4}),
    ('qwen2_bias', {'attention_dropout': 0.4}),
    ('qwen3', {'attention_dropout': 0.4}),
    ('olmo2', {'attention_dropout': 0.4}),
    ('gemma2', {'attention_dropout': 0.4}),
    ('gemma3', {'attention_dropout': 0.4}),
    ('mixtral', {'attention_dropout': 0.4}),
]


def draws_of(name, changes):
    folder = os.path.join(FOLDER, name, 'model')
    config = transformers.AutoConfig.from_pretrained(folder)
    for key, value in changes.items():
        assert hasattr(config, key), (name, key)
        setattr(config, key, value)
    config.use_cache = False
    model = head_class(config).from_pretrained(folder, config=config, attn_implementation='eager').float().train()
    with open(os.path.join(FOLDER, name, 'batch.json'), encoding='utf-8') as text:
        batch = json.load(text)
    ids, labels = torch.tensor(batch['input_ids']), torch.tensor(batch['labels'])
    torch.manual_seed(7)
    losses, norms = [], []
    for _ in range(DRAWS):
        model.zero_grad(set_to_none=True)
        loss, _ = loss_of(model, ids, labels)
        loss.backward()
        losses.append(loss.detach().double())
        norms.append(torch.stack([p.grad.double().norm() for p in model.parameters() if p.grad is not None]).norm())
    return torch.stack(losses), torch.stack(norms)


def main():
    settings = []
    for name, changes in SETTINGS:
        losses, norms = draws_of(name, changes)
        with open(os.path.join(FOLDER, name, 'expected.json'), encoding='utf-8') as text:
            plain = json.load(text)
        apart = [(float(values.mean()) - plain[key]) / (float(values.std()) / DRAWS ** 0.5)
                 for key, values in (('loss', losses), ('gradient_norm', norms))]
        print(f'{name} {changes}: loss {losses.mean():.4f} +- {losses.std():.4f} ({plain["loss"]:.4f} without), '
              f'gradient {norms.mean():.4f} +- {norms.std():.4f} ({plain["gradient_norm"]:.4f}); '
              f'{apart[0]:.1f} and {apart[1]:.1f} standard errors apart')
        settings.append({'case': name, 'config': changes,
                         'loss': [round(float(losses.mean()), 6), round(float(losses.std()), 6)],
                         'gradient_norm': [round(float(norms.mean()), 6), round(float(norms.std()), 6)]})
    result = {'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__, 'draws': DRAWS,
              'settings': settings}
    with open(os.path.join(FOLDER, 'dropout.json'), 'w', encoding='utf-8') as out:
        out.write(json.dumps(result).replace(' {"case"', '\n{"case"').replace('[{"case"', '[\n{"case"') + '\n')


if __name__ == '__main__':
    main()
