"""The check of what work costs on this machine."""

from __future__ import annotations

import time

from msgspec.structs import asdict

from monitor.calibration import cache
from monitor.calibration.measure import NotMeasured, measure
from monitor.calibration.prices import Calibration
from monitor.doctor.check import Context, Result, check, passed, warned
from monitor.model.units import number, rate, seconds


@check("calibration", "what work costs on this machine, for predictions; --calibrate measures it")
def calibration(context: Context) -> Result:
    if not context.calibrate:
        known = cache.load()
        return _told(known) if known is not None else _missing()
    try:
        fresh = measure(context.python)
        where = cache.save(fresh)
    except NotMeasured as error:
        return warned(str(error), "try again with nothing else running; --python names the one that trains")
    except OSError as error:
        return warned(f"cannot be kept: {error}", "set XDG_STATE_HOME to a directory that can be written")
    return _told(fresh, str(where))


def _missing() -> Result:
    return warned(
        "not measured: predictions use the prices of another machine, with wider ranges",
        "gpumon doctor --calibrate (a few seconds, with no training running); then restart the daemon",
        machine=cache.machine_kind(),
    )


def _told(known: Calibration, where: str = "") -> Result:
    prices = known.prices
    day = time.strftime("%Y-%m-%d", time.localtime(known.time))
    return passed(
        f"{known.machine}, {day}, torch {prices.torch}: a module {seconds(prices.op_seconds_cpu)} a pass, "
        f"{number(prices.cpu_flops)}FLOP/s a core, memory {rate(prices.memory_bytes_per_second)}; a worker "
        f"starts in {seconds(prices.worker_start_seconds)}, a batch takes "
        f"{seconds(prices.worker_batch_seconds)} to prepare and "
        f"{seconds(prices.worker_transport_seconds)} to transfer" + (f"; kept in {where}" if where else ""),
        machine=known.machine,
        time=known.time,
        **asdict(prices),
    )
