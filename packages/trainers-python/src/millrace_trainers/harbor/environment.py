"""An environment of Harbor in a sandbox of Millrace, without Docker and without root. Harbor's own agents and verifiers run in it."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
import uuid
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import require_agent_environment_definition
from harbor.environments.tar_transfer import extract_dir_from_bytes, pack_dir_to_bytes

from .tool_client import LentSandbox

HostPath = Union[Path, str]


class MillraceEnvironment(BaseEnvironment):
    """`--env millrace_trainers.harbor:MillraceEnvironment`, with `millrace tool-server` on the same machine and
    `sandbox.driver` apptainer. Of the task's environment the image, or else the Dockerfile, is used."""

    def __init__(self, *args: Any, url: Optional[str] = None, image: Optional[str] = None, **kwargs: Any) -> None:
        self._tool_server = url
        self._image = image
        self._sandbox: Optional[LentSandbox] = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "millrace"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    def _validate_definition(self) -> None:
        if self._image is None:
            require_agent_environment_definition(self.environment_dir, docker_image=self.task_env_config.docker_image)

    async def start(self, force_build: bool) -> None:
        sandbox = LentSandbox(f"{self.session_id}-{uuid.uuid4().hex[:8]}", self._tool_server)
        await asyncio.to_thread(sandbox.open, self._to_spec())
        self._sandbox = sandbox
        if self._workdir is not None:
            await self.exec(f"mkdir -p {shlex.quote(self._workdir)}", cwd="/")
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.to_thread(sandbox.close)

    async def exec(
        self,
        command: str,
        cwd: Optional[str] = None,
        env: Optional[dict[str, str]] = None,
        timeout_sec: Optional[int] = None,
        user: Union[str, int, None] = None,
    ) -> ExecResult:
        """A sandbox has one user, which owns every file: `user` has no effect."""
        sandbox = self._opened()
        where = cwd or self._workdir
        ended = await asyncio.to_thread(
            lambda: sandbox.run(["/bin/bash", "-c", command], cwd=where, env=self._merge_env(env), timeout_s=timeout_sec)
        )
        if ended.timed_out:
            raise TimeoutError(f"the command did not end within {timeout_sec} s: {command[:200]}")
        return ExecResult(stdout=ended.stdout, stderr=ended.stderr, return_code=-1 if ended.exit_code is None else ended.exit_code)

    async def upload_file(self, source_path: HostPath, target_path: str) -> None:
        source = Path(source_path)
        await asyncio.to_thread(self._opened().write, target_path, source.read_bytes(), source.stat().st_mode & 0o777)

    async def upload_dir(self, source_dir: HostPath, target_dir: str) -> None:
        # Not compressed: an image needs tar, and nothing else.
        packed = await asyncio.to_thread(pack_dir_to_bytes, source_dir, compress=False)
        archive = f"/tmp/millrace-{uuid.uuid4().hex}.tar"
        await asyncio.to_thread(self._opened().write, archive, packed.getvalue())
        target = shlex.quote(target_dir)
        await self._must(
            f"mkdir -p {target} && tar -xf {archive} -C {target} && rm -f {archive}", f"unpack {source_dir} into {target_dir}"
        )

    async def download_file(self, source_path: str, target_path: HostPath) -> None:
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(await asyncio.to_thread(self._opened().read, source_path))

    async def download_dir(self, source_dir: str, target_dir: HostPath) -> None:
        archive = f"/tmp/millrace-{uuid.uuid4().hex}.tar"
        await self._must(f"tar -cf {archive} -C {shlex.quote(source_dir)} .", f"pack {source_dir}")
        packed = await asyncio.to_thread(self._opened().read, archive)
        await asyncio.to_thread(extract_dir_from_bytes, packed, target_dir)
        await self.exec(f"rm -f {archive}", cwd="/")

    @property
    def _workdir(self) -> Optional[str]:
        dockerfile = self.environment_dir / "Dockerfile"
        found: Optional[str] = self.task_env_config.workdir
        return found or (read_workdir(dockerfile.read_text()) if dockerfile.exists() else None)

    def _to_spec(self) -> Mapping[str, Any]:
        config = self.task_env_config
        named = None if config.docker_image is None else f"docker://{config.docker_image}"
        limits = {"cpus": config.cpus, "memoryMiB": config.memory_mb, "diskMiB": config.storage_mb}
        spec: dict[str, Any] = {
            "image": self._image or named or str((self.environment_dir / "Dockerfile").resolve()),
            "limits": {name: value for name, value in limits.items() if value is not None},
        }
        if self._network_disabled:
            spec["network"] = "none"
        return spec

    async def _must(self, command: str, what: str) -> None:
        ended = await self.exec(command, cwd="/")
        if ended.return_code != 0:
            raise RuntimeError(f"could not {what}: {ended.stderr or ended.stdout}")

    def _opened(self) -> LentSandbox:
        if self._sandbox is None:
            raise RuntimeError("the environment has not been started, or was stopped")
        return self._sandbox


def read_workdir(dockerfile: str) -> Optional[str]:
    """The working directory of the last stage, as far as its own lines name one. Harbor's reader of it needs an optional package."""
    found: Optional[str] = None
    for line in dockerfile.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "FROM":
            found = None
        elif word.upper() == "WORKDIR":
            found = posixpath.join(found or "/", rest.strip().strip("'\""))
    return found
