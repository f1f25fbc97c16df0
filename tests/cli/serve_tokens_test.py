"""serve: the tokens that a request is counted as are those that its answer begins from."""

import json
import unittest

from program import ProgramTest
from served import Server

TEMPLATE = "{% for m in messages %}{{ m.role }}{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments.a }}{% endif %}{% endfor %}"
CHAT = [
    {"role": "developer", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 12345}'}}]},
    {"role": "tool", "tool_call_id": "1", "content": "c"},
]
RENDERED = "systemsusera\nbassistant12345toolc"
INPUT = [{"role": "developer", "content": "s"}, {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}]


class ServeTokensTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.program, cls.root / "model", cls.root, "--memory", "128MiB", "--chat-template", TEMPLATE)
        cls.addClassCleanup(cls.server.stop)

    def answer(self, path, **body):
        status, text = self.server.post(path, **body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_a_chat_is_tokenized_as_it_is_answered(self):
        counted = self.answer("/tokenize", messages=CHAT)
        self.assertEqual(self.answer("/detokenize", tokens=counted["tokens"])["prompt"], RENDERED)
        for path in ("/chat/completions", "/v1/chat/completions"):
            self.assertEqual(self.answer(path, messages=CHAT, max_tokens=2)["usage"]["prompt_tokens"], counted["count"])
        for messages in ([], "hi", [{"role": "user"}], [{"role": "user", "content": [{"type": "image_url"}]}]):
            self.assertEqual(self.server.post("/tokenize", messages=messages)[0], 400, messages)

    def test_the_input_of_a_response_is_counted(self):
        used = self.answer("/v1/responses", input=INPUT, max_output_tokens=2)["usage"]["input_tokens"]
        for path in ("/v1/responses/input_tokens", "/responses/input_tokens"):
            self.assertEqual(self.answer(path, input=INPUT), {"object": "response.input_tokens", "input_tokens": used})
        self.assertEqual(used, len("systemsusera\nb"))
        self.assertEqual(self.server.post("/v1/responses/input_tokens", model="model")[0], 400)
        self.assertEqual(self.server.get("/v1/responses/input_tokens")[0], 405)

    def test_texts_by_the_names_of_vllm_and_llama_cpp(self):
        bare = self.answer("/tokenize", prompt="ab", add_special_tokens=False)["tokens"]
        begun = self.answer("/tokenize", prompt="ab")["tokens"]
        self.assertEqual(self.answer("/tokenize", content="ab")["tokens"], bare)
        self.assertEqual(self.answer("/tokenize", content="ab", add_special=True)["tokens"], begun)
        self.assertEqual(self.server.post("/tokenize", model="model")[0], 400)


if __name__ == "__main__":
    unittest.main()
