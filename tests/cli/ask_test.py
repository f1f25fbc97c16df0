"""`headroom doctor --ask`: questions on stderr, answers from a pipe, and the new answer."""

import json
import unittest

from program import ProgramTest

MESSAGE = (
    "RuntimeError: CUDA out of memory. Tried to allocate 200.00 MiB (GPU 0; 10.76 GiB total capacity; 9.61 GiB already "
    "allocated; 95.56 MiB free; 9.70 GiB reserved in total by PyTorch)\n"
)
JOB = '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1}\n'


class Ask(ProgramTest):
    def ask(self, *arguments, answers):
        return self.call("doctor", "--ask", *arguments, stdin=answers)

    def setUp(self):
        super().setUp()
        (self.root / "job.log").write_text(MESSAGE)
        (self.root / "ds.json").write_text(JOB)

    def test_an_answer_changes_what_is_said(self):
        done = self.ask("job.log", answers="1\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("How many samples per device and step?", done.stderr)
        self.assertEqual(done.stdout.count("OUT OF MEMORY"), 2)
        before, after = done.stdout.split("OUT OF MEMORY")[1:]
        self.assertIn("a smaller batch_size", before)
        self.assertNotIn("a smaller batch_size", after)

    def test_an_empty_answer_keeps_it(self):
        for answers in ("\n", ""):
            done = self.ask("job.log", answers=answers)
            self.assertEqual(done.stdout.count("OUT OF MEMORY"), 1)
            self.assertEqual(done.stdout, self.call("doctor", "job.log").stdout)

    def test_three_questions_at_most(self):
        done = self.ask("--config", "ds.json", answers="meta-llama/Llama-2-7b-hf\n24GiB\n" + 9 * "1\n")
        self.assertIn("Which model", done.stderr)
        self.assertIn("Which GPU", done.stderr)
        self.assertLessEqual(done.stderr.count("empty: not known"), 3)
        self.assertIn("24.00 GiB", done.stdout)

    def test_an_answer_that_says_nothing_is_told(self):
        done = self.ask("job.log", answers="many\n1\n")
        self.assertIn("--micro-batch-size many: not a whole number", done.stderr)
        self.assertNotIn("batch_size=<half>", done.stdout.split("OUT OF MEMORY")[2])

    def test_json_is_one_document(self):
        answer = json.loads(self.ask("--json", "job.log", answers="1\n").stdout)
        self.assertNotIn("micro-batch", [remedy["name"] for remedy in answer["remedies"]])
        open_answer = json.loads(self.call("doctor", "--json", "job.log").stdout)
        self.assertIn("--micro-batch-size", [question["option"] for question in open_answer["questions"]])

    def test_a_pipe_is_not_asked_by_itself(self):
        done = self.call("doctor", "job.log", stdin="1\n")
        self.assertNotIn("How many", done.stderr)
        self.assertIn("GIVE  --micro-batch-size N", done.stdout)

    def test_the_log_and_the_answers_are_not_one_stream(self):
        self.assert_refused(["doctor", "--ask", "-"], 2, "--ask reads answers from standard input", "give the log as a file", stdin=MESSAGE)


if __name__ == "__main__":
    unittest.main()
