"""Profiler traces: reads a file written by `torch.profiler`, analyses it, and says what to change.

`read(path)` → `Trace`, `analyse(trace)` → `TraceReport`, `diagnose(reports)` → findings.
"""

from monitor.traces.analysis import analyse
from monitor.traces.diagnosis import diagnose
from monitor.traces.reader import parse, read
from monitor.traces.report import TraceReport
from monitor.traces.trace import Trace

__all__ = ["Trace", "TraceReport", "analyse", "diagnose", "parse", "read"]
