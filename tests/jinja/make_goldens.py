#!/usr/bin/env python3
"""Writes goldens.json: the output of jinja2, set up as transformers renders chat templates, for the templates of this folder.

Needs PyPI's jinja2 3.1.6. Templates: families.jinja and constructs.jinja, split at lines "=== NAME [| JSON variables]". Every
template of families.jinja is rendered with every conversation, with and without add_generation_prompt; those of
constructs.jinja once with each of their variables.
"""
import datetime
import json
import pathlib
import re

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 3, 5, 14, 7, 9)

TOOL = {'type': 'function', 'function': {
    'name': 'weather', 'description': "Tells the weather \"now\" & later; it's <fast>.",
    'parameters': {'type': 'object', 'properties': {
        'city': {'type': 'string', 'description': 'Größe der Stadt: 東京'},
        'days': {'type': 'integer', 'default': 3}, 'unit': {'type': 'string', 'enum': ['c', 'f']}},
        'required': ['city']}}}

CONVERSATIONS = {
    'short': [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Hello!'}],
    'question': [{'role': 'user', 'content': 'Who are you?'}],
    'system': [{'role': 'system', 'content': 'You are terse.\n'}, {'role': 'user', 'content': ' spaces around '},
               {'role': 'assistant', 'content': '\n ok \n'}, {'role': 'user', 'content': 'Again'}],
    'long': [{'role': 'system', 'content': 'S'}] + [
        {'role': 'user' if i % 2 == 0 else 'assistant', 'content': f'turn {i}: ' + 'la ' * (i % 5)} for i in range(14)],
    'unicode': [{'role': 'user', 'content': 'Grüße, 日本 \U0001f600 \u00a0x\u2003'},
                {'role': 'assistant', 'content': '\u3000Ça va? “naïve” \u200d\t'}],
    'empty': [{'role': 'user', 'content': ''}, {'role': 'assistant', 'content': ''}, {'role': 'user', 'content': 'x'}],
    'none': [{'role': 'user', 'content': 'call it'},
             {'role': 'assistant', 'content': None, 'tool_calls': [
                 {'id': 'a1b2c3d4e', 'type': 'function',
                  'function': {'name': 'weather', 'arguments': {'city': 'Köln "am" Rhein', 'days': 2, 'x': [1.5, None, True]}}}]},
             {'role': 'tool', 'name': 'weather', 'tool_call_id': 'a1b2c3d4e', 'content': '{"sun": true}'},
             {'role': 'assistant', 'content': 'Sunny.'}, {'role': 'user', 'content': 'Thanks'}],
    'thinking': [{'role': 'user', 'content': '2+2?'},
                 {'role': 'assistant', 'content': '<think>\nadd <them>\n</think>\n\n4'},
                 {'role': 'user', 'content': '3+3?'},
                 {'role': 'assistant', 'reasoning_content': 'well', 'content': '6'}],
    'parts': [{'role': 'user', 'content': [{'type': 'text', 'text': "it's"}, {'type': 'image'},
                                           {'type': 'text', 'text': 'two "parts"\\'}]},
              {'role': 'assistant', 'content': 'fine'}],
    'assistant first': [{'role': 'assistant', 'content': 'I begin'}, {'role': 'user', 'content': 'no'}],
    'two users': [{'role': 'user', 'content': 'a'}, {'role': 'user', 'content': 'b'}],
    'late system': [{'role': 'user', 'content': 'a'}, {'role': 'system', 'content': 'late'},
                    {'role': 'assistant', 'content': 'b'}],
    'unknown role': [{'role': 'wizard', 'content': 'abracadabra'}],
    'no content': [{'role': 'user'}],
    'nothing': [],
}
VARIABLES = {'bos_token': '<s>', 'eos_token': '</s>', 'unk_token': '<unk>', 'tools': None, 'documents': None,
             'add_generation_prompt': False}


class Raised(jinja2.TemplateError):
    pass


class Marks(jinja2.ext.Extension):
    """The tag `generation`: records the range of its contents."""
    tags = {'generation'}
    sink = None

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method('note'), [], [], body).set_lineno(line)

    def note(self, caller):
        text = caller()
        begin = sum(len(part.encode()) for part in Marks.sink[0])
        Marks.sink[1].append([begin, begin + len(text.encode())])
        return text


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Marks, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters['tojson'] = tojson
    env.globals['raise_exception'] = raise_exception
    env.globals['strftime_now'] = NOW.strftime
    return env


def render(env, source, variables):
    Marks.sink = ([], [])
    try:
        for part in env.from_string(source).generate(**variables):
            Marks.sink[0].append(part)
        result = {'text': ''.join(Marks.sink[0])}
        result['text'].encode()
        if Marks.sink[1]:
            result['generations'] = Marks.sink[1]
        return result
    except Raised as error:
        return {'error': 'raised', 'said': str(error)}
    except Exception as error:  # whatever Python raises is an error in headroom too
        return {'error': 'failed'}


def read_templates(name):
    text = (HERE / name).read_text(encoding='utf-8')
    pieces = re.split(r'^=== (.*)\n', text, flags=re.M)[1:]
    for head, body in zip(pieces[::2], pieces[1::2]):
        title, _, rest = head.partition(' | ')
        yield title.strip(), [json.loads(rest)] if rest else [], body


def main():
    env = environment()
    groups = []
    for name, own, source in read_templates('families.jinja'):
        group = {'name': name, 'template': source, 'cases': []}
        if own:
            group['variables'] = own[0]
        for conversation, messages in CONVERSATIONS.items():
            for prompt in (False, True):
                extra = {'add_generation_prompt': True} if prompt else {}
                variables = {**VARIABLES, **group.get('variables', {}), 'messages': messages, **extra}
                case = {'conversation': conversation}
                if extra:
                    case['variables'] = extra
                group['cases'].append({**case, **render(env, source, variables)})
        groups.append(group)
    for name, own, source in read_templates('constructs.jinja'):
        group = {'name': name, 'template': source, 'cases': []}
        for case in own[0] if own and isinstance(own[0], list) else own or [{}]:
            variables = {**VARIABLES, 'messages': CONVERSATIONS['system'], **case}
            entry = {'conversation': 'system', **({'variables': case} if case else {})}
            group['cases'].append({**entry, **render(env, source, variables)})
        groups.append(group)
    made = {'day': NOW.day, 'variables': VARIABLES, 'conversations': CONVERSATIONS, 'templates': groups}
    (HERE / 'goldens.json').write_text(json.dumps(made, ensure_ascii=False, separators=(',', ':')) + '\n',
                                       encoding='utf-8')
    kinds = [case.get('error', 'text') for group in groups for case in group['cases']]
    print(len(groups), 'templates', {kind: kinds.count(kind) for kind in sorted(set(kinds))})
    for group in groups:
        if all('error' in case for case in group['cases']) and 'fails' not in group['name']:
            print('only errors:', group['name'])


if __name__ == '__main__':
    main()
