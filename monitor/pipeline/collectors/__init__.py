"""The collectors, in the order a tick asks them. Adding one takes a file here and a line below."""

from monitor.pipeline.collectors.gpus import GpuCollector
from monitor.pipeline.collectors.holders import HolderCollector
from monitor.pipeline.collectors.host import HostCollector
from monitor.pipeline.collectors.processes import ProcessCollector
from monitor.pipeline.collectors.rings import RingCollector
from monitor.pipeline.collectors.runs import RunCollector
from monitor.pipeline.draft import Collector

COLLECTORS: tuple[type[Collector], ...] = (
    RingCollector,
    HostCollector,
    GpuCollector,
    HolderCollector,
    ProcessCollector,
    RunCollector,
)
