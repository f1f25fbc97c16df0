"""Invalid data files: refused with file and line before step 0, without leaving files."""

import json
import unittest

from program import ProgramTest


class Data(ProgramTest):
    def assert_data_refused(self, name, content, *parts):
        (self.root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        self.assert_refused(self.train_arguments("out", data=name), 2, name, *parts)
        self.assert_refused(["evaluate", "--model", "model", "--data", name, "--memory", "128MiB", "--threads", "1"], 2, name, *parts)

    def test_missing(self):
        self.assert_refused(self.train_arguments("out", data="absent.txt"), 2, "absent.txt")
        self.assert_refused(self.train_arguments("out", "--eval-data", "absent.jsonl"), 2, "absent.jsonl")

    def test_directory(self):
        (self.root / "folder.txt").mkdir(exist_ok=True)
        self.assert_refused(self.train_arguments("out", data="folder.txt"), 2, "folder.txt")

    def test_unknown_extension(self):
        self.assert_data_refused("data.parquet", "PAR1")

    def test_empty(self):
        self.assert_data_refused("empty.txt", "")
        self.assert_data_refused("empty.jsonl", "")
        self.assert_data_refused("blank.jsonl", "\n\n  \n")
        self.assert_data_refused("empty.json", "[]")

    def test_not_utf8(self):
        self.assert_data_refused("latin.txt", b"caf\xe9 au lait\n" * 20)
        self.assert_data_refused("cut.txt", b"abc\xe2\x82")
        self.assert_data_refused("latin.jsonl", b'{"text": "fine"}\n{"text": "caf\xe9"}\n', "latin.jsonl:2")

    def test_no_json(self):
        self.assert_data_refused("bad.jsonl", '{"text": "fine"}\n\n{"text": "unfinished\n', "bad.jsonl:3")
        self.assert_data_refused("bad.jsonl", '{"text": "fine"}\nhello\n', "bad.jsonl:2")
        self.assert_data_refused("bad.jsonl", '["text"]\n', "bad.jsonl:1")
        self.assert_data_refused("bad.jsonl", "[" * 100000 + "\n", "bad.jsonl:1")

    def test_unknown_row(self):
        self.assert_data_refused("odd.jsonl", '{"text": "fine"}\n{"tekst": "a"}\n', "odd.jsonl:2", "keys")
        self.assert_data_refused("odd.jsonl", '{"text": 5}\n', "odd.jsonl:1", "text")

    def test_ids_beyond_the_vocabulary(self):
        self.assert_data_refused("ids.jsonl", '{"input_ids": [1, 2], "labels": [1, 2]}\n{"input_ids": [1, 258], "labels": [1, 2]}\n', "ids.jsonl:2", "258")
        self.assert_data_refused("ids.jsonl", '{"input_ids": [1, -1], "labels": [1, 2]}\n', "ids.jsonl:1", "-1")
        self.assert_data_refused("ids.jsonl", '{"input_ids": [1, 2], "labels": [1, 300]}\n', "ids.jsonl:1", "300")
        self.assert_data_refused("ids.jsonl", '{"input_ids": [1, 2], "labels": [1]}\n', "ids.jsonl:1")
        self.assert_data_refused("ids.jsonl", '{"input_ids": [1, 99999999999999999999], "labels": [1, 2]}\n', "ids.jsonl:1")

    def test_bad_evaluation_data_leaves_nothing(self):
        (self.root / "bad-eval.jsonl").write_text("nope\n")
        self.assert_refused(self.train_arguments("out", "--eval-data", "bad-eval.jsonl"), 2, "bad-eval.jsonl:1")

    def test_tokenised_rows_need_no_tokenizer(self):
        (self.fresh_model("bare") / "tokenizer.json").unlink()
        (self.root / "rows.jsonl").write_text(json.dumps({"input_ids": [1, 2, 3, 4], "labels": [-100, 2, 3, 4]}) + "\n")
        done = self.train("rows-out", model="bare", data="rows.jsonl")
        self.assertIn("3 scored", done.stderr)


if __name__ == "__main__":
    unittest.main()
