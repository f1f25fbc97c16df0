#!/usr/bin/env python3
"""Writes golden_models.jsonl: small WordPiece and Unigram tokenizers with the ids and texts given by HF tokenizers.

Usage: make_model_golden.py TEXT_FILE... > golden_models.jsonl      (needs the PyPI package tokenizers==0.23.3)

The first line is the list of texts; each other line is {"name", "tokenizer": a tokenizer.json, "ids", "decoded"}, with one
entry per text: null for a text that cannot be encoded.
"""
import base64
import json
import random
import struct
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PIECES = ['the', ' of', 'word', ' and', "'s", "n't", ' do not', 'é', 'e\u0301', '\u0301', 'É', 'İ', 'ß', 'ẞ', 'Σς', 'Ǆ', '한국', 'ᄒ', 'ᅡᆫ', '中文',
          '日本', 'か', '\u3099', 'ガ', '🎉', '👩\u200d👩\u200d👧', '👍🏽', '©\u0301', '\u00a9\u200d\u00a9\u0301', '🇫🇷🇩', ' ', '  ', '   ', '\n', '\r\n', '\r',
          '\t', '\u000b', '\u0085', '\u00a0', '\u3000', '\u180e', '\u2028', '\u200b', '\u200c', '\u200d', '\ufeff', '\ufffd', '\u0000', '\u0001', '\u007f', '\u009f',
          '\u00ad', '\ue000', '1', '2024', '½', '²', '①', 'Ⅷ', '٣', '!', '...', '-', '_', '$', '«', '。', '，', '``', "''", '<s>', '</s>', '<mask>',
          ' <mask>', '<unk>', '[MASK]', '[UNK]', '<sep>', ' étude ', '<', '▁', '▁▁', '<0x0A>', '\U0001d11e', '\ufb01', '\ufdfa', '\u1d2c', '\u0344', 'ſ', 'क\u094d',
          'क', '\u093f', 'क\u094d\u0301क\u0301', '\u0600a', '\u0e33', 'ก', 'ắ', 'ą\u0302', 'Å', '\u212b', 'x', 'aaaa', 'ABC', 'unaffable', 'ing', 'ab', 'ba', 'abab', '😀']


def charsmap(table):
    """A table of replacements in SentencePiece's format: a double-array trie of the keys, then the texts."""
    texts, offsets = b'', {}
    for key, text in table.items():
        offsets[key] = len(texts)
        texts += text.encode() + b'\0'
    units, taken, bases = {0: 0}, {0}, set()

    def place(keys, depth, at, label):
        # A node's children are at base ^ byte, a leaf is at the base itself.
        ending = [key for key in keys if len(key) == depth]
        follow = sorted({key[depth] for key in keys if len(key) > depth})
        slots = ([0] if ending else []) + follow
        base = next(b for b in range(1, 1 << 20) if b not in bases and not any(b ^ slot in taken for slot in slots))
        bases.add(base)
        taken.update(base ^ slot for slot in slots)
        units[at] = label | (at ^ base) << 10 | (1 << 8 if ending else 0)
        if ending:
            units[base] = offsets[ending[0].decode()] | 1 << 31
        for byte in follow:
            place([key for key in keys if len(key) > depth and key[depth] == byte], depth + 1, base ^ byte, byte)

    place([key.encode() for key in table], 0, 0, 0)
    size = (max(max(units), max(bases)) // 256 + 1) * 256
    return struct.pack('<I', 4 * size) + struct.pack(f'<{size}I', *(units.get(i, 0) for i in range(size))) + texts


REPLACEMENTS = {'\n': ' ', '\r': ' ', '\t': ' ', '\u00a0': ' ', '\u3000': ' ', '\u200b': ' ', '\u0001': '', '\u007f': '', '\ufb01': 'fi', '①': '1',
                '½': '1⁄2', 'e\u0301': 'é', 'か\u3099': 'が', 'ガ': 'ガ', '\ufdfa': 'صلى الله عليه وسلم', '\u212b': 'Å', '©': '(c)', '\u0e33': '\u0e4d\u0e32', 'ſ': 's',
                'Ⅷ': 'VIII', '…': '...', '\u2028': ' ', '\u0344': '\u0308\u0301', '\ufeff': ''}


def added(tokenizer, *tokens, **flags):
    tokenizer.add_tokens([AddedToken(token, **flags) for token in tokens])


def word_piece(files, size, normalizer, pre_tokenizer, prefix='##', most=100, cleanup=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]', max_input_chars_per_word=most, continuing_subword_prefix=prefix))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    tokenizer.train(files, trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, limit_alphabet=90, show_progress=False,
                                                     continuing_subword_prefix=prefix))
    tokenizer.decoder = decoders.WordPiece(prefix, cleanup)
    return tokenizer


