"""Packing, length buckets and the histogram of lengths through the command line."""

import json
import unittest

from program import CONFIG, ProgramTest

LENGTHS = [3, 9, 30, 5, 14, 22, 7, 12, 4, 18, 26, 6]


def write_rows(path, lengths):
    rows = [[(7 * i + 11 * t) % 200 for t in range(length)] for i, length in enumerate(lengths)]
    path.write_text("".join(json.dumps({"input_ids": row, "labels": row}) + "\n" for row in rows))


class DataOrder(ProgramTest):
    def setUp(self):
        write_rows(self.root / "rows.jsonl", LENGTHS)

    def run_file(self, output, name):
        return json.loads((self.root / output / name).read_text())

    def steps(self, output):
        lines = [json.loads(line) for line in (self.root / output / "metrics.jsonl").read_text().splitlines()]
        return {line["step"]: line for line in lines if "loss" in line}

    def weights(self, output):
        return (self.root / output / "model.safetensors").read_bytes()

    def assert_arena_as_planned(self, output):
        run = self.run_file(output, "run.json")
        self.assertEqual(run["arena_measured_bytes"], run["arena_planned_bytes"])
        self.assertLessEqual(run["process_peak_rss_bytes"], self.run_file(output, "plan.json")["peak_bytes"])

    def test_packed_rows_have_the_loss_of_single_ones(self):
        # All rows in one step, packed or not.
        self.train("single", "--global-batch-size", 12, "--max-steps", 1, "--eval-data", "rows.jsonl", data="rows.jsonl")
        done = self.train("packed", "--packing", "true", "--global-batch-size", 12, "--max-steps", 1, "--eval-data", "rows.jsonl", data="rows.jsonl")
        self.assertIn("packed into 5 of 32 tokens", done.stderr)  # 156 tokens
        single, packed = self.steps("single")[1], self.steps("packed")[1]
        self.assertEqual(packed["tokens"], sum(LENGTHS))
        self.assertAlmostEqual(packed["loss"], single["loss"], delta=2e-6 * single["loss"])
        self.assertAlmostEqual(packed["grad_norm"], single["grad_norm"], delta=2e-5 * single["grad_norm"])
        losses = [json.loads((self.root / name / "metrics.jsonl").read_text().splitlines()[-1])["eval_loss"] for name in ("single", "packed")]
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-5 * losses[0])
        self.assert_arena_as_planned("packed")
        techniques = {t["name"]: t for t in self.run_file("packed", "plan.json")["techniques"]}
        self.assertEqual((techniques["packing"]["value"], techniques["packing"]["kind"]), ("on", "data-order"))

    def test_a_packed_run_resumes_bitwise(self):
        more = ["--packing", "true", "--global-batch-size", 2, "--micro-batch-size", 1]
        self.train("whole", *more, "--max-steps", 5, data="rows.jsonl")
        self.train("parts", *more, "--max-steps", 3, "--lr-scheduler-type", "constant", data="rows.jsonl")
        self.train("whole-constant", *more, "--max-steps", 5, "--lr-scheduler-type", "constant", data="rows.jsonl")
        self.train("parts", *more, "--max-steps", 5, "--lr-scheduler-type", "constant", "--resume-from-checkpoint", "true", data="rows.jsonl")
        self.assertEqual(self.weights("parts"), self.weights("whole-constant"))

    def test_packing_is_never_taken_unasked(self):
        plan = lambda *more: json.loads(self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, "--json", *more).stdout)
        self.assertFalse(plan()["packing"])
        self.assertFalse(plan("--allow", "lossy")["packing"])
        self.assertTrue(plan("--allow", "data-order")["packing"])
        self.assertTrue(plan("--technique", "packing=on")["packing"])
        self.assertEqual(plan("--allow", "data-order", "--technique", "packing=off")["length_buckets"], [16, 32, 48])
        self.assert_refused(self.train_arguments("out", "--packing", "true", "--group-by-length", "true"), 2, "--packing")
        self.assert_refused(self.train_arguments("out", "--packing", "true", "--technique", "packing=off"), 2, "packing")
        self.assert_refused(self.train_arguments("out", "--allow", "nonsense"), 2, "nonsense")

    def test_buckets_run_shorter_and_the_longest_row_may_come_last(self):
        write_rows(self.root / "ascending.jsonl", [4] * 60 + [30] * 2 + [64])
        base = ["--max-seq-length", 64, "--global-batch-size", 1, "--shuffle", "false", "--max-steps", 63]
        self.train("buckets", *base, "--group-by-length", "true", data="ascending.jsonl")
        self.train("plain", *base, data="ascending.jsonl")
        self.assert_arena_as_planned("buckets")
        plain, buckets = self.run_file("plain", "plan.json"), self.run_file("buckets", "plan.json")
        self.assertEqual(buckets["arena_bytes"], plain["arena_bytes"])
        self.assertEqual(buckets["length_buckets"], [16, 32, 48])
        self.assertGreater(buckets["process_bytes"], plain["process_bytes"])
        self.assertEqual([phase["name"] for phase in buckets["phases"]], [phase["name"] for phase in plain["phases"]])
        # With one row per batch: the same rows as without buckets, the longest first.
        self.assertEqual(self.steps("buckets")[1]["tokens"], 64)
        self.assertEqual(sorted(line["tokens"] for line in self.steps("buckets").values()), sorted(line["tokens"] for line in self.steps("plain").values()))
        # And in reverse: whatever the order, the run stays within the plan.
        self.train("last", *base, "--group-by-length", "true", "--technique", "length-buckets=on", "--seed", 7, "--shuffle", "true", data="ascending.jsonl")
        self.assert_arena_as_planned("last")

    def test_tables_and_kernels_of_a_deep_model_are_in_the_plan(self):
        (self.root / "deep.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": 30, "hidden_size": 64, "intermediate_size": 172}))
        self.assertEqual(self.call("init", "--config", "deep.json", "--output-dir", "deep").returncode, 0)
        base = ["--max-seq-length", 64, "--global-batch-size", 1, "--max-steps", 8]
        for name, more in (("adapters", ["--lora-r", 8]), ("bucketed", ["--group-by-length", "true"]),
                           ("both", ["--lora-r", 8, "--group-by-length", "true"])):
            self.train(name, *base, *more, model="deep", data="rows.jsonl")
            self.assert_arena_as_planned(name)

    def test_a_bucketed_step_has_the_loss_of_a_padded_one(self):
        write_rows(self.root / "short.jsonl", [5, 9, 12, 7] * 4)
        base = ["--max-seq-length", 64, "--global-batch-size", 4, "--shuffle", "false", "--max-steps", 4, "--learning-rate", "0", "--eval-data", "short.jsonl"]
        self.train("padded", *base, data="short.jsonl")
        self.train("trimmed", *base, "--group-by-length", "true", data="short.jsonl")
        padded = [line["loss"] for line in self.steps("padded").values()]
        trimmed = [line["loss"] for line in self.steps("trimmed").values()]
        # Steps have other rows, but the mean over the epoch's targets is the same.
        tokens = [line["tokens"] - 4 for line in self.steps("trimmed").values()]
        self.assertEqual(sum(tokens), 4 * (33 - 4))
        mean = sum(loss * count for loss, count in zip(trimmed, tokens)) / sum(tokens)
        self.assertAlmostEqual(mean, sum(padded) / 4, delta=1e-5 * mean)
        losses = [json.loads((self.root / name / "metrics.jsonl").read_text().splitlines()[-1])["eval_loss"] for name in ("padded", "trimmed")]
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-6 * losses[0])

    def test_a_bucketed_run_resumes_bitwise(self):
        more = ["--group-by-length", "true", "--global-batch-size", 2, "--max-seq-length", 64, "--lr-scheduler-type", "constant"]
        self.train("bucket-whole", *more, "--max-steps", 8, data="rows.jsonl")
        self.train("bucket-parts", *more, "--max-steps", 4, data="rows.jsonl")
        self.train("bucket-parts", *more, "--max-steps", 8, "--resume-from-checkpoint", "true", data="rows.jsonl")
        self.assertEqual(self.weights("bucket-parts"), self.weights("bucket-whole"))

    def test_lengths_are_told_and_kept(self):
        write_rows(self.root / "long.jsonl", [10, 20, 40, 60])
        done = self.train("lengths", "--max-seq-length", 32, data="long.jsonl")
        self.assertIn("36 tokens lost in 2 cut rows", done.stderr)
        self.assertIn("row lengths: half up to 24 tokens", done.stderr)
        data = self.run_file("lengths", "data.json")
        self.assertEqual((data["rows"], data["tokens"]), (4, 130))
        self.assertEqual(data["histogram"][0], {"up_to": 16, "rows": 1, "tokens": 10})
        report = self.call("report", "lengths", "-o", "report.html")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("Row lengths", (self.root / "report.html").read_text())

    def test_plan_explains_cuts_of_data_it_is_given(self):
        config = json.loads((self.root / "config.json").read_text())
        (self.root / "wide").mkdir(exist_ok=True)
        (self.root / "wide/config.json").write_text(json.dumps({**config, "max_position_embeddings": 1024}))
        write_rows(self.root / "wide.jsonl", [100, 200, 300])
        arguments = ["plan", "--model", "wide", "--memory", "64MiB", "--threads", 1]
        explained = self.call(*arguments, "--explain", "--data", "wide.jsonl")
        self.assertEqual(explained.returncode, 0, explained.stderr)
        table = [line.split() for line in explained.stdout.splitlines() if line.strip().startswith(("128 ", "256 ", "512 ", "1024 "))]
        self.assertEqual([row[:3] for row in table], [["128", "2", "244"], ["256", "1", "44"], ["512", "0", "0"]])
        self.assertIn("automatic", explained.stdout)
        for item in ("no zeroing of gradients", "no-grad evaluation", "fused pointwise ops", "asynchronous loading"):
            self.assertIn(item, explained.stdout)
        # Without --explain the data is not read; the plan is the same.
        self.assertEqual(self.call(*arguments, "--json", "--data", "absent.jsonl").stdout, self.call(*arguments, "--json").stdout)


if __name__ == "__main__":
    unittest.main()
