"""Runs IPython cells inside a sandbox: a parent process that has everything imported, and the hosts that it forks, one at a time.

The parent exchanges JSON lines with the executor on file descriptor 3. Before each host it creates three pipes (requests, replies,
output) and reports their numbers. The executor opens them through /proc, so no host shares a pipe with an earlier one. Requests and
replies are frames: two big-endian uint32 lengths, a JSON head, raw bytes. The output of a cell and of its programs goes to the output
pipe, where a marker with the request's nonce ends the cell.
"""

import base64
import builtins
import gc
import getpass
import importlib
import importlib.machinery
import io
import json
import os
import signal
import struct
import subprocess
import sys
import traceback
import types
from typing import Any, BinaryIO, Callable, Dict, List, NoReturn, Optional, TextIO, Tuple


class WithoutTerminal:
    """Keeps IPython from loading what only a terminal needs: a third of its start. A cell that imports it gets all of it."""

    def __enter__(self) -> None:
        embed = types.ModuleType("IPython.terminal.embed")
        setattr(embed, "embed", lambda *args, **options: importlib.import_module(embed.__name__).embed(*args, **options))
        self.kept_out: Dict[str, Any] = {"IPython.terminal": types.ModuleType("IPython.terminal"), embed.__name__: embed, "jedi": None}
        sys.modules.update(self.kept_out)

    def __exit__(self, *_error: Any) -> None:
        for name in self.kept_out:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        """The modules of IPython's terminal import each other in a circle, which works only if `embed` is the first."""
        if name != "IPython.terminal":
            return None
        sys.meta_path.remove(self)
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def load_with_embed(module: types.ModuleType) -> None:
            load(module)
            importlib.import_module(f"{name}.embed")

        spec.loader.exec_module = load_with_embed
        return spec


try:
    with WithoutTerminal():
        import IPython.core.completer  # it would load jedi later
        from IPython.core.displayhook import DisplayHook
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.error import StdinNotImplementedError
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.text import SList
        from traitlets import Type
        from traitlets.config import Config
except ImportError as problem:
    if __name__ != "__main__":
        raise
    message = {"event": "missing", "message": f"{sys.executable} (Python {sys.version.split()[0]}) has no IPython: {problem}"}
    os.write(3, json.dumps(message).encode() + b"\n")
    sys.exit(0)

CONTROL = 3
MAX_IMAGE_BYTES = 4 << 20
MAX_IMAGES = 16
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXT_TYPES = ("text/plain", "text/markdown", "text/latex", "text/html", "application/json", "image/svg+xml")
NO_INPUT = "there is no interactive input here: put values in the code, and pass input to programs through pipes or files"


class Images:
    """The images that a cell has displayed, limited in number and size. The text has a note in place of each image."""

    def __init__(self) -> None:
        self.kept: List[Tuple[str, bytes]] = []

    def add(self, mime: str, data: bytes) -> str:
        what = f"{mime}{describe_size(data)}, {len(data)} bytes"
        if len(data) > MAX_IMAGE_BYTES:
            return f"[{what}: left out, more than {MAX_IMAGE_BYTES} bytes]"
        if len(self.kept) >= MAX_IMAGES:
            return f"[{what}: left out, more than {MAX_IMAGES} images in one cell]"
        self.kept.append((mime, data))
        return f"[{what}]"


def describe_size(data: bytes) -> str:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 24:
        return ""
    width, height = struct.unpack(">II", data[16:24])
    return f" {width}x{height}"


def render_bundle(bundle: Dict[str, Any], images: Images) -> str:
    """Prefers an image, then the plainest text. For a bundle with neither, lists its types."""
    for mime in IMAGE_TYPES:
        if mime in bundle:
            try:
                value = bundle[mime]
                return images.add(mime, value if isinstance(value, bytes) else base64.b64decode(value))
            except (TypeError, ValueError) as problem:
                return f"[{mime}: not an image, {problem}]"
    for mime in TEXT_TYPES:
        if mime in bundle:
            return str(bundle[mime])
    return f"[{', '.join(bundle)}]" if bundle else ""


