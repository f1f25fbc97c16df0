#!/usr/bin/env python3
"""Writes tokenizers/*/tokenizer.json and vectors.jsonl: real tokenizers with a part of their vocabulary, and the ids that HF
tokenizers gives with it. Usage: make_tokenizers.py FOLDER

FOLDER holds the full tokenizers, one folder each. gpt2, qwen2.5, gpt-neox-20b and bert-base-uncased are reduced to the merges
or words that the texts of text/ use most; everything else (normalizer, pattern, added tokens, decoder) is as published. llama2
is made here: Llama 2's pipeline with merges learned from text/. Needs tokenizers==0.23.3.
"""
import collections
import copy
import json
import pathlib
import random
import sys

import tokenizers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tokenizer'))
import make_golden  # noqa: E402
import make_model_golden  # noqa: E402

MERGES, WORDS = 4000, 5000
BYTES = tokenizers.pre_tokenizers.ByteLevel.alphabet()


def corpus():
    return ''.join((HERE / 'text' / name).read_text(encoding='utf-8') for name in ('tinyshakespeare.txt', 'wagahaiwa_nekodearu.txt'))


def uses(whole, text):
    """How often each token stands for a piece of the text."""
    made, counts = tokenizers.Tokenizer.from_str(json.dumps(whole)), collections.Counter()
    for line in text.splitlines(keepends=True):
        counts.update(made.encode(line, add_special_tokens=False).tokens)
    return counts


def renumbered(whole, vocabulary):
    """The file with these tokens, followed by the added ones; updates the ids of the post-processor."""
    made, ids = copy.deepcopy(whole), {token: i for i, token in enumerate(vocabulary)}
    made['model']['vocab'] = dict(ids)
    for entry in made['added_tokens']:
        entry['id'] = ids.setdefault(entry['content'], len(ids))
    for token in ((made.get('post_processor') or {}).get('special_tokens') or {}).values():
        token['ids'] = [ids[name] for name in token['tokens']]
    return made


def cut_merges(whole, text):
    """The most used tokens and all tokens that their merges need, in the order of the published ranks."""
    parts = {}
    pairs = [merge if isinstance(merge, list) else merge.split(' ') for merge in whole['model']['merges']]
    for left, right in pairs:
        parts.setdefault(left + right, (left, right))
    kept = set()

    def keep(token):
        if token in parts and token not in kept:
            kept.add(token)
            for part in parts[token]:
                keep(part)

    for token, _ in uses(whole, text).most_common():
        if len(kept) < MERGES:
            keep(token)
    merges = [[left, right] for left, right in pairs if left + right in kept and parts[left + right] == (left, right)]
    made = renumbered(whole, sorted(BYTES) + [left + right for left, right in merges])
    made['model']['merges'] = [' '.join(pair) for pair in merges]
    return made


def cut_words(whole, text):
    """The special words, single characters of the texts, and the most used words."""
    counts, added = uses(whole, text), {entry['content'] for entry in whole['added_tokens']}
    most = {token for token, _ in counts.most_common(WORDS)}
    seen = set(text.lower()) | set('abcdefghijklmnopqrstuvwxyz0123456789!?.,;:-_$()')
    kept = [token for token in sorted(whole['model']['vocab'], key=whole['model']['vocab'].get)
            if token in added or token in most or token.removeprefix('##') in seen]
    return renumbered(whole, kept)


def llama():
    """Llama 2's pipeline with merges learned here."""
    files = [str(HERE / 'text' / name) for name in ('tinyshakespeare.txt', 'wagahaiwa_nekodearu.txt')]
    return make_golden.train(files, True, size=MERGES, alphabet=2000)


def vectors(made, text):
    rng, tokenizer = random.Random(5), tokenizers.Tokenizer.from_str(json.dumps(made))
    samples = make_model_golden.texts(text)
    for _ in range(60):
        at = rng.randrange(len(text) - 300)
        samples.append(text[at:at + rng.choice((40, 120, 300))])
    rows = []
    for sample in samples:
        ids = tokenizer.encode(sample).ids
        rows.append({'text': sample, 'ids': ids, 'ids_no_special': tokenizer.encode(sample, add_special_tokens=False).ids,
                     'decoded': tokenizer.decode(ids)})
    return rows


def main():
    whole, text = pathlib.Path(sys.argv[1]), corpus()

    def read(name):
        return json.loads((whole / name / 'tokenizer.json').read_text(encoding='utf-8'))

    made = {name: cut_merges(read(name), text) for name in ('gpt2', 'qwen2.5', 'gpt-neox-20b')}
    made['bert-base-uncased'] = cut_words(read('bert-base-uncased'), text)
    made['llama2'] = llama()
    for name, content in made.items():
        folder = HERE / 'tokenizers' / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'tokenizer.json').write_text(json.dumps(content, ensure_ascii=False, separators=(',', ':')) + '\n', encoding='utf-8')
        rows = vectors(content, text)
        (folder / 'vectors.jsonl').write_text(
            ''.join(json.dumps(row, ensure_ascii=False, separators=(',', ':')) + '\n' for row in rows), encoding='utf-8')
        print(name, len(content['model']['vocab']), 'tokens,', len(rows), 'rows')


if __name__ == '__main__':
    main()
