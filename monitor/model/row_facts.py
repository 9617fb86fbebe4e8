"""Facts about single rows, computed along with those of `facts`: what each process holds on which GPU and for
which run, how a rank compares with the slowest, how full a link or a partition is, and how old things are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from monitor.model.finding import Finding, Starved
from monitor.model.gpu import Gpu, GpuProcess, MigInstance, Nvlink
from monitor.model.gpu_users import with_pod
from monitor.model.host import Host, Process
from monitor.model.run import Rank, Run
from monitor.model.snapshot import Snapshot

STARVED_BY = {"input": "data", "transfer": "transfer"}
"""Area of the rules about a device left without work → the phase in which the step waits."""


def complete_rows(snapshot: Snapshot) -> Snapshot:
    """For a snapshot whose runs, GPUs and findings already have the facts of `monitor.model.facts`."""
    runs = tuple(replace(run, ranks=complete_ranks(run.ranks)) for run in snapshot.runs)
    by_id = {run.id: run for run in runs}
    processes = tuple(_processes(snapshot, by_id))
    gpus = tuple(_gpu(gpu, by_id, processes) for gpu in snapshot.gpus)
    return replace(
        snapshot,
        host=_host(snapshot.host),
        runs=runs,
        gpus=gpus,
        processes=processes,
        findings=tuple(_finding(finding, snapshot, by_id, gpus) for finding in snapshot.findings),
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _age(now: float, since: float | None) -> float | None:
    return None if since is None else max(0.0, now - since)


def _label(run: Run, ranks: Sequence[int]) -> str:
    """A run with one rank by name alone; otherwise with the ranks: "llama r3", "llama r0,1"."""
    return f"{run.name} r{','.join(map(str, ranks))}" if run.world_size > 1 and ranks else run.name


# ── The machine ──────────────────────────────────────────────────────────────────────────────────


def _host(host: Host) -> Host:
    return replace(
        host,
        disk_read_bytes_per_second=_total(disk.read_bytes_per_second for disk in host.disks),
        disk_write_bytes_per_second=_total(disk.write_bytes_per_second for disk in host.disks),
        receive_bytes_per_second=_total(network.receive_bytes_per_second for network in host.networks),
        transmit_bytes_per_second=_total(network.transmit_bytes_per_second for network in host.networks),
    )


def _total(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


# ── Ranks and GPUs ───────────────────────────────────────────────────────────────────────────────


def complete_ranks(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """The ranks of one run, each compared with the slowest."""
    slowest = max((rank.step.p50 for rank in ranks if rank.step.p50 is not None), default=None)
    return tuple(
        replace(rank, slowest_ratio=_ratio(rank.step.p50, slowest), missing_records=rank.lost + rank.dropped)
        for rank in ranks
    )


def _gpu(gpu: Gpu, runs: Mapping[str, Run], processes: Iterable[Process]) -> Gpu:
    here = [runs[id] for id in gpu.run_ids if id in runs]
    users = [run.user for run in here] + [one.user for one in processes if gpu.uuid in one.gpu_uuids]
    return replace(
        gpu,
        run_labels=tuple(_label(run, _ranks_on(gpu, run)) for run in here),
        users=tuple(dict.fromkeys(user for user in users if user)),
        nvlink=_nvlink(gpu.nvlink),
        mig=tuple(map(_instance, gpu.mig)),
    )


def _ranks_on(gpu: Gpu, run: Run) -> list[int]:
    return [rank.rank for rank in run.ranks if rank.gpu_uuid == gpu.uuid]


def _nvlink(link: Nvlink) -> Nvlink:
    limit, sent, received = link.bandwidth_bytes_per_second, link.transmit_bytes, link.receive_bytes
    return replace(
        link,
        total_bytes=None if sent is None or received is None else sent + received,
        transmit_ratio=_ratio(link.transmit_bytes_per_second, limit),
        receive_ratio=_ratio(link.receive_bytes_per_second, limit),
    )


def _instance(part: MigInstance) -> MigInstance:
    return replace(part, memory_used_ratio=_ratio(part.memory_used_bytes, part.memory_total_bytes))


# ── Processes ────────────────────────────────────────────────────────────────────────────────────


def _processes(snapshot: Snapshot, runs: Mapping[str, Run]) -> Iterable[Process]:
    """The known ones, then those only the driver knows (another namespace, no permission)."""
    held: dict[int, list[tuple[Gpu, GpuProcess]]] = {}
    for gpu in snapshot.gpus:
        for used in gpu.processes:
            held.setdefault(used.pid, []).append((gpu, used))
    for process in snapshot.processes:
        yield _process(process, held.pop(process.pid, []), runs, snapshot.time)
    for pid, uses in held.items():
        yield _process(Process(pid, role="gpu"), uses, runs, snapshot.time)


def _process(
    process: Process, uses: list[tuple[Gpu, GpuProcess]], runs: Mapping[str, Run], now: float
) -> Process:
    memory = [used.memory_bytes for _, used in uses if used.memory_bytes is not None]
    busy = [used.sm_ratio for _, used in uses if used.sm_ratio is not None]
    return replace(
        with_pod(process, uses),
        gpu_uuids=tuple(gpu.uuid for gpu, _ in uses),
        gpu_indices=tuple(gpu.index for gpu, _ in uses),
        gpu_memory_bytes=sum(memory) if memory else None,
        gpu_sm_ratio=max(busy, default=None),
        run_label=_run_label(process, runs),
        age_seconds=_age(now, process.started),
    )


def _run_label(process: Process, runs: Mapping[str, Run]) -> str | None:
    run = runs.get(process.run or "")
    return process.run if run is None else _label(run, () if process.rank is None else (process.rank,))


# ── Findings ─────────────────────────────────────────────────────────────────────────────────────


def _finding(finding: Finding, snapshot: Snapshot, runs: Mapping[str, Run], gpus: Sequence[Gpu]) -> Finding:
    return replace(
        finding,
        age_seconds=_age(snapshot.time, finding.since),
        starved=_starved(finding, runs.get(finding.run or ""), gpus),
    )


def _starved(finding: Finding, run: Run | None, gpus: Sequence[Gpu]) -> Starved | None:
    """The GPU the finding names, else the first one its run computes on."""
    phase = STARVED_BY.get(finding.id.partition(".")[0])
    if phase is None or run is None:
        return None
    for gpu in gpus:
        if gpu.uuid == finding.gpu or (finding.gpu is None and run.id in gpu.run_ids):
            share = next((part.share for part in run.phases if part.name == phase), None)
            return Starved(gpu.index, gpu.utilization_ratio, phase, share)
    return None
