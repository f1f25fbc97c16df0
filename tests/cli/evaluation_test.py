"""Evaluation on several sets, early stopping, and the best checkpoint."""

import json
import math
import shutil
import unittest

from program import ProgramTest


def rows(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


class Evaluation(ProgramTest):
    def setUp(self):
        rows(self.root / "first.jsonl", ["the quick brown fox"] * 3)
        rows(self.root / "second.jsonl", ["over the lazy dog", "zzzz qqqq"])

    def metrics(self, output):
        lines = [json.loads(line) for line in (self.root / output / "metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if "eval_loss" in line]

    def weights(self, directory):
        return (self.root / directory / "model.safetensors").read_bytes()

    def test_one_set_has_no_name(self):
        self.train("plain", "--eval-data", "first.jsonl", "--eval-data", "second.jsonl")
        (line,) = self.metrics("plain")
        self.assertEqual(sorted(line), ["eval_loss", "eval_perplexity", "step"])

    def test_a_line_per_set_and_their_mean(self):
        done = self.train("sets", "--eval-data", "a=first.jsonl", "--eval-data", "b=second.jsonl", "--eval-steps", 2, "--max-steps", 4)
        lines = self.metrics("sets")
        self.assertEqual([(line["step"], line.get("eval_data")) for line in lines],
                         [(step, name) for step in (2, 4) for name in ("a", "b", None)])
        for line in lines:
            self.assertAlmostEqual(line["eval_perplexity"], math.exp(line["eval_loss"]), places=6)
        a, b, both = (line["eval_loss"] for line in lines[3:])
        targets = {"first.jsonl": 3 * 20, "second.jsonl": 18 + 10}  # bytes and EOS; BOS is not a target
        self.assertAlmostEqual(both, (a * targets["first.jsonl"] + b * targets["second.jsonl"]) / sum(targets.values()), places=9)
        self.assertIn("on a", done.stderr)
        for name, loss in (("first.jsonl", a), ("second.jsonl", b)):
            alone = self.call("evaluate", "--model", "sets", "--data", name, "--memory", "128MiB", "--threads", 1, "--max-seq-length", 32, "--json")
            found = json.loads(alone.stdout)
            self.assertEqual(found["tokens"], targets[name])
            self.assertAlmostEqual(found["loss"], loss, places=5)

    def test_files_of_one_name_are_one_set(self):
        self.train("joined", "--eval-data", "a=first.jsonl", "--eval-data", "a=second.jsonl")
        named, both = self.metrics("joined")
        self.assertEqual(named["eval_data"], "a")
        self.assertEqual(named["eval_loss"], both["eval_loss"])

    def test_a_file_with_an_equals_sign(self):
        shutil.copy(self.root / "first.jsonl", self.root / "odd=name.jsonl")
        self.train("odd", "--eval-data", "odd=name.jsonl")
        self.assertEqual(len(self.metrics("odd")), 1)

    def test_refusals(self):
        self.assert_refused(self.train_arguments("out", "--eval-data", "a b=first.jsonl"), 2, "a b", "--eval-data")
        self.assert_refused(self.train_arguments("out", "--eval-data", "=first.jsonl"), 2, "--eval-data")
        self.assert_refused(self.train_arguments("out", "--eval-data", "a=absent.jsonl"), 2, "absent.jsonl")
        self.assert_refused(self.train_arguments("out", "--load-best-model-at-end", "true"), 2, "--load-best-model-at-end")
        for option in ("--early-stopping-patience", "--eval-steps", "--eval-max-batches"):
            self.assert_refused(self.train_arguments("out", option, 2), 2, f"{option} without evaluation", "--eval-data")

    def test_the_best_model_is_kept_and_ends_the_run(self):
        # A learning rate this high damages the model: the first evaluation is the best.
        more = ["--eval-data", "first.jsonl", "--eval-steps", 1, "--save-steps", 1, "--save-total-limit", 2, "--max-steps", 6,
                "--learning-rate", "0.5", "--lr-scheduler-type", "constant", "--load-best-model-at-end", "true"]
        self.train("best", *more)
        losses = {line["step"]: line["eval_loss"] for line in self.metrics("best")}
        best = min(losses, key=losses.get)
        self.assertLess(best, 5, losses)
        kept = sorted(path.name for path in (self.root / "best").glob("checkpoint-*"))
        self.assertEqual(kept, sorted(f"checkpoint-{step}" for step in {best, 5, 6}))
        self.assertEqual(self.weights("best"), self.weights(f"best/checkpoint-{best}"))
        self.assertNotEqual(self.weights("best"), self.weights("best/checkpoint-6"))
        state = json.loads((self.root / "best/checkpoint-6/state.json").read_text())
        self.assertEqual((state["best_step"], state["best_eval_loss"]), (best, losses[best]))
        # After early stopping the model is the best one too.
        self.train("early", *more, "--early-stopping-patience", 2, "--max-steps", 9)
        self.assertEqual(self.weights("early"), self.weights("best"))
        self.assertEqual(max(line["step"] for line in self.metrics("early")), best + 2)
        run = json.loads((self.root / "early/run.json").read_text())
        self.assertEqual(run["early_stop"], {"evaluations": 2, "best_step": best, "best_eval_loss": losses[best]})
        said = f"ended early after step {best + 2} of 9: no better evaluation loss in 2 evaluations, the best was {losses[best]:.4f} at step {best}"
        self.assertIn(said, self.call("watch", "early", "--once").stdout)
        self.assertIn(said.replace("ended", "Ended"), self.call("report", "early", "-o", "-").stdout)
        # A run that completes all its steps has not stopped early.
        self.assertNotIn("early_stop", json.loads((self.root / "best/run.json").read_text()))
        self.train("last", *more, "--max-steps", best + 2, "--early-stopping-patience", 2)
        self.assertNotIn("early_stop", json.loads((self.root / "last/run.json").read_text()))

    def test_a_resumed_run_knows_the_best(self):
        more = ["--eval-data", "first.jsonl", "--eval-steps", 1, "--learning-rate", "0.5", "--lr-scheduler-type", "constant",
                "--save-steps", 2, "--load-best-model-at-end", "true"]
        self.train("whole", *more, "--max-steps", 5)
        self.train("parts", *more, "--max-steps", 4)
        self.train("parts", *more, "--max-steps", 5, "--resume-from-checkpoint", "true")
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        self.assertEqual(self.metrics("parts"), self.metrics("whole"))
        state = json.loads((self.root / "parts/checkpoint-5/state.json").read_text())
        self.assertEqual(state["best_step"], json.loads((self.root / "whole/checkpoint-5/state.json").read_text())["best_step"])

    def test_a_best_model_that_was_not_kept_is_forgotten(self):
        more = ["--eval-data", "first.jsonl", "--eval-steps", 1, "--learning-rate", "0.5", "--lr-scheduler-type", "constant"]
        self.train("probe", *more, "--max-steps", 6)
        losses = [line["eval_loss"] for line in self.metrics("probe")]
        end = next(step for step in range(2, 6) if losses[step - 1] > min(losses[:step]))  # saved, but not the best
        self.train("later", *more, "--max-steps", end)
        done = self.train("later", *more, "--max-steps", end + 1, "--resume-from-checkpoint", "true", "--load-best-model-at-end", "true")
        self.assertIn("was not kept", done.stderr)


if __name__ == "__main__":
    unittest.main()
