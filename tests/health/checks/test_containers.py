"""Docker, containerd and a container with GPUs."""

import json
import subprocess

import pytest

from tests.health.gpu_host import lspci, smi
from wholestack.health.check import Expectation
from wholestack.health.checks.containers import CHECKS, CONTAINER_GPU
from wholestack.health.diagnosis import diagnose
from wholestack.health.examine import examine
from wholestack.remote.batch import Output

INFO = {
    "ID": "x",
    "Driver": "overlay2",
    "CgroupVersion": "2",
    "CgroupDriver": "systemd",
    "ServerVersion": "25.0.3",
    "Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "nvidia-container-runtime"}},
    "DefaultRuntime": "runc",
    "Warnings": None,
}
HEALTHY = json.dumps(INFO)
CTR = "Client:\n  Version:  1.7.2\n  Revision: 0\n  Go version: go1.21\n\nServer:\n  Version:  1.7.2\n  Revision: 0\n"
INSIDE = "".join(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index})\n" for index in range(8))


def look(docker=HEALTHY, containerd=CTR, container_gpu=INSIDE, *, options=True, **changed):
    given = {"docker": docker, "containerd": containerd, "pci": lspci(), "nvidia_smi": smi()}
    if options:
        given["container_gpu"] = container_gpu
    outputs = {
        name: each if isinstance(each, Output) else Output(name=name, stdout=each.encode())
        for name, each in (given | changed).items()
    }
    return examine(
        outputs, CHECKS, now=0.0, expectation=Expectation(options={"container_image": "x"} if options else {})
    )


def told(*args, **kwargs):
    return [(each.symptom.cause.code, each.status) for each in diagnose(look(*args, **kwargs).symptoms)]


def test_a_healthy_host_passes_and_tells_its_traits():
    found = look()
    assert found.passed == ("docker", "containerd", "container_gpu")
    assert {trait.name: trait.value for trait in found.traits}["docker.storage_driver"] == "overlay2"


def test_without_an_image_no_container_is_started():
    assert "container_gpu" in {each.check for each in look(options=False).skipped}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {
                "docker": json.dumps(
                    {"ServerErrors": ["Cannot connect to the Docker daemon at unix:///var/run/docker.sock."]}
                )
            },
            [("docker.down", "fail")],
        ),
        (
            {
                "docker": Output(
                    name="docker",
                    stdout=b"Cannot connect to the Docker daemon. Is the docker daemon running?\n",
                    exit_status=1,
                )
            },
            [("docker.down", "fail")],
        ),
        ({"docker": json.dumps(INFO | {"Runtimes": {"runc": {}}})}, [("docker.nvidia_runtime", "fail")]),
        (
            {"docker": json.dumps(INFO | {"Warnings": ["WARNING: error reading the storage"]})},
            [("docker.warning", "warn")],
        ),
        (
            {
                "containerd": Output(
                    name="containerd", stdout=b"Client:\n  Version: 1.7.2\n\nctr: failed to dial\n", exit_status=1
                )
            },
            [("containerd.down", "fail")],
        ),
        (
            {
                "container_gpu": Output(
                    name="container_gpu",
                    stdout=b"docker: Error response from daemon: could not select device driver\n",
                    exit_status=125,
                )
            },
            [("container.gpu", "fail")],
        ),
        ({"container_gpu": "".join(INSIDE.splitlines(keepends=True)[:7])}, [("container.fewer_gpus", "fail")]),
        (
            {"docker": json.dumps({"ServerErrors": ["permission denied while trying to connect"]})},
            [("telemetry.garbled", "unknown")],
        ),
        ({"docker": json.dumps(INFO)[:-40]}, [("telemetry.garbled", "unknown")]),
        ({"docker": "{}"}, [("telemetry.garbled", "unknown")]),
    ],
)
def test_each_fault_is_named(changed, expected):
    found = told(**changed)
    assert found in (expected, [(code.replace("garbled", "needs_root"), status) for code, status in expected])


def test_a_host_without_docker_or_without_gpus_is_no_fault():
    gone = Output(name="docker", exit_status=127)
    assert "docker" in {each.check for each in look(docker=gone).skipped}
    bare = json.dumps(INFO | {"Runtimes": {"runc": {}}})
    assert told(docker=bare, pci="00:00.0 Host bridge [0600]: Intel [8086:09a2]\n", options=False) == []


def test_the_container_device_interface_counts_as_the_runtime():
    cdi = json.dumps(INFO | {"Runtimes": {"runc": {}}, "DiscoveredDevices": [{"ID": "nvidia.com/gpu=all"}]})
    assert told(docker=cdi) == []


def test_a_host_without_gpus_need_start_no_container_with_them():
    failed = Output(name="container_gpu", stdout=b"docker: Error: could not select device driver\n", exit_status=125)
    gone = Output(name="nvidia_smi", exit_status=127)
    bare = "00:00.0 Host bridge [0600]: Intel Corporation Device [8086:09a2]\n"
    found = look(container_gpu=failed, nvidia_smi=gone, pci=bare, docker=json.dumps(INFO | {"Runtimes": {"runc": {}}}))
    assert "container_gpu" in {each.check for each in found.skipped}


@pytest.mark.parametrize(
    ("last_words", "expected"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            ("docker.down", "fail"),
        ),
        ("permission denied while trying to connect to the Docker daemon socket", ("telemetry.needs_root", "unknown")),
    ],
)
def test_why_the_daemon_is_silent_is_shown_where_only_standard_error_tells(last_words, expected):
    client = json.dumps({"ID": "", "Containers": 0, "Driver": "", "Runtimes": None, "ServerVersion": ""})
    silent = Output(name="docker", exit_status=1, stdout=client.encode(), stderr=last_words.encode())
    found = [
        (each.symptom.cause.code, each.status, each.symptom.evidence)
        for each in diagnose(look(docker=silent).symptoms)
        if each.symptom.part.key == "docker"
    ]
    assert [each[:2] for each in found] == [expected]
    assert last_words in " ".join(found[0][2])


@pytest.mark.parametrize(
    ("docker", "expected"),
    [
        ("echo 'docker: Error: exec: nvidia-smi: executable file not found in $PATH' >&2; exit 127", "container.gpu"),
        (None, "docker is not installed"),
    ],
)
def test_a_program_that_is_missing_in_the_image_is_told_from_a_missing_docker(docker, expected, tmp_path):
    if docker:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{docker}\n")
        (tmp_path / "docker").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", CONTAINER_GPU.command.shell],
        env={"PATH": str(tmp_path), "CONTAINER_IMAGE": "image"}, capture_output=True, check=False,
    )  # fmt: skip
    output = Output(name="container_gpu", stdout=done.stdout, stderr=done.stderr, exit_status=done.returncode)
    found = look(container_gpu=output)
    told_of = [each.symptom.cause.code for each in found.symptoms] + [each.detail for each in found.skipped]
    assert expected in told_of
