"""serve: options of vLLM that are explained or refused, chat templates and origins. No server starts: 1 MiB is refused after parsing."""

import os
import unittest

from program import ProgramTest


class ServeOptions(ProgramTest):
    def serve(self, *more):
        return self.call("serve", "--model", "model", "--memory", "1MiB", "--threads", "1", *more)

    def test_what_has_no_meaning_is_explained(self):
        done = self.serve("--trust-remote-code", "--swap-space", "4", "--tensor-parallel-size", "1", "--dtype", "auto",
                          "--enforce-eager", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
        self.assertEqual(done.returncode, 3, done.stderr)
        for name in ("--trust-remote-code", "--swap-space", "--tensor-parallel-size", "--dtype", "--enforce-eager",
                     "--enable-auto-tool-choice", "--tool-call-parser"):
            self.assertIn(f"{name}: ", done.stderr)
        self.assertNotIn("--swap-space", self.serve("--swap-space", "4", "--quiet").stderr)

    def test_what_is_not_done_is_refused_with_a_remedy(self):
        for given, remedy in ((("--tensor-parallel-size", "2"), "one device serves"),
                              (("--dtype", "bfloat16"), "bf16-true"),
                              (("--no-enable-prefix-caching",), "leave it out"),
                              (("--quantization", "awq"), "quantize-weights"),
                              (("--tool-call-parser", "pythonic"), "Hermes"),
                              (("--allowed-origins", '["https://a.example/"]'), "without a path"),
                              (("--allowed-origins", '["a.example"]'), "scheme://host"),
                              (("--allowed-origins", '[]'), "scheme://host"),
                              (("--allowed-origins", '[3]'), "scheme://host")):
            done = self.serve(*given)
            self.assertEqual(done.returncode, 2, given)
            for word in given:
                self.assertIn(word.strip('[]"'), done.stderr)
            self.assertIn(remedy, done.stderr)

    def test_origins_are_read(self):
        for given in ("*", '["*"]', "https://a.example", '["https://a.example:8443", "http://[::1]:80"]'):
            self.assertEqual(self.serve("--allowed-origins", given).returncode, 3, given)

    def test_a_chat_template_is_read_before_anything_is_planned(self):
        path = os.path.join(self.root, "t.jinja")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{% for m in messages %}{{ m.content }}{% endfor %}")
        for given in (path, "{{ messages[0].content }}"):
            self.assertEqual(self.serve("--chat-template", given).returncode, 3, given)
        missing = self.serve("--chat-template", "none.jinja")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("none.jinja", missing.stderr)
        self.assertIn("--chat-template", self.serve("--chat-template", "{% for %}").stderr)


if __name__ == "__main__":
    unittest.main()
