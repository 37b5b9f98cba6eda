"""Containers: Docker and containerd answer, are set up as the fleet's are, and can start one with a GPU."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wholestack.health.check import Cause, Check, Seen, Symptom, Trait
from wholestack.health.checks.gpu_presence import gpus_on_bus, lost_keys
from wholestack.health.checks.nvidia import NVIDIA_SMI
from wholestack.health.checks.pci import INVENTORY as PCI
from wholestack.health.parts import Part
from wholestack.health.probe import Format, NotThereError, Probe, UnreadableError
from wholestack.remote.batch import Command, Output

DOCKER_DOWN = Cause(
    code="docker.down",
    says="Docker does not answer",
    owner="cluster team",
    remedy="systemctl status docker; journalctl -u docker; restart it",
    explains=("container.gpu", "docker.nvidia_runtime", "service.failed"),
)
NO_RUNTIME = Cause(
    code="docker.nvidia_runtime",
    says="Docker does not know the NVIDIA runtime",
    owner="cluster team",
    remedy="nvidia-ctk runtime configure --runtime=docker, then restart Docker",
    explains=("container.gpu",),
)
DRIVER = Cause(
    code="docker.storage_driver",
    says="Docker uses another storage driver than expected",
    owner="cluster team",
    remedy="set storage-driver in /etc/docker/daemon.json, move old images away, restart Docker",
    status="warn",
)
CGROUP = Cause(
    code="docker.cgroup",
    says="Docker uses another version or driver of control groups than expected",
    owner="cluster team",
    remedy="check the kernel's command line (systemd.unified_cgroup_hierarchy) and /etc/docker/daemon.json",
    status="warn",
)
VERSION = Cause(
    code="docker.version",
    says="another version of Docker than expected",
    owner="cluster team",
    remedy="install the fleet's version",
    status="warn",
)
WARNED = Cause(
    code="docker.warning",
    says="Docker reports an error of its own",
    owner="cluster team",
    remedy="read the line; repair the storage or set-up that it names, restart Docker",
    status="warn",
)
CONTAINERD_DOWN = Cause(
    code="containerd.down",
    says="containerd does not answer",
    owner="cluster team",
    remedy="systemctl status containerd; journalctl -u containerd; restart it",
    explains=("docker.down", "container.gpu", "service.failed"),
)
CONTAINERD_VERSION = Cause(
    code="containerd.version",
    says="another version of containerd than expected",
    owner="cluster team",
    remedy="install the fleet's version",
    status="warn",
)
NO_GPU = Cause(
    code="container.gpu",
    says="a container cannot use the GPUs",
    owner="cluster team",
    remedy="run the command by hand; check nvidia-container-toolkit (nvidia-container-cli info) and the runtime",
)
FEWER_GPUS = Cause(
    code="container.fewer_gpus",
    says="a container sees fewer GPUs than the host",
    owner="cluster team",
    remedy="compare nvidia-smi -L inside and outside; check device rules (cgroup) and nvidia-container-toolkit",
)
DOCKER_PART = Part(kind="container_runtime", key="docker")
CONTAINERD_PART = Part(kind="container_runtime", key="containerd")
_TOLD = re.compile(r"docker|container|nvidia|NVML|GPU", re.IGNORECASE)
_DOWN = re.compile(r"Cannot connect to the Docker daemon|Is the docker daemon running|ServerErrors", re.IGNORECASE)


def _read_docker(text: str) -> dict[str, Any]:
    begin = text.find("{")
    found, end = json.JSONDecoder().raw_decode(text[begin:])
    if not isinstance(found, dict):
        raise UnreadableError("docker info is no JSON object")
    last_words = text[begin + end :].strip()
    if not found.get("ServerVersion") and not found.get("ServerErrors") and last_words:
        # Some versions print what the client knows as JSON, and why the daemon said nothing on standard error only.
        found["ServerErrors"] = [line.strip()[:300] for line in last_words.splitlines()[:4]]
    return found


def _says_down(text: str) -> dict[str, Any]:
    return {"ServerErrors": [text.strip()[:300]]}


def _known_or_status(output: Output) -> str:
    known = b"{" in output.stdout or _DOWN.search(output.text + output.stderr.decode(errors="replace"))
    return "" if known or not output.exit_status else f"exit status {output.exit_status}"


DOCKER: Probe[dict[str, Any]] = Probe(
    command=Command(name="docker", shell="docker info --format '{{json .}}'", limit_s=15, max_bytes=400_000),
    formats=(
        Format(name="docker info as JSON", matches=lambda text: "{" in text[:2000], read=_read_docker),
        Format(name="docker's last words", matches=lambda text: _DOWN.search(text) is not None, read=_says_down),
    ),
    failure=_known_or_status,
    with_stderr=True,
)


def _read_ctr(text: str) -> dict[str, str]:
    """Versions of client and server; the server is missing where it does not answer."""
    found: dict[str, str] = {}
    side = ""
    for line in text.splitlines():
        if heading := re.match(r"(Client|Server):", line):
            side = heading[1].lower()
        elif side and (version := re.match(r"\s+Version:\s+(\S{1,80})", line)):
            found[side] = version[1]
        elif line.startswith("ctr:"):
            found["error"] = line.strip()[:300]
    if not found:
        raise UnreadableError("ctr version names no version")
    return found


def _is_silent(output: Output) -> bool:
    return bool(output.exit_status) and not (output.stdout + output.stderr).strip()


CONTAINERD: Probe[dict[str, str]] = Probe(
    command=Command(name="containerd", shell="ctr version", limit_s=15, max_bytes=20_000),
    formats=(
        Format(
            name="ctr version",
            matches=lambda text: "Client:" in text[:500] or text.lstrip().startswith("ctr:"),
            read=_read_ctr,
        ),
    ),
    failure=lambda output: f"exit status {output.exit_status}" if _is_silent(output) else "",
    with_stderr=True,
)


def _read_gpus(text: str) -> tuple[str, ...]:
    """Lines of ``nvidia-smi -L`` from within; none if the container did not start."""
    return tuple(line.strip() for line in text.splitlines() if re.match(r"GPU \d{1,3}: ", line))


def _not_of_docker(output: Output) -> str:
    """Words of Docker, of the container or of NVIDIA's tools tell of the container; others that none was started."""
    told = _TOLD.search(output.text + output.stderr.decode(errors="replace")) is not None
    return "" if told or not output.exit_status else f"exit status {output.exit_status}"


