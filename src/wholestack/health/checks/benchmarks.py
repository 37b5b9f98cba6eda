"""Logs of benchmarks: wrong values, runs that broke off, speeds below the profile or their own siblings.

Judges saved outputs only; nothing here is run by a sweep. Speeds have no default limit, since they depend on the
product: a profile states them. A log without its end is ``unknown``.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from statistics import median

from wholestack.health.check import Cause, Check, Limit, Measure, Seen, Symptom, Trait
from wholestack.health.formats.gpu_burn import Burnt, looks_like_gpu_burn, read_gpu_burn
from wholestack.health.formats.nccl_tests import NcclTest, looks_like_nccl, read_nccl
from wholestack.health.formats.nvbandwidth import Matrix, NvBandwidth, looks_like_nvbandwidth, read_nvbandwidth
from wholestack.health.formats.perftest import looks_like_perftest, read_perftest
from wholestack.health.formats.port_guids import looks_like_port_guids, read_port_guids
from wholestack.health.parts import HOST, Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command

NCCL = Probe(
    command=Command(name="nccl_tests", shell="all_reduce_perf -b 8 -e 8G -f 2 -g 8", limit_s=600),
    formats=(Format(name="nccl-tests", matches=looks_like_nccl, read=read_nccl),),
)
PERFTEST = Probe(
    command=Command(name="ib_write_bw", shell="ib_write_bw -a -F", limit_s=600),
    formats=(Format(name="ib_write_bw", matches=looks_like_perftest, read=read_perftest),),
)
NVBANDWIDTH = Probe(
    command=Command(name="nvbandwidth", shell="nvbandwidth", limit_s=600),
    formats=(Format(name="nvbandwidth", matches=looks_like_nvbandwidth, read=read_nvbandwidth),),
)
GPU_BURN = Probe(
    command=Command(name="gpu_burn", shell="gpu_burn 300", limit_s=600, max_bytes=16_000_000),
    formats=(Format(name="gpu_burn", matches=looks_like_gpu_burn, read=read_gpu_burn),),
)
PORT_GUIDS = Probe(
    command=Command(name="port_guids", shell='echo "VM_hostname $(hostname)"; ibstat -p', limit_s=30),
    formats=(Format(name="ibstat -p of several hosts", matches=looks_like_port_guids, read=read_port_guids),),
)

WRONG = Cause(
    code="bench.wrong",
    says="a collective gave wrong values",
    owner="vendor",
    remedy="take the host out: GPU memory, NVLink or fabric corrupts data; bisect with smaller groups to find the part",
    explains=("bench.slow", "bench.broke_off"),
)
BROKE_OFF = Cause(
    code="bench.broke_off",
    says="a benchmark broke off with an error",
    owner="cluster team",
    remedy="read the line; look at the kernel log of that time, then run it again alone",
)
CUT = Cause(
    code="bench.cut",
    says="the log of a benchmark has no end",
    owner="cluster team",
    remedy="run it again and keep the whole log: what it would have said is not known",
    status="unknown",
)
SLOW = Cause(
    code="bench.slow",
    says="a benchmark is slower than the profile allows",
    owner="vendor",
    remedy="repeat it on an idle, cool host; if it stays, compare clocks, links and topology with a good host",
)
UNEVEN = Cause(
    code="bench.uneven",
    says="one part is slower than its siblings in the same benchmark",
    owner="vendor",
    remedy="repeat it; if it stays with the part, look at its PCIe link, NVLinks and clocks, then replace it",
    status="warn",
)
FAULTY = Cause(
    code="bench.gpu_faulty",
    says="GPU computes wrong or died under load",
    owner="vendor",
    remedy="take the host out and replace the GPU",
    explains=("bench.uneven", "bench.broke_off"),
)
TWINS = Cause(
    code="bench.duplicate_guid",
    says="two hosts have an InfiniBand port of the same GUID",
    owner="network",
    remedy="burn a GUID of its own into one of them (flint sg) and reset it",
)
PORTS = Cause(
    code="bench.port_count",
    says="a host has another number of InfiniBand ports than the others",
    owner="cluster team",
    remedy="look for the adapter in lspci and for its driver; if it is gone, power-cycle the host",
)

BUSBW = Limit(
    name="bench.nccl_busbw_gbs", default=0.0, about="best bus bandwidth of nccl-tests (GB/s) below it is a fail"
)
WRITE_BW = Limit(
    name="bench.ib_write_bw_gbs", default=0.0, about="best average of ib_write_bw (Gb/s) below it is a fail"
)
TO_DEVICE = Limit(name="bench.host_to_device_gbs", default=0.0, about="slowest copy to a GPU (GB/s) below it is a fail")
TO_HOST = Limit(name="bench.device_to_host_gbs", default=0.0, about="slowest copy from a GPU (GB/s) below it is a fail")
BETWEEN = Limit(
    name="bench.device_to_device_gbs", default=0.0, about="slowest copy between GPUs (GB/s) below it is a fail"
)
SHARE = Limit(
    name="bench.least_share", default=0.75, about="speed by the median of its siblings below which one stands out"
)
BURN_SHARE = Limit(
    name="bench.burn_share", default=0.9, about="speed of a GPU under gpu_burn by the median below which it stands out"
)


def _judge_nccl(seen: Seen) -> Iterator[Symptom]:
    run = seen.of(NCCL)
    if run.failure:
        yield Symptom(cause=BROKE_OFF, evidence=(run.failure,))
    if wrong := _wrong(run):
        yield Symptom(cause=WRONG, evidence=wrong)
    if not run.failure and (not run.out_of_bounds or run.average_gbs is None):
        last = run.rows[-1].size_bytes
        yield Symptom(cause=CUT, evidence=(f"no summary behind the row of {last} bytes",))
    best = max((max(row.busbw_gbs) for row in run.rows), default=0.0)
    if run.rows and best < seen.limit(BUSBW):
        evidence = (f"best bus bandwidth {best:g} GB/s, expected at least {seen.limit(BUSBW):g}",)
        yield Symptom(cause=SLOW, evidence=evidence)


def _wrong(run: NcclTest) -> tuple[str, ...]:
    lines = [f"Out of bounds values : {run.out_of_bounds}"] if _out_of_bounds(run.out_of_bounds) else []
    if run.counts_wrong:
        for row in run.rows:
            if any(word not in ("0", "N/A") for word in row.wrong):
                lines.append(f"{row.size_bytes} bytes: #wrong {row.wrong[0]} and {row.wrong[1]}")
    return tuple(lines)


def _out_of_bounds(text: str) -> bool:
    return bool(text) and text != "0 OK"


def _nccl_measures(seen: Seen) -> Iterator[Measure]:
    run = seen.of(NCCL)
    if run.rows:
        best = max(max(row.busbw_gbs) for row in run.rows)
        yield Measure(name="bench.nccl_busbw_gbs", value=best, outlies=SLOW, bad="low", least=5)


def _judge_write_bw(seen: Seen) -> Iterator[Symptom]:
    run = seen.of(PERFTEST)
    part = Part(kind="hca", key=run.device) if run.device else HOST
    if run.failure:
        yield Symptom(cause=BROKE_OFF, part=part, evidence=(run.failure,))
        return
    if not run.ended:
        yield Symptom(cause=CUT, part=part, evidence=(f"no line behind the row of {run.sizes[-1].size_bytes} bytes",))
    best = max(size.average_gbs for size in run.sizes)
    if best < seen.limit(WRITE_BW):
        evidence = (f"best average {best:.1f} Gb/s, expected at least {seen.limit(WRITE_BW):g}",)
        yield Symptom(cause=SLOW, part=part, evidence=evidence)


def _write_bw_measures(seen: Seen) -> Iterator[Measure]:
    run = seen.of(PERFTEST)
    if run.sizes:
        best = max(size.average_gbs for size in run.sizes)
        yield Measure(name="bench.ib_write_bw_gbs", value=best, outlies=SLOW, bad="low", least=5)


def _judge_nvbandwidth(seen: Seen) -> Iterator[Symptom]:
    run = seen.of(NVBANDWIDTH)
    if run.failure:
        yield Symptom(cause=BROKE_OFF, evidence=(run.failure,))
    elif run.unfinished or not run.matrices:
        names = ", ".join(run.unfinished) or "all tests"
        yield Symptom(cause=CUT, evidence=(f"without a sum: {names}",))
    for matrix in run.matrices:
        yield from _judge_matrix(matrix, run, seen)


def _judge_matrix(matrix: Matrix, run: NvBandwidth, seen: Seen) -> Iterator[Symptom]:
    usual, share, limit = median(matrix.cells.values()), seen.limit(SHARE), _limit_of(matrix, seen)
    for (row, column), value in matrix.cells.items():
        part = _device(matrix, row, column, run)
        line = f"{matrix.name}: row {row}, column {column}: {value:g} {matrix.unit}"
        bad = value < share * usual if matrix.unit == "GB/s" else value * share > usual
        if matrix.unit == "GB/s" and value < limit:
            yield Symptom(cause=SLOW, part=part, evidence=(f"{line}, expected at least {limit:g}",))
        elif len(matrix.cells) >= 4 and bad:
            yield Symptom(cause=UNEVEN, part=part, evidence=(f"{line}, median {usual:g}",))


def _limit_of(matrix: Matrix, seen: Seen) -> float:
    """Only copies in one direction by one device are limited: the others share their way."""
    limits = {"host_to_device_memcpy": TO_DEVICE, "device_to_host_memcpy": TO_HOST, "device_to_device_memcpy": BETWEEN}
    return next((seen.limit(limit) for name, limit in limits.items() if matrix.name.startswith(name)), 0.0)


def _device(matrix: Matrix, row: int, column: int, run: NvBandwidth) -> Part:
    """The GPU of a cell; between GPUs the one of the row, with the other in the label."""
    index = row if matrix.name.startswith("device_to_device") else column
    key = run.devices.get(index)
    label = f"index {index}" if index == column else f"index {index}, with {column}"
    return Part(kind="gpu", key=key or f"index {index}", label=label)


def _nvbandwidth_measures(seen: Seen) -> Iterator[Measure]:
    for matrix in seen.of(NVBANDWIDTH).matrices:
        if matrix.unit == "GB/s":
            value = min(matrix.cells.values())
            yield Measure(name=f"bench.{matrix.name}_gbs", value=value, outlies=SLOW, bad="low", least=1)


def _judge_burn(seen: Seen) -> Iterator[Symptom]:
    run = seen.of(GPU_BURN)
    speeds = [gpu.gflops for gpu in run.gpus if gpu.gflops]
    usual = median(speeds) if len(speeds) >= 4 else 0.0
    for gpu in run.gpus:
        if gpu.verdict == "FAULTY" or gpu.errors or gpu.died:
            state = f"verdict {gpu.verdict or 'none'}, {gpu.errors} errors{', died' if gpu.died else ''}"
            yield Symptom(cause=FAULTY, part=_burnt(gpu), evidence=(f"GPU {gpu.index}: {state}",))
        elif gpu.gflops and gpu.gflops < seen.limit(BURN_SHARE) * usual:
            evidence = (f"GPU {gpu.index}: {gpu.gflops:g} Gflop/s, median {usual:g}",)
            yield Symptom(cause=UNEVEN, part=_burnt(gpu), evidence=evidence)
    if run.failure:
        yield Symptom(cause=BROKE_OFF, evidence=(run.failure,))
    elif not run.ended:
        missing = ", ".join(str(gpu.index) for gpu in run.gpus if not gpu.verdict)
        yield Symptom(cause=CUT, evidence=(f"no verdict of GPU {missing or 'some'}",))


def _burnt(gpu: Burnt) -> Part:
    return Part(kind="gpu", key=gpu.uuid or f"index {gpu.index}", label=f"index {gpu.index}")


def _burn_measures(seen: Seen) -> Iterator[Measure]:
    for gpu in seen.of(GPU_BURN).gpus:
        if gpu.gflops:
            part = _burnt(gpu)
            yield Measure(name="bench.burn_gflops", value=gpu.gflops, outlies=UNEVEN, part=part, bad="low", least=100)


def _judge_port_guids(seen: Seen) -> Iterator[Symptom]:
    hosts = seen.of(PORT_GUIDS)
    owners: dict[str, list[str]] = {}
    for host, guids in hosts.items():
        for guid in guids:
            owners.setdefault(guid, []).append(host)
    for guid, who in owners.items():
        if len(who) > 1:
            part = Part(kind="hca_port", key=guid)
            yield Symptom(cause=TWINS, part=part, evidence=(f"GUID {guid}: {', '.join(who[:8])}",))
    usual, count = Tally(len(guids) for guids in hosts.values()).most_common(1)[0]
    for host, guids in hosts.items():
        if not guids or (len(guids) != usual and count > len(hosts) / 2):
            evidence = (f"{host}: {len(guids)} ports, {count} hosts have {usual}",)
            yield Symptom(cause=PORTS, part=Part(kind="host", key=host), evidence=evidence)


def _port_traits(seen: Seen) -> Iterator[Trait]:
    hosts = seen.of(PORT_GUIDS)
    yield Trait(name="bench.hosts", value=len(hosts), differs=PORTS, drifts=False)


CHECKS = (
    Check(
        name="bench.nccl",
        about="a run of nccl-tests: wrong values, bandwidth, whether it ended",
        probes=(NCCL,),
        parts=("host",),
        causes=(WRONG, BROKE_OFF, CUT, SLOW),
        judge=_judge_nccl,
        measures=_nccl_measures,
        limits=(BUSBW,),
        passive=False,
    ),
    Check(
        name="bench.ib_write_bw",
        about="a run of ib_write_bw: bandwidth, whether it ended",
        probes=(PERFTEST,),
        parts=("hca", "host"),
        causes=(BROKE_OFF, CUT, SLOW),
        judge=_judge_write_bw,
        measures=_write_bw_measures,
        limits=(WRITE_BW,),
        passive=False,
    ),
    Check(
        name="bench.nvbandwidth",
        about="a run of nvbandwidth: slowest copies, cells that stand out, whether it ended",
        probes=(NVBANDWIDTH,),
        parts=("gpu", "host"),
        causes=(BROKE_OFF, CUT, SLOW, UNEVEN),
        judge=_judge_nvbandwidth,
        measures=_nvbandwidth_measures,
        limits=(TO_DEVICE, TO_HOST, BETWEEN, SHARE),
        passive=False,
    ),
    Check(
        name="bench.gpu_burn",
        about="a run of gpu_burn: verdict and errors of each GPU, GPUs that died or are slow",
        probes=(GPU_BURN,),
        parts=("gpu", "host"),
        causes=(FAULTY, BROKE_OFF, CUT, UNEVEN),
        judge=_judge_burn,
        measures=_burn_measures,
        limits=(BURN_SHARE,),
        passive=False,
    ),
    Check(
        name="bench.ibstat",
        about="InfiniBand ports of several hosts: as many on each, no GUID twice",
        probes=(PORT_GUIDS,),
        parts=("hca_port", "host"),
        causes=(TWINS, PORTS),
        judge=_judge_port_guids,
        traits=_port_traits,
        trait_names=("bench.hosts",),
        passive=False,
    ),
)
