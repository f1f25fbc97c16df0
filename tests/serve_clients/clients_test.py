#!/usr/bin/env python3
"""PyPI's clients with `headroom serve`: openai, sync and async, and anthropic.

Usage: clients_test.py PROGRAM MODEL     (with a Python that has openai and anthropic; MODEL: a folder with weights)
The model gets a chat template if it does not have one. Prints N passed, N failed."""
import asyncio
import json
import os
import shutil
import sys
import tempfile

import anthropic
import openai

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from served import Server  # noqa: E402

TEMPLATE = ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant:{% endif %}")
SCHEMA = {'type': 'object', 'properties': {'age': {'type': 'integer', 'minimum': 0, 'maximum': 9}}, 'required': ['age'], 'additionalProperties': False}
TOOL = {'name': 'look', 'description': 'looks', 'parameters': SCHEMA}
WRITTEN = 'So.\n<tool_call>{"name": "look", "arguments": {"age": 7}}</tool_call>'
PROMPT = 'Once upon a time'
HELLO = [{'role': 'user', 'content': 'Hello'}]
failed, passed = [], 0


def check(name, holds, figure=''):
    global passed
    print(('ok   ' if holds else 'FAIL ') + name, '' if holds else figure)
    if holds:
        passed += 1
    else:
        failed.append(name)


def refused(error, call):
    try:
        return False, call()
    except error as told:
        return True, told


def with_template(model, folder):
    copy = os.path.join(folder, 'stories')
    shutil.copytree(model, copy)
    path = os.path.join(copy, 'tokenizer_config.json')
    with open(path, encoding='utf-8') as text:
        config = json.load(text)
    config.setdefault('chat_template', TEMPLATE)
    with open(path, 'w', encoding='utf-8') as out:
        json.dump(config, out)
    return copy


def check_completions(client):
    model = client.models.list().data[0].id
    check('models', client.models.retrieve(model).id == model == 'stories')
    options = {'model': model, 'prompt': PROMPT, 'max_tokens': 12, 'temperature': 0}
    whole = client.completions.create(**options)
    check('completion', whole.usage.completion_tokens == 12 and whole.choices[0].finish_reason == 'length', whole)
    pieces = list(client.completions.create(**options, stream=True, stream_options={'include_usage': True}))
    check('streamed completion', ''.join(c.text for p in pieces for c in p.choices) == whole.choices[0].text and pieces[-1].usage.completion_tokens == 12)
    several = client.completions.create(**options | {'prompt': [PROMPT, 'The dog'], 'logprobs': 2})
    check('several prompts with log-probabilities', len(several.choices) == 2 and several.choices[0].text == whole.choices[0].text and
          len(several.choices[0].logprobs.token_logprobs) == 12)
    more = client.completions.create(**options, extra_body={'ignore_eos': True, 'min_tokens': 4, 'stop_token_ids': [2]})
    check("vLLM's fields", more.usage.completion_tokens == 12)
    told, error = refused(openai.BadRequestError, lambda: client.completions.create(**options | {'max_tokens': 10 ** 6}))
    check('what cannot fit', told and error.code == 'context_length_exceeded', error)
    told, error = refused(openai.NotFoundError, lambda: client.completions.create(**options | {'model': 'other'}))
    check('another model', told, error)
    return whole.choices[0].text


def check_chats(client):
    options = {'model': 'stories', 'messages': HELLO, 'max_tokens': 10, 'temperature': 0}
    whole = client.chat.completions.create(**options, logprobs=True, top_logprobs=2)
    check('chat', whole.choices[0].message.role == 'assistant' and len(whole.choices[0].logprobs.content) == whole.usage.completion_tokens, whole)
    text = ''.join(c.delta.content or '' for p in client.chat.completions.create(**options, stream=True) for c in p.choices)
    check('streamed chat', text == whole.choices[0].message.content, text)
    two = client.chat.completions.create(**options | {'temperature': 1, 'n': 2, 'seed': 5})
    check('two choices', len(two.choices) == 2)
    shaped = client.chat.completions.create(**options | {'max_tokens': 40}, response_format={'type': 'json_schema', 'json_schema': {'name': 'a', 'schema': SCHEMA}})
    check('a schema', set(json.loads(shaped.choices[0].message.content)) == {'age'}, shaped)
    tools = [{'type': 'function', 'function': TOOL}]
    called = client.chat.completions.create(**options | {'max_tokens': 60}, tools=tools, tool_choice='required')
    call = called.choices[0].message.tool_calls[0].function
    check('a call', call.name == 'look' and set(json.loads(call.arguments)) == {'age'} and called.choices[0].finish_reason == 'tool_calls', called)
    with client.chat.completions.stream(**options | {'max_tokens': 60}, tools=tools, tool_choice='required') as stream:
        final = stream.get_final_completion()
    check('a streamed call', json.loads(final.choices[0].message.tool_calls[0].function.arguments) == json.loads(call.arguments), final)
    # A call by the model itself: its possible text is given, but not that it is a call.
    with client.chat.completions.stream(**options | {'max_tokens': 80}, tools=tools, extra_body={'guided_choice': [WRITTEN]}) as stream:
        parts = sum(event.type == 'tool_calls.function.arguments.delta' for event in stream)
        choice = stream.get_final_completion().choices[0]
    check("a streamed call of the model's own", json.loads(choice.message.tool_calls[0].function.arguments) == {'age': 7} and choice.message.content.strip() == 'So.' and
          choice.finish_reason == 'tool_calls' and parts > 1, (choice, parts))