CONTAINER_GPU: Probe[tuple[tuple[str, ...], str]] = Probe(
    command=Command(
        name="container_gpu",
        # `docker run` hands on the 127 of a program that is missing inside: that is no missing Docker.
        shell=(
            "command -v docker >/dev/null || exit 127; "
            'docker run --rm --network none --gpus all --entrypoint nvidia-smi "$CONTAINER_IMAGE" -L || exit 1'
        ),
        limit_s=60,
        max_bytes=20_000,
    ),
    formats=(
        Format(
            name="nvidia-smi -L in a container",
            matches=lambda text: bool(_read_gpus(text)) or _TOLD.search(text[:4000]) is not None,
            read=lambda text: (_read_gpus(text), text.strip()[:400]),
        ),
    ),
    failure=_not_of_docker,
    with_stderr=True,
    option="container_image",
)


def _judge_docker(seen: Seen) -> Iterator[Symptom]:
    info = seen.of(DOCKER)
    errors = [str(each)[:300] for each in info.get("ServerErrors") or []]
    if errors:
        if any("permission denied" in each.lower() for each in errors):
            raise UnreadableError("needs root: " + errors[0])
        yield Symptom(cause=DOCKER_DOWN, part=DOCKER_PART, evidence=tuple(errors))
        return
    if not info.get("ServerVersion") or not isinstance(info.get("Runtimes"), dict):
        raise UnreadableError("docker info tells no ServerVersion or Runtimes")
    if gpus_on_bus(seen) and not _has_nvidia(info):
        evidence = (f"runtimes: {', '.join(map(str, info['Runtimes']))}",)
        yield Symptom(cause=NO_RUNTIME, part=DOCKER_PART, evidence=evidence)
    bad = [
        str(each)[:300]
        for each in info.get("Warnings") or []
        if re.search(r"error|fail|corrupt", str(each), re.IGNORECASE)
    ]
    if bad:
        yield Symptom(cause=WARNED, part=DOCKER_PART, evidence=tuple(bad))


