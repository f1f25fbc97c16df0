#!/usr/bin/env python3
"""Writes golden.jsonl: small tokenizers with the ids and texts given by HF tokenizers. Usage: make_golden.py TEXT_FILE >
golden.jsonl

Needs the PyPI package tokenizers==0.23.3. Each line: {"name", "tokenizer": a tokenizer.json, "rows": [{"text", "ids",
"decoded"}]}.
"""
import copy
import json
import random
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r'\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}', r'\p{Ll}\p{Lm}\p{Lo}\p{M}'
O200K = (r"[^\r\n\p{L}\p{N}]?[" + UPPER + "]*[" + LOWER + r"]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[" + UPPER + "]+[" + LOWER +
         r"]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
PIECES = ["the", " of", "word", " and", "'s", "'LL", "'\u017f", "I'm", "é", "e\u0301", "\u0301", "한국", "ᄒ", "ᅡᆫ", "中文", "か", "\u3099", "🎉", " ", "  ", "\n",
          "\r\n", "\t", "\u00a0", "\u3000", "\u180e", "\u2028", "1", "2024", "½", "²", "①", "Ⅷ", "٣", "!", "...", "-", "_", "$", "«", "<s>", "</s>", "<mask>",
          "<both>", " étude ", "<", "▁", "<0x0A>", "\u0000", "\U0001d11e", "\ufb01", "\u1d2c", "\u0344", "Ǆ", "ſ", "\u200d"]


def added(token, content, **flags):
    base = dict(id=token, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return dict(base, **flags)


def split(pattern, behavior='Isolated', invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def byte_level(regex, prefix=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def train(files, byte_fallback, size=160, alphabet=70):
    tokenizer = Tokenizer(models.BPE(byte_fallback=byte_fallback, unk_token='<unk>' if byte_fallback else None, fuse_unk=byte_fallback))
    if byte_fallback:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement='▁', prepend_scheme='never')
        special = ['<unk>', '<s>', '</s>'] + [f'<0x{b:02X}>' for b in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=259 + size, special_tokens=special, limit_alphabet=alphabet, show_progress=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=256 + 120, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(files, trainer)
    data = json.loads(tokenizer.to_str())
    if byte_fallback:
        data['added_tokens'] = data['added_tokens'][:3]
        data['pre_tokenizer'] = None
        data['decoder'] = {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
        data['post_processor'] = {
            "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    return data


def variants(files):
    byte, fallback = train(files, False), train(files, True)
    size = len(byte['model']['vocab'])
    extra = [added(size, '<s>'), added(size + 1, '<mask>', lstrip=True), added(size + 2, '<both>', lstrip=True, rstrip=True),
             added(size + 3, 'étude', normalized=True, special=False, single_word=True), added(size + 4, '   ', normalized=True, special=False)]
    steps = {
        'gpt2': dict(pre_tokenizer=byte_level(True)),
        'prefix': dict(pre_tokenizer=byte_level(True, True)),
        'neox': dict(normalizer={"type": "NFC"}, pre_tokenizer=byte_level(True)),
        'llama3': dict(pre_tokenizer=sequence(split(LLAMA3), byte_level(False)), ignore_merges=True),
        'o200k': dict(pre_tokenizer=sequence(split(O200K), byte_level(False))),
        'cl100k': dict(normalizer={"type": "NFKC"}, pre_tokenizer=sequence(split(CL100K), byte_level(False))),
        'starcoder': dict(pre_tokenizer=sequence({"type": "Digits", "individual_digits": True}, byte_level(True))),
        'falcon': dict(normalizer={"type": "NFD"}, pre_tokenizer=sequence(
            {"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True), {"type": "Digits", "individual_digits": False}, split('[0-9][0-9][0-9]'))),
        'behaviors': dict(normalizer={"type": "NFKD"}, pre_tokenizer=sequence(
            split(r'\w+', 'MergedWithNext'), split('[aeiou]', 'MergedWithPrevious'), split('t', 'Removed'), split(r'\d|x', 'Contiguous'),
            split(r'[^\W\d]{2,5}?e', 'Isolated', True), byte_level(False))),
    }
    for name, changes in steps.items():
        made = dict(copy.deepcopy(byte), added_tokens=extra)
        made['model']['ignore_merges'] = changes.pop('ignore_merges', False)
        yield name, dict(made, **changes)
    yield 'llama2', fallback
    for scheme in ('first', 'always', 'never'):
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": scheme != 'first'}
        decoder = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace]}
        yield 'metaspace-' + scheme, dict(copy.deepcopy(fallback), normalizer=None, pre_tokenizer=metaspace, decoder=decoder)
    unknown = copy.deepcopy(fallback)
    unknown['model'].update(byte_fallback=False, fuse_unk=False)
    yield 'unknown', dict(unknown, decoder=None)


def main():
    source = open(sys.argv[1], encoding='utf-8').read()
    for name, data in variants([sys.argv[1]]):
        tokenizer, rng, rows = Tokenizer.from_str(json.dumps(data)), random.Random(name), []
        for i in range(24):
            text = ''.join(rng.choice(PIECES) for _ in range(i))
            at = rng.randrange(len(source) - 30)
            text += source[at:at + 30] if i % 3 == 0 else ''
            ids = tokenizer.encode(text).ids
            rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
        print(json.dumps({"name": name, "tokenizer": data, "rows": rows}, separators=(',', ':')))


if __name__ == '__main__':
    main()
