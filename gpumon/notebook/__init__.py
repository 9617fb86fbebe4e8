"""`%%gpumon` in a notebook: a cell that trains is watched, and its report is shown below it."""
