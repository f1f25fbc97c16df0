"""A merge within a budget: refused if the budget is too small, otherwise the process stays within it."""

import re
import unittest

from program import ProgramTest, environment
import child_peak


class Merge(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = cls.call(*cls.train_arguments("adapter", "--lora-r", 4, "--modules-to-save", "embed_tokens"))
        assert done.returncode == 0, done.stderr

    def test_too_little_is_refused_and_the_least_does(self):
        command = ["merge", "--model", "model", "--adapter", "adapter", "--output-dir"]
        refused = self.assert_refused([*command, "out", "--memory", "2MiB"], 3, "falls short by", "minimum_bytes")
        least = int(re.search(r"minimum_bytes (\d+)", refused.stderr).group(1))
        self.assert_refused([*command, "out", "--memory", str(least - 1)], 3, "falls short by 1 bytes")
        code, peak, _, _ = child_peak.run([self.program, *command, "merged", "--memory", least], cwd=self.root, env=environment(self.root))
        self.assertEqual(code, 0)
        self.assertLessEqual(peak, least)
        self.assertTrue((self.root / "merged" / "model.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
