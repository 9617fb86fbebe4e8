"""A forecasting model of Darts on series of float64, as pandas and NumPy make them."""

from tests.frameworks.torchvision_operators import declare

declare()

import logging
import sys

import numpy
from darts import TimeSeries
from darts.models import TCNModel

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
moments = numpy.arange(6000)
values = numpy.sin(moments / 12) + 0.1 * numpy.random.default_rng(0).normal(size=6000)
series = TimeSeries.from_values(values)
if "--fixed" in sys.argv:
    series = series.astype(numpy.float32)
model = TCNModel(
    input_chunk_length=96, output_chunk_length=24, num_filters=32, kernel_size=5, num_layers=4, dropout=0.1,
    batch_size=64, n_epochs=2, random_state=0,
    pl_trainer_kwargs={
        "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_checkpointing": False,
    },
)  # fmt: skip
model.fit(series, verbose=False)
print(float(model.predict(24).values().sum()))