class HostDisplayHook(DisplayHook):
    """Prints the value of a cell's last expression, without a prompt."""

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Dict[str, Any], md_dict: Optional[Dict[str, Any]] = None) -> None:
        print(render_bundle(format_dict, self.shell.images))


class HostDisplayPublisher(DisplayPublisher):
    """Prints the objects passed to `display`."""

    def publish(self, data: Dict[str, Any], *args: Any, **options: Any) -> None:
        print(render_bundle(data, self.shell.images))


class HostShell(InteractiveShell):
    """IPython's shell, except that programs have no terminal to read from and `exit` ends the host."""

    displayhook_class = Type(HostDisplayHook)
    display_pub_class = Type(HostDisplayPublisher)
    leaving = False

    def system(self, cmd: str) -> None:
        __tracebackhide__ = True
        flush_outputs()
        program = start_program(self.var_expand(cmd, depth=1), None)
        wait_for(program)
        self.user_ns["_exit_code"] = program.returncode

    system_piped = system
    system_raw = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        __tracebackhide__ = True
        program = start_program(self.var_expand(cmd, depth=depth + 1), subprocess.PIPE)
        text = wait_for(program)[0].decode("utf8", "replace")
        self.user_ns["_exit_code"] = program.returncode
        return SList(text.splitlines()) if split else text

    def showtraceback(self, exc_tuple: Any = None, filename: Optional[str] = None, tb_offset: Optional[int] = None, **options: Any) -> None:
        """Starts at the cell's own frame. IPython would parse the files of those before it, which takes 0.1 s, and show some of them."""
        if exc_tuple is None and tb_offset is None:
            kind, value, trace = sys.exc_info()
            while trace and trace.tb_frame.f_globals is not self.user_global_ns:
                trace = trace.tb_next
            exc_tuple, tb_offset = (kind, value, trace), 0
        super().showtraceback(exc_tuple, filename, tb_offset, **options)

    def ask_exit(self) -> None:
        self.leaving = True

    def enable_gui(self, gui: Optional[str] = None) -> None:
        pass


def start_program(command: str, stdout: Optional[int]) -> "subprocess.Popen[bytes]":
    """Starts it in its own process group, so that all of it can be stopped, and in the host's session, so that it ends with the host."""
    argv = ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command]
    stderr = None if stdout is None else subprocess.STDOUT
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, preexec_fn=os.setpgrp)


def wait_for(program: "subprocess.Popen[bytes]") -> Tuple[bytes, bytes]:
    __tracebackhide__ = True
    try:
        return program.communicate()
    except KeyboardInterrupt:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        raise KeyboardInterrupt("the command was killed") from None


def flush_outputs() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # a cell may have replaced the stream with anything
            pass


def refuse_input(*_args: Any, **_options: Any) -> NoReturn:
    __tracebackhide__ = True
    raise StdinNotImplementedError(NO_INPUT)


def make_shell() -> HostShell:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = HostShell.instance(config=config)
    builtins.input = refuse_input
    getpass.getpass = refuse_input
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    return shell


class Streams:
    """File descriptors 1 and 2 and their Python streams, restored before each cell."""

    def __init__(self, output: int) -> None:
        self.output = output
        self.stdout, self.stderr = make_streams()

    def attach(self) -> None:
        os.dup2(self.output, 1)
        os.dup2(self.output, 2)
        try:
            self.stdout.write("")
            self.stderr.write("")
        except ValueError:  # a cell has closed or detached the stream
            self.stdout, self.stderr = make_streams()
        sys.stdout, sys.stderr = self.stdout, self.stderr

    def mark_end(self, nonce: str, failed: bool) -> None:
        flush_outputs()
        marker = f"\x1b]8517;{nonce};{int(failed)}\a".encode()
        while marker:
            marker = marker[os.write(self.output, marker) :]


