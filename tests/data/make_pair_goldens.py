#!/usr/bin/env python3
"""Writes pair_goldens.json: pairs of texts, joined to one sequence by PyPI's `tokenizers`, whole and cut.

Needs tokenizers. Usage: make_pair_goldens.py [FILE]
"""
import json
import os
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'the', 'cat', 'sat', 'on', 'a', 'mat', 'dog', '##s', 'ran', 'far']
PAIRS = [('the cat sat', 'a dog ran far'), ('cats', 'the dogs sat on the mat on the mat'), ('', 'the cat'),
         ('the cat sat on the mat', ''), ('the dog ran far the dog ran far a', 'the cat sat on a mat'),
         ('a cat', 'a dog'), ('zebra cats on mats', 'the zebra')]
PROCESSORS = {
    'bert': processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2)),
    'roberta': processors.RobertaProcessing(('[SEP]', 3), ('[CLS]', 2)),
    'template': processors.TemplateProcessing(single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1',
                                              special_tokens=[('[CLS]', 2), ('[SEP]', 3)]),
    'two_types_between': processors.TemplateProcessing(
        single='$A [SEP]', pair='$A [SEP] [SEP]:1 $B:1 [CLS]:1', special_tokens=[('[CLS]', 2), ('[SEP]', 3)]),
}
LENGTHS = (64, 12, 9, 8, 7, 6)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), 'pair_goldens.json')
    result = {'tokenizers': tokenizers.__version__, 'pairs': PAIRS, 'cases': []}
    for name, processor in PROCESSORS.items():
        tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token='[UNK]'))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens(WORDS[:4])
        tokenizer.post_processor = processor
        case = {'name': name, 'tokenizer': json.loads(tokenizer.to_str()), 'lengths': []}
        for length in LENGTHS:
            tokenizer.enable_truncation(length)  # longest_first
            encoded = [tokenizer.encode(a, b) for a, b in PAIRS]
            case['lengths'].append({'max': length, 'ids': [e.ids for e in encoded], 'types': [e.type_ids for e in encoded]})
        result['cases'].append(case)
    with open(path, 'w', encoding='utf-8') as out:
        json.dump(result, out, separators=(',', ':'))
        out.write('\n')


if __name__ == '__main__':
    main()
