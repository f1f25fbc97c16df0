"""Questions before training: each answer agrees with what `plan` says for the options that the answer names."""

import html
import json
import shlex
import shutil
import unittest
from pathlib import Path

from program import CONFIG, ProgramTest

OPTIONS = ["--threads", "1", "--profile", "cpu-avx2", "--max-seq-length", "64", "--global-batch-size", "4"]


class PlanQuestions(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wide = {**CONFIG, "vocab_size": 2000, "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 6}
        (cls.root / "a model.json").write_text(json.dumps(wide))

    def ask(self, *arguments, code=0):
        done = self.call("plan", "--model", "a model.json", *OPTIONS, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def answer(self, *arguments):
        return json.loads(self.ask(*arguments, "--json").stdout)

    def planned(self, command, *more, code=0):
        """The JSON of a command that an answer contains."""
        program, verb, *options = shlex.split(command)
        self.assertEqual((program, verb), ("headroom", "plan"))
        done = self.call("plan", *options, *more, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def taken(self, plan):
        return {technique["name"]: technique["value"] for technique in plan["techniques"]}

    def assert_same_techniques(self, answer, plan):
        values = self.taken(plan)
        self.assertEqual({name: values[name] for name in answer}, answer)

    def test_least_budgets_are_feasible_and_tight(self):
        levels = self.answer("--minimum")["levels"]
        self.assertEqual([level["allow"] for level in levels], ["exact", "reassociating", "data-order", "lossy"])
        for level, before in zip(levels, [None] + levels):
            least = level["minimum_bytes"]
            self.assertLessEqual(least, before["minimum_bytes"] if before else least)
            plan = self.planned(level["command"])
            self.assertTrue(plan["feasible"])
            self.assertEqual((plan["budget_bytes"], plan["minimum_bytes"]), (least, least))
            self.assertEqual((plan["tiers"]["host"]["peak_bytes"], plan["tiers"]["disk"]["peak_bytes"]), (level["host_bytes"], level["disk_bytes"]))
            self.assertEqual(plan["predicted_step_seconds"], level["step_seconds"])
            self.assert_same_techniques(level["techniques"], plan)
            self.planned(level["command"], "--memory", least - 4096, code=3)
        self.assertLess(levels[-1]["minimum_bytes"], levels[0]["minimum_bytes"])

    def test_the_command_of_a_least_budget_trains(self):
        levels = json.loads(self.call("plan", "--model", "model", "--data", "data.txt", "--threads", 1, "--max-seq-length", 32, "--max-steps", 1,
                                      "--allow", "data-order", "--minimum", "--json").stdout)["levels"]
        command = shlex.split(levels[0]["command"])
        self.assertEqual(command[:2], ["headroom", "train"])
        self.assertNotIn("--allow", command)
        done = self.call(*command[1:])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((self.root / "run/run.json").read_text())["budget_bytes"], levels[0]["minimum_bytes"])

    def test_the_table_of_least_budgets_fits_a_terminal(self):
        lines = self.ask("--minimum").stdout.splitlines()
        figures = [line for line in lines if not line.startswith("  ")]
        self.assertEqual(len(figures), 5)
        self.assertLessEqual(max(map(len, figures)), 80)
        distinct = {level["minimum_bytes"] for level in self.answer("--minimum")["levels"]}
        self.assertEqual(sum(line.startswith("  headroom plan --model 'a model.json' ") for line in lines), len(distinct))

    def test_the_difference_of_two_plans(self):
        for name, memory in (("small.json", "50MiB"), ("large.json", "1GiB")):
            (self.root / name).write_text(self.ask("--memory", memory, "--json").stdout)
        small, large = (json.loads((self.root / name).read_text()) for name in ("small.json", "large.json"))
        diff = json.loads(self.call("plan", "diff", "small.json", "large.json", "--json").stdout)
        self.assertEqual(diff["peak_bytes"], [small["peak_bytes"], large["peak_bytes"]])
        self.assertEqual(diff["step_seconds"], [small["predicted_step_seconds"], large["predicted_step_seconds"]])
        self.assertEqual(diff["breakdown"], {name: [bytes, large["breakdown"][name]] for name, bytes in small["breakdown"].items()})
        a, b = self.taken(small), self.taken(large)
        self.assertEqual({row["name"]: (row["a"], row["b"]) for row in diff["techniques"]}, {name: (a[name], b[name]) for name in a if a[name] != b[name]})
        sizes = [abs(row["bytes"][1] - row["bytes"][0]) for row in diff["tensors"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertGreater(sizes[-1], 0)
        text = self.call("plan", "diff", "small.json", "large.json").stdout
        self.assertIn("techniques that differ", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_what_is_not_a_plan_is_refused(self):
        self.train("trained")
        self.assertEqual(self.call("plan", "diff", "trained/plan.json", "trained/checkpoint-3/plan.json").returncode, 0)
        self.assert_refused(["plan", "diff", "trained/plan.json", "trained/run.json"], 2, 'trained/run.json: there is no "feasible"', "headroom plan --json")
        self.assert_refused(["plan", "diff", "trained/plan.json", "absent.json"], 2, "absent.json", "headroom plan --json")
        self.assert_refused(["plan", "diff", "trained/plan.json"], 2, "two plans, not 1", "A.json B.json")

    def models(self, folder, memory, *more):
        done = self.call("plan", "--suggest-models", folder, *OPTIONS, "--memory", memory, *more, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {Path(row["path"]).name: row for row in json.loads(done.stdout)["models"]}

    def shelf(self):
        """A folder of models: tiny, long (with weights), wide, huge, two that cannot be read, and one in a subfolder."""
        shelf = self.root / "shelf"
        shutil.rmtree(shelf, True)
        wide = json.loads((self.root / "a model.json").read_text())
        configs = {"tiny": CONFIG, "endless": {**CONFIG, "max_position_embeddings": 1 << 40}, "short": {**CONFIG, "max_position_embeddings": 1}, "group/wide": wide, "huge": {**wide, "hidden_size": 8192, "intermediate_size": 32768},
                   "strange": {**CONFIG, "model_type": "strange", "architectures": ["Strange"]}, "headless": {**CONFIG, "architectures": ["LlamaModel"]}}
        for name, config in configs.items():
            (shelf / name).mkdir(parents=True)
            (shelf / name / "config.json").write_text(json.dumps(config))
        (shelf / "broken").mkdir()
        (shelf / "broken/config.json").write_text("{")
        (shelf / "no model").mkdir()
        (self.root / "long.json").write_text(json.dumps({**CONFIG, "hidden_size": 64, "num_key_value_heads": 2, "max_position_embeddings": 65536}))
        made = self.call("init", "--config", "long.json", "--tokenizer", "bytes", "--output-dir", "shelf/long")
        self.assertEqual(made.returncode, 0, made.stderr)
        return shelf

    def test_models_that_train_or_serve_are_suggested(self):
        self.shelf()
        budget = 64 << 20
        rows = self.models("shelf", budget)
        self.assertEqual(list(rows), ["wide", "long", "endless", "tiny", "huge", "short", "broken", "headless", "strange"])
        self.assertEqual(rows["wide"]["path"], "shelf/group/wide")
        self.assertGreater(rows["endless"]["serve"]["max_tokens"], 64)
        self.assertIn("one position", rows["short"]["serve"]["reason"])
        for name in ("wide", "long", "endless", "tiny", "huge"):
            row = rows[name]
            code = 0 if row["train"]["feasible"] else 3
            plan = json.loads(self.call("plan", "--model", row["path"], *OPTIONS, "--memory", budget, "--json").stdout)
            self.assertEqual((plan["feasible"], plan["minimum_bytes"], plan["parameters"]), (code == 0, row["train"]["minimum_bytes"], row["parameters"]))
            if code == 0:
                self.assertEqual(plan["predicted_step_seconds"], row["train"]["step_seconds"])
                self.assert_same_techniques(row["train"]["techniques"], plan)
        self.assertIsNone(rows["huge"]["train"]["step_seconds"])
        self.assertEqual(rows["huge"]["serve"]["max_tokens"], 0)
        self.assertIn("malformed JSON", rows["broken"]["train"]["reason"])
        self.assertIn("strange", rows["strange"]["train"]["reason"])
        self.assertIsNone(rows["strange"]["family"])

    def test_the_tokens_that_a_suggestion_names_are_generated(self):
        self.shelf()
        least = self.models("shelf", "1GiB")["long"]["serve"]["minimum_bytes"]
        row = self.models("shelf", least)["long"]["serve"]
        self.assertTrue(row["feasible"])
        self.assertGreaterEqual(row["max_tokens"], 64)
        self.assertLess(row["max_tokens"], 4096)
        generate = lambda tokens, memory: self.call("generate", "--model", "shelf/long", *OPTIONS[:4], "--memory", memory, "--max-new-tokens", tokens - 1)
        self.assertEqual(generate(row["max_tokens"], least).returncode, 0)
        self.assertEqual(generate(row["max_tokens"] + 1, least).returncode, 3)
        self.assertEqual(generate(64, least).returncode, 0)
        self.assertEqual(generate(64, least - 4096).returncode, 3)
        self.assertFalse(self.models("shelf", least - 4096)["long"]["serve"]["feasible"])

    def test_a_table_of_models_has_the_reasons(self):
        self.shelf()
        lines = self.call("plan", "--suggest-models", "shelf", *OPTIONS, "--memory", "64MiB").stdout.splitlines()
        self.assertIn("best first", lines[0])
        rows = [line for line in lines if not line.startswith("  ")]
        self.assertLessEqual(max(map(len, rows)), 80)
        self.assertTrue(rows[2].startswith("group/wide "))
        self.assertTrue(any(line.startswith("broken") and line.endswith("not read") for line in rows))

    def test_a_folder_without_models_is_refused(self):
        (self.root / "empty").mkdir(exist_ok=True)
        self.assert_refused(["plan", "--suggest-models", "empty"], 2, "empty: no folder in it has a config.json", "model folders")
        self.assert_refused(["plan", "--suggest-models", "absent"], 2, "absent: there is no such folder", "model folders")

    def test_the_points_of_a_curve_are_plans(self):
        points = self.answer("--memory", "100MiB", "--curve", "curve.html")["points"]
        self.assertGreater(len(points), 3)
        page = (self.root / "curve.html").read_text()
        self.assertEqual([path.name for path in self.root.glob("curve.html*")], ["curve.html"])
        for point in points:
            plan = self.planned(point["command"])
            self.assertEqual((plan["budget_bytes"], plan["peak_bytes"], plan["predicted_step_seconds"]),
                             (point["budget_bytes"], point["peak_bytes"], point["step_seconds"]))
            self.assert_same_techniques(point["techniques"], plan)
            self.assertIn(html.escape(point["command"]).replace("&#x27;", "&#39;"), page)
        self.assertEqual(points[0]["peak_bytes"], plan["minimum_bytes"])
        self.planned(points[0]["command"], "--memory", points[0]["peak_bytes"] - 4096, code=3)
        self.assertEqual(self.planned(points[-1]["command"], "--memory", "1TiB")["predicted_step_seconds"], points[-1]["step_seconds"])
        # Between two points a budget gets the plan of the smaller one, or one that was left out.
        for less, more in zip(points, points[1:]):
            between = self.planned(less["command"], "--memory", more["peak_bytes"] - 4096)["predicted_step_seconds"]
            self.assertLessEqual(between, less["step_seconds"])
            self.assertGreaterEqual(between, more["step_seconds"])

    def test_a_page_that_cannot_be_written(self):
        (self.root / "pages").mkdir(exist_ok=True)
        self.assert_refused(["plan", "--model", "model", "--curve", "pages"], 2, "pages is a directory")
        self.assert_refused(["plan", "--model", "model", "--curve", "absent/curve.html"], 1, "cannot write absent/curve.html")

    def test_one_question_at_a_time(self):
        self.assert_refused(["plan", "--model", "model", "--ladder", "--minimum"], 2, "cannot be asked together")


if __name__ == "__main__":
    unittest.main()
