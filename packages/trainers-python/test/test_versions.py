"""The bounds of every extra are those that the adapters check, and an import that fails says what is needed."""

from __future__ import annotations

import re
import unittest
import warnings
from pathlib import Path
from unittest import mock

from millrace_trainers import versions
from millrace_trainers.versions import SUPPORTED, to_numbers, trainer_imports

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


class VersionsTest(unittest.TestCase):
    def test_every_extra_has_both_bounds_and_they_are_those_that_are_checked(self) -> None:
        text = PROJECT.read_text().split("[project.optional-dependencies]")[1].split("\n[")[0]
        lines = re.findall(r'^([\w-]+) = \["([\w-]+)(?:\[[\w-]+\])?>=([\d.]+),<([\d.]+)', text, re.MULTILINE)
        self.assertEqual({extra: tuple(rest) for extra, *rest in lines}, {name: tuple(one) for name, one in SUPPORTED.items()})

    def test_a_trainer_that_is_not_there_is_named_with_the_extra(self) -> None:
        with self.assertRaisesRegex(ImportError, r"needs skyrl >= 0.3.0, < 0.5, and skyrl is not installed.*millrace-trainers\[skyrl\]"):
            self.enter("skyrl", None, fails="No module named 'skyrl'")

    def test_a_trainer_with_a_missing_part_is_named_with_its_version(self) -> None:
        with self.assertRaisesRegex(ImportError, "skyrl 0.4.0 cannot be imported: No module named 'loguru'; pip install 'skyrl"):
            self.enter("skyrl", "0.4.0", fails="No module named 'loguru'", hint="pip install 'skyrl[skyrl-train]'")

    def test_an_older_trainer_is_refused_and_a_newer_one_warned_about(self) -> None:
        with self.assertRaisesRegex(ImportError, "needs trl >= 1.16.0, < 2, and trl 1.9.2 is installed"):
            self.enter("trl", "1.9.2")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.enter("trl", "1.16.0")
            self.enter("trl", "1.30.1")
            self.enter("trl", "2.0.0.dev0")
        self.assertEqual([str(one.message)[:16] for one in seen], ["trl 2.0.0.dev0 i"])

    def test_a_part_of_an_adapter_may_need_an_older_trainer(self) -> None:
        with self.assertRaisesRegex(ImportError, "agentlightning >= 0.3.0, < 1, and agentlightning 1.0.2 is installed; leave out --store"):
            self.enter("agent-lightning", "1.0.2", below="1", hint="leave out --store")
        self.enter("agent-lightning", "1.0.2")

    def test_versions_are_compared_by_their_numbers(self) -> None:
        self.assertLess(to_numbers("0.9.1"), to_numbers("0.10"))
        self.assertEqual(to_numbers("1.0"), to_numbers("1.0.0rc1"))
        self.assertLess(to_numbers("0.3.0.post1"), to_numbers("0.4"))

    def enter(self, extra: str, found: object, *, fails: str = "", below: str = "", hint: str = "") -> None:
        def version(name: str) -> object:
            if found is None:
                raise versions.PackageNotFoundError(name)
            return found

        with mock.patch.object(versions, "version", version), trainer_imports(extra, below=below, hint=hint):
            if fails:
                raise ImportError(fails)


if __name__ == "__main__":
    unittest.main()