def unigram(files, size, normalizer, pre_tokenizer, byte_fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    special = ['<unk>', '<s>', '</s>', '<mask>'] + ([f'<0x{b:02X}>' for b in range(256)] if byte_fallback else [])
    tokenizer.train(files, trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token='<unk>', show_progress=False, seed_size=20000))
    data = json.loads(tokenizer.to_str())
    data['model']['byte_fallback'] = byte_fallback
    data['added_tokens'] = [dict(token, lstrip=token['content'] == '<mask>') for token in data['added_tokens'][:4]]
    return data


def scored(*pieces, unk_id=0, **parts):
    """A Unigram tokenizer computed by hand."""
    empty = dict(version='1.0', truncation=None, padding=None, added_tokens=[], normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None)
    return dict(empty, model=dict(type='Unigram', unk_id=unk_id, vocab=[list(piece) for piece in pieces], byte_fallback=False), **parts)


def word_pieces(files):
    bert = word_piece(files, 420, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    bert.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    yield 'bert-uncased', bert
    cased = word_piece(files, 420, normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer(), '@@', 9, False)
    cased.post_processor = processors.TemplateProcessing(single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1', special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    added(cased, 'étude', 'and', normalized=True, single_word=True)
    yield 'bert-cased', cased
    yield 'bert-accents', word_piece(files, 380, normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False),
                                     pre_tokenizers.Whitespace())
    yield 'bert-stripped', word_piece(files, 380, normalizers.BertNormalizer(handle_chinese_chars=False, strip_accents=True, lowercase=False),
                                      pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(' '), pre_tokenizers.Digits(True)]))


