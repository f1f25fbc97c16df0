"""Inconsistent checkpoints: refused with the tensor's name and the value; nothing is written."""

import json
import struct
import unittest

from program import ProgramTest, read_safetensors, write_safetensors

EMBEDDING = "model.embed_tokens.weight"


class Weights(ProgramTest):
    def spoiled(self, change):
        directory = self.fresh_model("spoiled")
        path = directory / "model.safetensors"
        header, data = read_safetensors(path)
        header, data = change(header, data)
        write_safetensors(path, header, data)
        return directory

    def assert_both_refuse(self, *parts):
        self.assert_refused(self.train_arguments("out", model="spoiled"), 2, "spoiled", *parts)
        self.assert_refused(["evaluate", "--model", "spoiled", "--data", "data.txt", "--memory", "128MiB"], 2, "spoiled", *parts)

    def test_missing_file(self):
        (self.fresh_model("spoiled") / "model.safetensors").unlink()
        self.assert_both_refuse("safetensors")

    def test_truncated_data(self):
        self.spoiled(lambda header, data: (header, data[:-100]))
        self.assert_both_refuse("model.safetensors")

    def test_trailing_bytes(self):
        self.spoiled(lambda header, data: (header, data + b"\0" * 64))
        self.assert_both_refuse("model.safetensors")

    def test_truncated_header(self):
        path = self.fresh_model("spoiled") / "model.safetensors"
        for size in (0, 3, 8, 40):
            with self.subTest(size=size):
                path.write_bytes(path.read_bytes()[:size] if size < 40 else (self.root / "model/model.safetensors").read_bytes()[:40])
                self.assert_refused(self.train_arguments("out", model="spoiled"), 2, "model.safetensors")

    def test_header_length_lies(self):
        path = self.fresh_model("spoiled") / "model.safetensors"
        header, data = read_safetensors(path)
        for length in (1, 2**31, 2**63, 2**64 - 1):
            with self.subTest(length=length):
                write_safetensors(path, header, data, declared=length)
                self.assert_refused(self.train_arguments("out", model="spoiled"), 2, "model.safetensors")

    def test_wrong_shape(self):
        def change(header, data):
            header[EMBEDDING]["shape"] = header[EMBEDDING]["shape"][::-1]
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING, "[16, 258]", "[258, 16]")

    def test_shape_and_bytes_disagree(self):
        def change(header, data):
            header[EMBEDDING]["shape"] = [259, 16]
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING)

    def test_shape_overflows(self):
        def change(header, data):
            header[EMBEDDING]["shape"] = [2**40, 2**40]
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING)

    def test_negative_shape(self):
        def change(header, data):
            header[EMBEDDING]["shape"] = [-258, -16]
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING)

    def test_wrong_dtype(self):
        def change(header, data):
            header[EMBEDDING]["dtype"] = "I32"
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING, "I32")

    def test_unknown_dtype(self):
        def change(header, data):
            header[EMBEDDING]["dtype"] = "F7"
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING, "F7")

    def test_missing_name(self):
        def change(header, data):
            header["model.embed_tokens.wait"] = header.pop(EMBEDDING)
            return header, data

        self.spoiled(change)
        self.assert_both_refuse(EMBEDDING, "missing")

    def test_extra_name(self):
        def change(header, data):
            header["model.layers.2.mlp.extra.weight"] = {"dtype": "F32", "shape": [4], "data_offsets": [len(data), len(data) + 16]}
            return header, data + b"\0" * 16

        self.spoiled(change)
        self.assert_both_refuse("model.layers.2.mlp.extra.weight")

    def test_overlapping_offsets(self):
        def change(header, data):
            first, second = sorted((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"])[:2]
            header[second]["data_offsets"] = [at - 64 for at in header[second]["data_offsets"]]
            return header, data

        self.spoiled(change)
        self.assert_both_refuse("overlap")

    def test_header_is_no_json(self):
        _, data = read_safetensors(self.root / "model/model.safetensors")
        directory = self.fresh_model("spoiled")
        for text in (b"not json", b"[]", b"{\"a\": 1}", b"[" * 5000, b"\xff\xfe{}"):
            with self.subTest(text=text[:10]):
                write_safetensors(directory / "model.safetensors", text, data)
                self.assert_refused(self.train_arguments("out", model="spoiled"), 2, "model.safetensors")

    def test_index_names_a_missing_shard(self):
        directory = self.fresh_model("spoiled")
        header, _ = read_safetensors(directory / "model.safetensors")
        (directory / "model.safetensors").rename(directory / "model-00001-of-00002.safetensors")
        names = {name: "model-00002-of-00002.safetensors" for name in header if name != "__metadata__"}
        (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        self.assert_both_refuse("model-00002-of-00002.safetensors")

    def test_index_leaves_the_directory(self):
        directory = self.fresh_model("spoiled")
        header, _ = read_safetensors(directory / "model.safetensors")
        (directory / "model.safetensors").unlink()
        names = {name: "../model/model.safetensors" for name in header if name != "__metadata__"}
        (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        self.assert_both_refuse("../model/model.safetensors")

    def test_nan_weights_stop_the_run(self):
        def change(header, data):
            begin = header[EMBEDDING]["data_offsets"][0]
            return header, data[:begin] + struct.pack("<f", float("nan")) * 32 + data[begin + 128 :]

        # Only tokens 0 and 1 are NaN: a text that contains byte 1 reaches them.
        self.spoiled(change)
        (self.root / "ones.txt").write_text("\x01a" * 200)
        done = self.call(*self.train_arguments("nan", model="spoiled", data="ones.txt"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("step 1", done.stderr)
        self.assertIn("nan", done.stderr)
        self.assertFalse((self.root / "nan/model.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
