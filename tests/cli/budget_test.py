"""Exit code 3: a run that does not fit is refused with the shortfall, the least budget and what would help; nothing is written."""

import json
import re
import unittest

from program import CONFIG, ProgramTest

# Activations, logits and optimizer states are larger than the process's own memory.
WIDE = {**CONFIG, "vocab_size": 20000, "hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 512}
OPTIONS = ["--threads", "1", "--global-batch-size", "8", "--max-seq-length", "512"]


class Budget(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.root / "wide.json").write_text(json.dumps(WIDE))

    def plan(self, *arguments, code=0, model="wide.json"):
        done = self.call("plan", "--model", model, *OPTIONS, "--json", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_too_small(self):
        plan, errors = self.plan("--memory", "60MiB", "--micro-batch-size", "8", code=3)
        self.assertIs(plan["feasible"], False)
        self.assertEqual(plan["budget_bytes"], 60 << 20)
        self.assertEqual(plan["shortfall_bytes"], plan["minimum_bytes"] - plan["budget_bytes"])
        self.assertGreater(plan["shortfall_bytes"], 0)
        for figure in (plan["shortfall_bytes"], plan["minimum_bytes"]):
            self.assertIn(str(figure), errors)
        self.assertIn("minimum_bytes", errors)

    def test_the_cheapest_change_is_named_and_fits(self):
        minimum = self.plan("--memory", "4GiB")[0]["minimum_bytes"]
        pinned = self.plan("--memory", "4GiB", "--micro-batch-size", "8", "--technique", "recompute=off")[0]["minimum_bytes"]
        self.assertLess(minimum, pinned)
        _, errors = self.plan("--memory", str((minimum + pinned) // 2), "--micro-batch-size", "8", "--technique", "recompute=off", code=3)
        self.assertRegex(errors, r"or: .* would need")

    def test_sizes_that_are_named_work_as_printed(self):
        _, errors = self.plan("--memory", self.plan("--memory", "4GiB")[0]["minimum_bytes"] - (1 << 20), code=3)
        for least in re.findall(r"minimum_bytes \d+ \(([^)]+)\)", errors):
            self.assertLessEqual(self.plan("--memory", least)[0]["minimum_bytes"], self.plan("--memory", least)[0]["budget_bytes"])
        options, least = re.search(r"or: (--.*?)(?: \([^)]*\))? would need ([\d.]+ \w+)", errors).groups()
        self.plan("--memory", least, *options.replace("DIR", str(self.root)).split())

    def test_other_settings_are_named_with_what_they_need(self):
        minimum = self.plan("--memory", "4GiB")[0]["minimum_bytes"]
        refused, errors = self.plan("--memory", minimum * 9 // 10, code=3)
        lines = re.findall(r"(?m)^ {15,} *([\d.]+ \w+)  (\S[^\n]*?)(?:: [^\n]*?)?(  \[fits\])?$", errors)
        self.assertTrue(2 <= len(lines) <= 3, errors)
        self.assertRegex(errors, r"\n  least budget +[\d.]+ MiB  with these options\n")
        for least, options, fits in lines:
            self.plan("--memory", least, *options.replace("DIR", str(self.root)).split())
        fitting = [a["options"] for a in refused["alternatives"] if a["fits"]]
        self.assertTrue(fitting)
        self.assertEqual(fitting[:3], [options for _, options, fits in lines if fits])
        self.assertIn("--lora-r 16", [a["options"] for a in refused["alternatives"]])
        self.assertIn(refused["alternatives"][0]["options"], refused["remedy"])

    def test_clipping_is_turned_off_last_and_said_to_be_another_training(self):
        refused, errors = self.plan("--memory", self.plan("--memory", "4GiB")[0]["minimum_bytes"] - (1 << 20), code=3)
        self.assertNotIn("--max-grad-norm", refused["remedy"])
        self.assertIn("--max-grad-norm 0", refused["alternatives"][-1]["options"])
        self.assertIn("not clipped", refused["alternatives"][-1]["effect"])

    def test_a_refusal_is_short(self):
        options = ["plan", "--model", "wide.json", *OPTIONS, "--memory", "30MiB"]
        done = self.call(*options)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertLessEqual(len(done.stderr.splitlines()), 6)
        self.assertIn("plans that no other beats", self.call(*options, "--explain").stdout)

    def test_the_minimum_is_feasible_and_tight(self):
        minimum = self.plan("--memory", "4GiB")[0]["minimum_bytes"]
        self.assertLessEqual(self.plan("--memory", str(minimum))[0]["peak_bytes"], minimum)
        self.assertEqual(self.plan("--memory", str(minimum - 65536), code=3)[0]["feasible"], False)

    def test_train_refuses_and_writes_nothing(self):
        done = self.assert_refused(self.train_arguments("out", "--memory", "2MiB"), 3, "minimum_bytes", str(2 << 20))
        minimum = int(re.search(r"minimum_bytes (\d+)", done.stderr).group(1))
        self.train("least", "--memory", minimum)
        run = json.loads((self.root / "least/run.json").read_text())
        self.assertEqual(run["arena_planned_bytes"], run["arena_measured_bytes"])
        self.assertEqual(run["budget_bytes"], minimum)
        self.assert_refused(["generate", "--model", "model", "--prompt", "a", "--max-new-tokens", "8", "--memory", "2MiB", "--threads", "1"], 3, "minimum_bytes")
        self.assert_refused(["evaluate", "--model", "model", "--data", "data.txt", "--memory", "2MiB", "--threads", "1"], 3, "minimum_bytes")

    def test_above_the_machine(self):
        for arguments in (self.train_arguments("out", "--memory", "900TiB"), ["generate", "--model", "model", "--prompt", "a", "--max-new-tokens", "8", "--memory", "900TiB", "--threads", "1"],
                          ["evaluate", "--model", "model", "--data", "data.txt", "--memory", "900TiB", "--threads", "1"]):
            self.assert_refused(arguments, 3, "900 TiB", "--force")
        self.train("forced", "--memory", "900TiB", "--force")
        done = self.call("plan", "--model", "model", "--memory", "900TiB", "--threads", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("more than this machine can give", done.stderr)

    def test_plan_figures_add_up(self):
        plan, _ = self.plan("--memory", "4GiB")
        self.assertEqual(sum(plan["breakdown"].values()), plan["arena_bytes"])
        self.assertEqual(plan["peak_bytes"], plan["arena_bytes"] + plan["process_bytes"])
        self.assertEqual(plan["shortfall_bytes"], 0)
        self.assertEqual({"train_step", "evaluate", "save"} - {phase["name"] for phase in plan["phases"]}, set())
        self.assertEqual(plan["phases"][0]["name"], "prepare")
        self.assertEqual(max(phase["peak_bytes"] for phase in plan["phases"]), plan["peak_bytes"])

    def least(self, *options):
        done = self.call("plan", "--json", *([] if "--model" in options else ["--model", "model"]), "--threads", "1", "--max-seq-length", "32", "--global-batch-size", "4", "--memory", "4GiB", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["minimum_bytes"]

    def test_a_row_of_any_length_is_prepared_within_the_least_budget(self):
        parts = {"text": ('{"text":"short"}', '{"text":"', "some words, ", 12, '"}'),
                 "ids": ('{"input_ids":[1,2],"labels":[1,2]}', '{"labels":[1,2],"input_ids":[1,2],"other":[5', ",5", 2, "]}")}
        for name, (short, begin, piece, size, end) in parts.items():
            with open(self.root / "long.jsonl", "w", encoding="ascii") as file:  # written in pieces: a child's peak starts at its parent's
                file.write(f"{short}\n{begin}")
                for _ in range(((16 << 20) - 65536) // (1000 * size)):
                    file.write(1000 * piece)
                file.write(f"{end}\n{short}\n")
            for packing in ("false", "true"):
                least, output = self.least("--packing", packing), f"{name}-{packing}"
                self.train(output, "--memory", least, "--packing", packing, data="long.jsonl")
                self.assertLessEqual(json.loads((self.root / output / "run.json").read_text())["process_peak_rss_bytes"], least)

    def test_a_conversation_that_needs_more_than_the_budget_is_refused(self):
        model = self.fresh_model("chatty")
        (model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}a:{% endif %}")
        row = lambda bytes: json.dumps({"messages": [{"role": "assistant", "content": "y"}, {"role": "user", "content": "x" * bytes}]}) + "\n"
        (self.root / "chats.jsonl").write_text(row(10) + row(100_000))
        least = self.least("--model", "chatty")
        self.train("chats", "--memory", least, model="chatty", data="chats.jsonl")
        self.assertLessEqual(json.loads((self.root / "chats/run.json").read_text())["process_peak_rss_bytes"], least)
        (self.root / "chats.jsonl").write_text(row(10) + row(3 << 20))
        self.assert_refused(self.train_arguments("out", "--memory", least, model="chatty", data="chats.jsonl"), 2, "chats.jsonl:2: ", "bytes", "--memory")

    def test_the_default_budget_is_printed(self):
        done = self.call("train", "--model", "model", "--data", "data.txt", "--output-dir", "default", "--threads", "1", "--max-seq-length", "32", "--max-steps", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"peak .* of .*GiB|peak .* of .*MiB")


if __name__ == "__main__":
    unittest.main()