def make_streams() -> Tuple[TextIO, TextIO]:
    """Both streams share one line-buffered writer, so their output stays in order."""
    buffer = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    options: Dict[str, Any] = {"encoding": "utf8", "errors": "backslashreplace", "line_buffering": True, "write_through": True}
    return io.TextIOWrapper(buffer, **options), io.TextIOWrapper(buffer, **options)


def run_cell(shell: HostShell, code: str, streams: Streams, on_begin: Callable[[], None]) -> bool:
    """Returns whether the cell failed. After `on_begin` it can be interrupted. IPython itself raises if a cell has broken its internals."""
    shell.images = Images()
    streams.attach()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        on_begin()
        return not shell.run_cell(code, store_history=True).success
    except BaseException:
        signal.signal(signal.SIGINT, ignore_signal)
        streams.attach()
        traceback.print_exc()
        return True
    finally:
        signal.signal(signal.SIGINT, ignore_signal)


def ignore_signal(*_args: Any) -> None:
    """A handler, not SIG_IGN, which programs would inherit."""


def serve(shell: HostShell, requests: BinaryIO, replies: BinaryIO, streams: Streams) -> None:
    own = os.getpid()
    while True:
        lengths = requests.read(8)
        if len(lengths) < 8:
            return
        head_bytes, body_bytes = struct.unpack(">II", lengths)
        head = json.loads(requests.read(head_bytes))
        code = requests.read(body_bytes).decode("utf8", "replace")
        try:
            failed = run_cell(shell, code, streams, lambda: send_frame(replies, {"begun": True}, b""))
        except KeyboardInterrupt:
            failed = True  # the interrupt arrived just after the cell had ended
        if os.getpid() != own:
            os._exit(0)  # a process that the cell forked has reached the end of the cell
        streams.mark_end(head["nonce"], failed)
        if shell.leaving:
            return
        kept = shell.images.kept
        reply = {"images": [{"mime": mime, "bytes": len(data)} for mime, data in kept]}
        send_frame(replies, reply, b"".join(data for _, data in kept))


def send_frame(stream: BinaryIO, head: Dict[str, Any], body: bytes) -> None:
    text = json.dumps(head).encode()
    stream.write(struct.pack(">II", len(text), len(body)) + text + body)
    stream.flush()


def run_host(shell: HostShell, requests: int, replies: int, output: int) -> NoReturn:
    os.setsid()
    os.close(CONTROL)
    signal.signal(signal.SIGINT, ignore_signal)
    streams = Streams(output)
    streams.attach()  # at once, to release the parent's descriptors
    code = 1
    try:
        serve(shell, os.fdopen(requests, "rb"), os.fdopen(replies, "wb"), streams)
        code = 0
    finally:
        flush_outputs()
        os._exit(code)


def run_parent(shell: HostShell) -> None:
    """Forks a host for each line received; ends when the executor has closed its end."""
    control = os.fdopen(CONTROL, "rb+", buffering=0)
    gc.freeze()  # a collection in a host would copy every page shared with this process
    while True:
        pipes = [os.pipe(), os.pipe(), os.pipe()]
        (request_read, request_write), (reply_read, reply_write), (output_read, output_write) = pipes
        send_message(control, {"event": "ready", "requests": request_write, "replies": reply_read, "output": output_read})
        if not control.readline():
            return
        pid = os.fork()
        if pid == 0:
            for descriptor in (request_write, reply_read, output_read):
                os.close(descriptor)
            run_host(shell, request_read, reply_write, output_write)
        send_message(control, {"event": "host", "pid": pid})
        for descriptor in sum(pipes, ()):
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        send_message(control, {"event": "exit", "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)})


def send_message(control: Any, message: Dict[str, Any]) -> None:
    control.write(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    os.set_inheritable(CONTROL, False)
    os.closerange(CONTROL + 1, 4096)  # descriptors that the executor may have left open, such as the shell's terminal
    run_parent(make_shell())
