"""The progress line of training on a terminal: memory in use, planned and allowed, for any width."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import unittest

from program import ProgramTest, environment


class Progress(ProgramTest):
    def last_line(self, columns):
        """The line after the last step."""
        main, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        run = subprocess.Popen([self.program, *self.train_arguments(f"at{columns}")], cwd=self.root, env=environment(self.root),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(main, 65536):
                text += piece
        except OSError:  # how Linux reports that the other end is closed
            pass
        os.close(main)
        self.assertEqual(run.wait(), 0, text)
        lines = [line for line in text.decode().split("\r") if "step 3/3" in line]
        return lines[-1].replace("\x1b[K", "").rstrip("\n")

    def test_memory_is_told_at_any_width(self):
        memory = r"mem [\d.]+( [KM]iB)? of plan [\d.]+ of 128 MiB$"
        for columns in (64, 80, 100, 140):
            line = self.last_line(columns)
            self.assertLess(len(line), columns)
            self.assertRegex(line, r"100%  step 3/3  loss [\d.]+  ")
            self.assertRegex(line, memory)
        self.assertRegex(line, r"lr [\d.e-]+  \d+ tok/s  left 0:00  " + memory)

    def test_lines_for_a_file_tell_everything(self):
        self.assertRegex(self.train("lines").stderr, r"(?m)step 3/3  loss [\d.]+  lr [\d.e-]+  \d+ tok/s  left 0:00  mem [\d.]+ of plan [\d.]+ of 128 MiB$")


if __name__ == "__main__":
    unittest.main()