def _has_nvidia(info: dict[str, Any]) -> bool:
    """As a runtime, or by the container device interface (Docker 25 and later)."""
    devices = info.get("DiscoveredDevices") or []
    return any("nvidia" in str(name) for name in info["Runtimes"]) or "nvidia.com/gpu" in json.dumps(devices)


def _docker_traits(seen: Seen) -> Iterator[Trait]:
    info = seen.of(DOCKER)
    for name, key, cause in (
        ("docker.storage_driver", "Driver", DRIVER),
        ("docker.cgroup_version", "CgroupVersion", CGROUP),
        ("docker.cgroup_driver", "CgroupDriver", CGROUP),
        ("docker.version", "ServerVersion", VERSION),
        ("docker.default_runtime", "DefaultRuntime", NO_RUNTIME),
    ):
        if isinstance(info.get(key), str | int) and info[key]:
            yield Trait(name=name, value=str(info[key]), differs=cause, part=DOCKER_PART)


def _judge_containerd(seen: Seen) -> Iterator[Symptom]:
    found = seen.of(CONTAINERD)
    if "permission denied" in found.get("error", ""):
        raise UnreadableError("needs root: " + found["error"])
    if "server" not in found:
        evidence = (found.get("error") or f"client {found.get('client')}, no server",)
        yield Symptom(cause=CONTAINERD_DOWN, part=CONTAINERD_PART, evidence=evidence)


def _containerd_traits(seen: Seen) -> Iterator[Trait]:
    if version := seen.of(CONTAINERD).get("server"):
        yield Trait(name="containerd.version", value=version, differs=CONTAINERD_VERSION, part=CONTAINERD_PART)


def _judge_container_gpu(seen: Seen) -> Iterator[Symptom]:
    gpus, said = seen.of(CONTAINER_GPU)
    if re.search(r"permission denied", said, re.IGNORECASE) and not gpus:
        raise UnreadableError(f"needs root: {said.splitlines()[0][:200]}")
    if re.search(r"docker: (?:command )?not found", said):
        raise NotThereError("not_installed", "docker is not installed")
    smi = seen.maybe(NVIDIA_SMI)
    if not gpus and smi is None and seen.maybe(PCI) is not None and not gpus_on_bus(seen):
        raise NotThereError("not_expected", "no NVIDIA GPU on this host")
    part = replace(DOCKER_PART, within=("driver nvidia", *(f"gpu {key}" for key in lost_keys(seen))))
    if not gpus:
        yield Symptom(cause=NO_GPU, part=part, evidence=tuple(said.splitlines()[-4:]))
    elif smi is not None and len(smi.gpus) > len(gpus):
        evidence = (f"{len(gpus)} GPUs inside, {len(smi.gpus)} outside", *gpus)
        yield Symptom(cause=FEWER_GPUS, part=part, evidence=evidence)


CHECKS = (
    Check(
        name="docker",
        about="Docker answers, knows the NVIDIA runtime, and is set up as on other hosts",
        probes=(DOCKER,),
        parts=("container_runtime",),
        causes=(DOCKER_DOWN, NO_RUNTIME, DRIVER, CGROUP, VERSION, WARNED),
        judge=_judge_docker,
        traits=_docker_traits,
        trait_names=(
            "docker.storage_driver",
            "docker.cgroup_version",
            "docker.cgroup_driver",
            "docker.version",
            "docker.default_runtime",
        ),
    ),
    Check(
        name="containerd",
        about="containerd answers, in the fleet's version",
        probes=(CONTAINERD,),
        parts=("container_runtime",),
        causes=(CONTAINERD_DOWN, CONTAINERD_VERSION),
        judge=_judge_containerd,
        traits=_containerd_traits,
        trait_names=("containerd.version",),
    ),
    Check(
        name="container_gpu",
        about="a container starts and sees all GPUs (with the profile's option container_image)",
        probes=(CONTAINER_GPU,),
        parts=("container_runtime",),
        causes=(NO_GPU, FEWER_GPUS),
        judge=_judge_container_gpu,
    ),
)
