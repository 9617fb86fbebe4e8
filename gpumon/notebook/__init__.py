"""`%%gpumon` in a notebook: gpumon watches a cell that trains and shows its report below it."""
