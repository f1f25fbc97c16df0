"""The page at / and /arena of a server, without a browser: access, the policy, the figures."""

import base64
import hashlib
import json
import re
import unittest
import urllib.error
import urllib.request

from program import ProgramTest
from served import Server

KEY = "sk-page"


class ServePageTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.program, cls.root / "model", cls.root, "--memory", "64MiB", "--api-key", KEY)
        cls.addClassCleanup(cls.server.stop)

    def ask(self, path, method="GET", key=None):
        """(status, headers, body)"""
        request = urllib.request.Request(self.server.url + path, method=method, headers={"Authorization": f"Bearer {key}"} if key else {})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def test_the_page_needs_no_key_and_its_policy_fits_it(self):
        status, headers, body = self.ask("/")
        self.assertEqual(status, 200)
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        text = body.decode()
        for part in ("style", "script"):
            parts = re.findall(f"<{part}>(.*?)</{part}>", text, re.S)
            self.assertEqual(len(parts), 1)
            digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
            self.assertIn(f"{part}-src 'sha256-{digest}'", headers["Content-Security-Policy"])
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertIn("connect-src 'self'", headers["Content-Security-Policy"])
        self.assertNotRegex(text, r"https?://|@import|url\(|<link|<img|@page_| on\w+=| style=")
        self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(")

    def test_only_get_and_head(self):
        self.assertEqual(self.ask("/", "HEAD")[::2], (200, b""))
        for path in ("/", "/arena"):
            status, headers, _ = self.ask(path, "POST", KEY)
            self.assertEqual((status, headers["Allow"]), (405, "GET"))

    def test_the_arena_needs_the_key_and_adds_up(self):
        self.assertEqual(self.ask("/arena")[0], 401)
        status, _, body = self.ask("/arena", key=KEY)
        self.assertEqual(status, 200)
        arena = json.loads(body)
        self.assertEqual((arena["state"], arena["models"], arena["chat_template"], arena["makes_text"]), ("ready", ["model"], False, True))
        self.assertEqual(sum(region["bytes"] for region in arena["regions"]), arena["planned_peak_bytes"])
        self.assertLessEqual(arena["planned_peak_bytes"], arena["budget_bytes"])
        self.assertEqual((arena["running"], arena["kv_blocks_used"]), (0, 0))
        self.assertGreater(arena["kv_blocks"], 0)

    def test_asking_often_makes_nothing_grow(self):
        for _ in range(20):
            self.ask("/")
            self.ask("/arena", key=KEY)
        before = self.server.peak_bytes()
        for _ in range(200):
            self.ask("/")
            self.ask("/arena", key=KEY)
        self.assertLessEqual(self.server.peak_bytes(), before + (256 << 10))


if __name__ == "__main__":
    unittest.main()
