#!/usr/bin/env python3
"""The archive of tools/bundle.sh, unpacked elsewhere, needs no library of this machine except glibc's. Usage: bundle_test.py BUILD_FOLDER"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = os.path.abspath(sys.argv[1])
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread)\.so.*)$")


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="headroom-bundle-")
        archive = f"{cls.folder.name}/small.tar.gz"
        made = subprocess.run([ROOT / "tools/bundle.sh", archive], env={**os.environ, "HEADROOM_BUILD": BUILT}, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        subprocess.run(["tar", "-C", cls.folder.name, "-xzf", archive], check=True)
        cls.root = Path(cls.folder.name) / "small"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *command):
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": self.folder.name})

    def test_it_runs(self):
        done = self.call(self.root / "bin/headroom", "--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        tiny = self.root / "headroom/tests/data_files/stories260K"
        done = self.call(self.root / "bin/headroom", "plan", "--model", tiny, "--memory", "1GiB", "--threads", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_runs_by_its_own_glibc_where_the_machine_s_is_older(self):
        lib = self.root / "lib"
        done = self.call(lib / "glibc/ld-linux-x86-64.so.2", "--library-path", f"{lib}/glibc:{lib}", self.root / "libexec/headroom", "--version")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_other_library_is_in_it(self):
        for program in (self.root / "libexec").iterdir():
            found = subprocess.run(["ldd", program], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(self.root / "lib")}).stdout
            for name, path in re.findall(r"(?m)^\s*(\S+) => (\S+)", found):
                self.assertTrue(GLIBC.match(name) or path.startswith(str(self.root)), f"{program.name}: {name} is taken from {path}")

    def test_what_it_says_to_call_is_there(self):
        for path in re.findall(r"(?m)^  (\S+/\S+)", (self.root / "README").read_text()):
            if "cuda" not in path:
                self.assertTrue(os.access(self.root / path, os.X_OK), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
