"""Profiler traces: read a file `torch.profiler` wrote, analyse it, name what to change.

`read(path)` → `Trace`, `analyse(trace)` → `TraceReport`, `diagnose(reports)` → findings.
"""

from monitor.traces.analysis import analyse
from monitor.traces.diagnosis import diagnose
from monitor.traces.reader import parse, read
from monitor.traces.report import TraceReport
from monitor.traces.trace import Trace

__all__ = ["Trace", "TraceReport", "analyse", "diagnose", "parse", "read"]
