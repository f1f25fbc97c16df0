#!/usr/bin/env python3
"""Writes chat_goldens.json: ids and labels of conversations, computed with jinja2 and (except for the byte tokenizer) PyPI's
tokenizers on those of tests/data_files.

The assistant's turns are the {% generation %} blocks, or what rendering messages[:i + 1] adds to rendering messages[:i] with
add_generation_prompt. A token is scored if it contains a character of a turn.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'jinja'))
import make_goldens  # noqa: E402

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
INST = ("{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
        "{% elif m.role == 'assistant' %} {{ m.content }}{{ eos_token }}{% else %}{{ raise_exception('no ' + m.role) }}"
        "{% endif %}{% endfor %}")
MARKED = ("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}"
          "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}")
FORGETS = ("{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' and not loop.last %}{{ m.content[-1] }}"
           "{% else %}{{ m.content }}{% endif %};{% endfor %}{{ 'assistant:' if add_generation_prompt }}")
THINKS = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ 'assistant:<think>' if add_generation_prompt }}"

ROWS = [
    {'messages': [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Hello!'}]},
    {'messages': [{'role': 'system', 'content': 'Be brief "now".'}, {'role': 'user', 'content': 'Größe?\n東京 \U0001f600'},
                  {'role': 'assistant', 'content': 'Ça va — ok.'}, {'role': 'user', 'content': 'x'},
                  {'role': 'assistant', 'content': '  two  spaces\n'}]},
    {'messages': [{'role': 'user', 'content': 'only me'}]},
    {'messages': [{'role': 'user', 'content': ''}, {'role': 'assistant', 'content': ''}]},
    {'messages': [{'role': 'assistant', 'content': 'first'}, {'role': 'user', 'content': 'u'},
                  {'role': 'assistant', 'content': 'second, longer answer'}], 'tools': [{'name': 'f', 'n': [1, 2.5, None]}]},
]
TOKENS = {'bytes': ('<s>', '</s>'), 'qwen2.5': (None, '<|im_end|>'), 'llama2': ('<s>', '</s>'),
          'gpt2': ('<|endoftext|>', '<|endoftext|>')}


class ByteTokenizer:
    """ids are bytes; <s> and </s> are 256 and 257. Returns the characters of every token."""

    def encode(self, text):
        ids, holds = [], []
        at = 0
        while at < len(text):
            for token, id_ in (('<s>', 256), ('</s>', 257)):
                if text.startswith(token, at):
                    ids.append(id_)
                    holds.append((at, at + len(token)))
                    at += len(token)
                    break
            else:
                for byte in text[at].encode():
                    ids.append(byte)
                    holds.append((at, at + 1))
                at += 1
        return ids, holds


class FastTokenizer:
    def __init__(self, name):
        import tokenizers
        self.made = tokenizers.Tokenizer.from_file(str(HERE.parent / 'data_files/tokenizers' / name / 'tokenizer.json'))

    def encode(self, text):
        encoding = self.made.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets


def spans_of(env, template, variables):
    """(text, character ranges of the assistant), or None when the ranges are unknown."""
    whole = make_goldens.render(env, template, variables)
    if 'error' in whole:
        return None
    text = whole['text']
    if '{% generation' in template:
        data = text.encode()
        return text, [(len(data[:a].decode()), len(data[:b].decode())) for a, b in whole.get('generations', [])]
    spans = []
    messages = variables['messages']
    for i, message in enumerate(messages):
        if message['role'] != 'assistant':
            continue
        before = make_goldens.render(env, template, {**variables, 'messages': messages[:i], 'add_generation_prompt': True})
        after = make_goldens.render(env, template, {**variables, 'messages': messages[:i + 1]})
        if 'error' in before or 'error' in after:
            return None
        if not after['text'].startswith(before['text']) or not text.startswith(after['text']):
            return None
        spans.append((len(before['text']), len(after['text'])))
    return text, spans


def main():
    env = make_goldens.environment()
    cases = []
    for name, (bos, eos) in TOKENS.items():
        tokenizer = ByteTokenizer() if name == 'bytes' else FastTokenizer(name)
        for template in (CHATML, INST, MARKED, FORGETS, THINKS):
            special = {key: value for key, value in (('bos_token', bos), ('eos_token', eos)) if value}
            case = {'tokenizer': name, 'config': {**special, 'chat_template': template}, 'rows': []}
            for row in ROWS:
                variables = {'tools': None, 'documents': None, 'add_generation_prompt': False, **special, **row}
                found = spans_of(env, template, variables)
                if found is None:
                    case['rows'].append({'row': row, 'error': True})
                    continue
                text, spans = found
                ids, holds = tokenizer.encode(text)
                scored = [any(max(a, first) < min(b, last) for first, last in spans) for a, b in holds]
                case['rows'].append({'row': row, 'ids': ids,
                                     'labels': [i if s else -100 for i, s in zip(ids, scored)]})
            cases.append(case)
    (HERE / 'chat_goldens.json').write_text(json.dumps(cases, ensure_ascii=False, separators=(',', ':')) + '\n',
                                            encoding='utf-8')
    rows = [row for case in cases for row in case['rows']]
    print(len(rows), 'rows,', sum('error' in row for row in rows), 'errors')


if __name__ == '__main__':
    main()