def check_responses(client):
    options = {'model': 'stories', 'input': 'Hello', 'max_output_tokens': 10, 'temperature': 0}
    whole = client.responses.create(**options)
    check('response', len(whole.output_text) > 0 and whole.usage.output_tokens <= 10, whole)
    with client.responses.stream(**options) as stream:
        events = list(stream)
    check('streamed response', events[-1].type == 'response.incomplete' and events[-1].response.output_text == whole.output_text and
          events[0].type == 'response.created', [event.type for event in events])
    check('counted input', client.responses.input_tokens.count(model='stories', input='Hello').input_tokens == whole.usage.input_tokens)
    tool = {'type': 'function', **TOOL, 'strict': True}
    called = client.responses.create(**options | {'max_output_tokens': 60}, tools=[tool], tool_choice='required')
    check('a call in a response', called.output[-1].type == 'function_call' and set(json.loads(called.output[-1].arguments)) == {'age'}, called)


def check_embeddings(client):
    both = client.embeddings.create(model='stories', input=[PROMPT, 'The dog'])
    one = client.embeddings.create(model='stories', input='The dog', encoding_format='float')
    check('embeddings', len(both.data) == 2 and max(abs(a - b) for a, b in zip(both.data[1].embedding, one.data[0].embedding)) < 1e-7 and abs(sum(x * x for x in one.data[0].embedding) - 1) < 1e-5)


def check_messages(client):
    options = {'model': 'stories', 'messages': HELLO, 'max_tokens': 10, 'extra_body': {'temperature': 0}, 'system': 'Be brief.'}
    whole = client.messages.create(**options)
    check('message', whole.content[0].type == 'text' and whole.usage.output_tokens <= 10, whole)
    with client.messages.stream(**options) as stream:
        text = ''.join(stream.text_stream)
    check('streamed message', text == whole.content[0].text, text)
    tools = [{'name': 'look', 'input_schema': SCHEMA}]
    called = client.messages.create(**options | {'max_tokens': 60}, tools=tools, tool_choice={'type': 'any'})
    check('a call in a message', called.content[-1].type == 'tool_use' and set(called.content[-1].input) == {'age'} and called.stop_reason == 'tool_use', called)
    check('counted tokens', client.messages.count_tokens(model='stories', messages=HELLO, system='Be brief.').input_tokens == whole.usage.input_tokens)


async def check_at_once(url, expected):
    async with openai.AsyncOpenAI(base_url=url + '/v1', api_key='secret') as client:
        answers = await asyncio.gather(*(client.completions.create(model='stories', prompt=PROMPT, max_tokens=12, temperature=0) for _ in range(40)))
        check('40 at once', {answer.choices[0].text for answer in answers} == {expected})
        text = ''
        async for piece in await client.completions.create(model='stories', prompt=PROMPT, max_tokens=12, temperature=0, stream=True):
            text += ''.join(choice.text for choice in piece.choices)
        check('an asynchronous stream', text == expected)


def main():
    program, model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, with_template(model, folder), folder, '--memory', '128MiB', '--api-key', 'secret', '--max-model-len', '512')
        try:
            client = openai.OpenAI(base_url=server.url + '/v1', api_key='secret', max_retries=0)
            text = check_completions(client)
            check_chats(client)
            check_responses(client)
            check_embeddings(client)
            check('a client whose URL ends before /v1', openai.OpenAI(base_url=server.url, api_key='secret').completions.create(
                model='stories', prompt=PROMPT, max_tokens=12, temperature=0).choices[0].text == text)
            told, error = refused(openai.AuthenticationError, openai.OpenAI(base_url=server.url + '/v1', api_key='wrong').models.list)
            check('a wrong key', told, error)
            asyncio.run(check_at_once(server.url, text))
            check_messages(anthropic.Anthropic(base_url=server.url, api_key='secret', max_retries=0))
        finally:
            server.stop()
    print(f'{passed} passed, {len(failed)} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
