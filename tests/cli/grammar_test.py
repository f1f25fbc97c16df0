"""generate with a grammar: JSON schemas, JSON objects, regular expressions, choices, EBNF; refusals; memory."""

import json
import re
import unittest

from program import ProgramTest, environment

import child_peak

OPTIONS = ["--memory", "256MiB", "--threads", "1", "--max-new-tokens", "48"]
SCHEMA = {"type": "object", "required": ["kind", "n"], "additionalProperties": False,
          "properties": {"kind": {"enum": ["cat", "dog"]}, "n": {"type": "integer", "minimum": 3, "maximum": 12},
                         "tag": {"type": "string", "maxLength": 4}}}
EBNF = 'root ::= word ("-" word){2}  # three words\nword ::= [a-z] [a-z]?\n'


class Grammar(ProgramTest):
    def generate(self, *arguments):
        done = self.call("generate", "--model", "model", *OPTIONS, "--prompt", "a", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def texts(self, *arguments):
        """The texts of several seeds and of greedy decoding, each ended by the grammar."""
        found = []
        for more in (["--temperature", "0"], *(["--seed", seed] for seed in (1, 2, 3)), ["--seed", 4, "--top-k", 5], ["--seed", 5, "--top-p", "0.5"]):
            result = json.loads(self.generate("--json", *arguments, *more).stdout)
            self.assertEqual(result["finish_reason"], "stop", result)
            found.append(result["text"])
        return found

    def test_a_schema_from_a_file_and_as_text(self):
        (self.root / "schema.json").write_text(json.dumps(SCHEMA))
        texts = self.texts("--json-schema", "schema.json")
        for text in texts:
            value = json.loads(text)
            self.assertIn(value["kind"], ("cat", "dog"))
            self.assertTrue(3 <= value["n"] <= 12)
            self.assertLessEqual(len(value.get("tag", "")), 4)
            self.assertLessEqual(set(value), {"kind", "n", "tag"})
        self.assertEqual(self.texts("--json-schema", json.dumps(SCHEMA)), texts)

    def test_a_json_object(self):
        result = json.loads(self.generate("--json", "--json-object", "--max-new-tokens", "50", "--seed", 7).stdout)
        self.assertTrue(result["text"].startswith("{"))
        if result["finish_reason"] == "stop":
            json.loads(result["text"])

    def test_a_regular_expression(self):
        for text in self.texts("--regex", r"[A-Z][a-z]{2,4}: (yes|no)\.?"):
            self.assertRegex(text, r"\A[A-Z][a-z]{2,4}: (yes|no)\.?\Z")
        self.assertEqual(self.texts("--regex", "")[0], "")

    def test_choices(self):
        texts = self.texts("--choice", "yes", "--choice", "no", "--choice", "it depends")
        self.assertLessEqual(set(texts), {"yes", "no", "it depends"})
        self.assertGreater(len(set(texts)), 1)

    def test_ebnf(self):
        (self.root / "words.gbnf").write_text(EBNF)
        for text in self.texts("--grammar", "words.gbnf"):
            self.assertRegex(text, r"\A[a-z]{1,2}(-[a-z]{1,2}){2}\Z")

    def test_the_likeliest_token_that_is_allowed_is_taken(self):
        plain = json.loads(self.generate("--json", "--temperature", "0").stdout)["ids"]
        ascii_only = next((n for n, token in enumerate(plain) if token >= 128), len(plain))
        (self.root / "any.gbnf").write_text("root ::= .*\n")
        allowed = json.loads(self.generate("--json", "--temperature", "0", "--grammar", "any.gbnf").stdout)["ids"]
        self.assertEqual(allowed[:ascii_only], plain[:ascii_only])

    def test_the_number_of_tokens_still_ends_it(self):
        result = json.loads(self.generate("--json", "--regex", "[a-z]{40}", "--max-new-tokens", "10").stdout)
        self.assertEqual((len(result["ids"]), result["finish_reason"]), (10, "length"))

    def test_what_is_not_held_is_said(self):
        schema = json.dumps({"type": "string", "format": "uri", "maxLength": 3})
        self.assertIn('--json-schema: the whole schema: format "uri" is not enforced', self.generate("--json-schema", schema).stderr)

    def test_refusals_name_the_place(self):
        command = ["generate", "--model", "model", *OPTIONS, "--prompt", "a"]
        files = {"left.gbnf": 'root ::= root "a" | "b"\n', "undefined.gbnf": 'root ::= "a"\n\nx ::= y\n', "broken.json": '{"type":'}
        for name, text in files.items():
            (self.root / name).write_text(text)
        cases = [
            (["--regex", "a", "--json-object"], "--json-object and --regex cannot be combined"),
            (["--choice", "a", "--grammar", "left.gbnf"], "--choice and --grammar cannot be combined"),
            (["--regex", "ab(?=c)"], "--regex: byte 4"),
            (["--regex", "((a{1000}){1000}){1000}"], "--regex: the grammar has more than 65536 states"),
            (["--grammar", "left.gbnf"], "left.gbnf: line 1: rule 'root': it calls itself"),
            (["--grammar", "undefined.gbnf"], "undefined.gbnf: line 3: rule 'y' is not defined"),
            (["--grammar", "absent.gbnf"], "absent.gbnf"),
            (["--json-schema", "absent.json"], "absent.json"),
            (["--json-schema", "broken.json"], "broken.json: malformed JSON"),
            (["--json-schema", '{"$ref":"#"}'], "--json-schema: the whole schema: no text matches"),
            (["--json-schema", '{"type":"array","maxItems":1000000}'], "more than 65536 states"),
            (["--json-schema", '{"properties":{"a":{"uniqueItems":true}}}'], '/properties/a: the keyword "uniqueItems"'),
            (["--choice", ""], "a choice is empty"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments):
                self.assert_refused([*command, *arguments], 2, message)

    def test_the_plan_tells_what_it_holds(self):
        self.assertRegex(self.generate("--choice", "yes").stderr, r"peak planned [0-9.]+ MiB, grammar and masks [0-9.]+ MiB")
        self.assertNotIn("grammar", self.generate().stderr)

    def test_what_the_grammar_holds_is_planned(self):
        """The least budget named in a refusal is enough, and larger than without a grammar."""
        def run(memory, more):
            return child_peak.run([self.program, "generate", "--model", "model", "--memory", memory, "--threads", 1, "--prompt", "a",
                                   "--max-new-tokens", 40, "--quiet", *more], cwd=self.root, env=environment(self.root))

        def least(more):
            memory = 1 << 20
            for _ in range(4):
                code, _, _, text = run(memory, more)
                if code != 3:
                    return memory
                memory = int(re.search(r"minimum_bytes (\d+)", text).group(1))
            self.fail("a budget that a refusal names is refused again and again")

        plain = least([])
        nested = json.dumps({"$defs": {"n": {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/n"}}, "s": True}}},
                             "$ref": "#/$defs/n"})
        for more in (["--json-object"], ["--json-schema", nested], ["--regex", "(a|b|[c-z]{3}){1,200}"]):
            with self.subTest(more=more):
                memory = least(more)
                self.assertGreater(memory, plain)
                code, peak, _, text = run(memory, more)
                self.assertEqual(code, 0, text)
                self.assertLessEqual(peak, memory)


if __name__ == "__main__":
    unittest.main()