def template(first, last):
    special = {name: {'id': name, 'ids': [identifier], 'tokens': [name]} for name, identifier in (first, last)}
    single = [{'SpecialToken': {'id': first[0], 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}, {'SpecialToken': {'id': last[0], 'type_id': 0}}]
    return {'type': 'TemplateProcessing', 'single': single, 'pair': single + [{'Sequence': {'id': 'B', 'type_id': 0}}], 'special_tokens': special}


def unigrams(files):
    table = charsmap(REPLACEMENTS)
    precompiled = normalizers.Precompiled(table)
    spaces = pre_tokenizers.Metaspace()
    metaspace = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}
    replace = normalizers.Replace
    from tokenizers import Regex
    t5 = unigram(files, 420, normalizers.Sequence([precompiled, normalizers.Strip(left=False, right=True), replace(Regex(' {2,}'), '▁')]), spaces)
    yield 't5', dict(t5, decoder=metaspace, post_processor=template(('<s>', 1), ('</s>', 2)))
    albert = unigram(files, 380, normalizers.Sequence([replace('``', '"'), replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
                                                       normalizers.Lowercase(), precompiled, replace(Regex(' {2,}'), ' ')]), spaces)
    yield 'albert', dict(albert, decoder=metaspace)
    xlmr = unigram(files, 420, precompiled, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces]))
    xlmr['pre_tokenizer']['pretokenizers'][1] = {'type': 'Metaspace', 'replacement': '▁', 'str_rep': '▁', 'add_prefix_space': True}
    yield 'xlmr', dict(xlmr, decoder={'type': 'Metaspace', 'replacement': '▁', 'str_rep': '▁', 'add_prefix_space': True})
    fallback = unigram(files, 620, normalizers.Replace(' ', '▁'), None, True)
    whole = dict(metaspace, prepend_scheme='first', split=False)
    yield 'bytes', dict(fallback, pre_tokenizer=whole, decoder={'type': 'Sequence', 'decoders': [{'type': 'ByteFallback'}, whole]})
    nmt = unigram(files, 380, normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), normalizers.Lowercase()]),
                  pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), pre_tokenizers.Digits(False), pre_tokenizers.Metaspace(prepend_scheme='never')]))
    yield 'nmt', dict(nmt, decoder={'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'never', 'split': True})
    yield 'first', dict(nmt, normalizer=dict(type='Sequence', normalizers=[dict(type='Precompiled', precompiled_charsmap=base64.b64encode(table).decode())]),
                        pre_tokenizer=dict(metaspace, prepend_scheme='first'), decoder=dict(metaspace, prepend_scheme='first'))


def by_hand():
    pieces = [('<unk>', 0), ('a', -1), ('b', -1), ('ab', -2), ('ba', -2), ('aa', -2), ('aaa', -3.0), ('abab', -4), (' ', -1), ('the', -2.5e0), (' of', -31e-1), ('x', -0.1),
              ('xa', -1.1), ('中', -3.3), ('e', -0.7), ('word', -0.30000000000000004)]
    yield 'ties', scored(*pieces)
    yield 'twice', scored(*pieces, ('ab', -0.5), ('<s>', -4), ('<0x41>', -9), ('<unk>', -3), ('<', -2), unk_id=0)
    yield 'unknown-piece', scored(*pieces, ('unk', -2), ('k>', -1), unk_id=9, added_tokens=[])
    some = scored(*pieces, *((f'<0x{b:02X}>', -5) for b in range(0xB0)))
    some['model']['byte_fallback'] = True
    yield 'some-bytes', some
    yield 'no-unknown', scored(*pieces, unk_id=None)
    # No sum is exact, so the order of additions matters.
    rng = random.Random(5)
    yield 'rounding', scored(('<unk>', 0), *((a + b + c, -0.1 * len(a + b + c) - rng.choice((0, 1e-16, 3e-16)))
                                             for a in ('a', 'b', 'x', 'e') for b in ('', 'a', 'b', 'x') for c in (('',) if not b else ('', 'a', 'e', 'b'))))


def texts(source):
    rng = random.Random(3)
    found = ['', ' ', '\n', 'a', '  leading', 'trailing  ', 'a' * 150, 'ab' * 90 + ' ab', 'x' * 40 + '中' * 30, '▁', '▁a ▁b'] + PIECES
    for i in range(190):
        text = ''.join(rng.choice(PIECES) for _ in range(1 + i // 12))
        at = rng.randrange(len(source) - 40)
        found.append(text + source[at:at + 30] if i % 4 == 0 else text)
    return found


def main():
    samples = texts(''.join(open(name, encoding='utf-8').read(200000) for name in sys.argv[1:]))
    print(json.dumps(samples, separators=(',', ':')))
    for name, tokenizer in [*word_pieces(sys.argv[1:]), *unigrams(sys.argv[1:]), *by_hand()]:
        text = tokenizer if isinstance(tokenizer, dict) else json.loads(tokenizer.to_str())
        tokenizer, ids = Tokenizer.from_str(json.dumps(text)), []
        for sample in samples:
            try:
                ids.append(tokenizer.encode(sample).ids)
            except Exception:  # pylint: disable=broad-exception-caught  (the library raises no other class)
                ids.append(None)
        decoded = [None if found is None else tokenizer.decode(found) for found in ids]
        print(json.dumps({'name': name, 'tokenizer': text, 'ids': ids, 'decoded': decoded}, separators=(',', ':'), ensure_ascii=False))


if __name__ == '__main__':
    main()
