"""How the Python host handles displays, streams and cells, without the executor."""

import base64
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import ipython_host as host  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x00" * 8


class Bundles(unittest.TestCase):
    def test_an_image_is_kept_and_described_with_its_size(self) -> None:
        images = host.Images()
        self.assertEqual(host.render_bundle({"text/plain": "<Figure>", "image/png": PNG}, images), f"[image/png 640x480, {len(PNG)} bytes]")
        self.assertEqual(images.kept, [("image/png", PNG)])

    def test_base64_is_decoded_and_invalid_data_is_reported(self) -> None:
        images = host.Images()
        host.render_bundle({"image/png": base64.b64encode(PNG).decode()}, images)
        self.assertEqual(images.kept, [("image/png", PNG)])
        self.assertIn("not an image", host.render_bundle({"image/png": object()}, images))

    def test_images_over_the_limits_are_left_out(self) -> None:
        images = host.Images()
        self.assertIn("left out", images.add("image/png", bytes(host.MAX_IMAGE_BYTES + 1)))
        texts = [images.add("image/png", PNG) for _ in range(host.MAX_IMAGES + 1)]
        self.assertIn("left out", texts[-1])
        self.assertEqual(len(images.kept), host.MAX_IMAGES)

    def test_the_plainest_text_is_shown_and_other_types_are_listed(self) -> None:
        images = host.Images()
        self.assertEqual(host.render_bundle({"text/html": "<b>", "text/plain": "b"}, images), "b")
        self.assertEqual(host.render_bundle({"application/x-own": b""}, images), "[application/x-own]")


class Cells(unittest.TestCase):
    def run_cell(self, code: str) -> str:
        """Runs the cell in a fork, as every host does: a cell takes over the descriptors of its process."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            shell = host.make_shell()
            streams = host.Streams(write)
            failed = host.run_cell(shell, code, streams, lambda: None)
            streams.mark_end("nonce", failed)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as output:
            text = output.read().decode()
        os.waitpid(child, 0)
        return text

    def test_outputs_are_in_order_and_the_marker_comes_last(self) -> None:
        text = self.run_cell("import sys\nprint('a', end='')\nsys.stderr.write('b')\nprint('c', end='')\n!echo d\n7")
        self.assertEqual(text, "abcd\n7\n\x1b]8517;nonce;0\a")

    def test_a_cell_that_raises_prints_a_traceback_without_colours(self) -> None:
        text = self.run_cell("1/0")
        self.assertIn("ZeroDivisionError: division by zero", text)
        self.assertTrue(text.endswith("\x1b]8517;nonce;1\a"))
        self.assertEqual(text.count("\x1b"), 1)

    def test_input_raises_an_error_that_says_what_to_do(self) -> None:
        self.assertIn("no interactive input", self.run_cell("input('name? ')"))
        self.assertIn("no interactive input", self.run_cell("import getpass; getpass.getpass()"))

    def test_a_broken_standard_output_is_restored_for_the_traceback(self) -> None:
        self.assertIn("ValueError", self.run_cell("import sys\nsys.stdout.detach()\nraise ValueError(1)"))


if __name__ == "__main__":
    unittest.main()
