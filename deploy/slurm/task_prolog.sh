#!/bin/sh
# Slurm TaskProlog (the job's user): what it prints as `export NAME=value` is set for the task.
# The run is named like the job unless the script names it. The job id needs nothing: it is read from SLURM_JOB_ID.
if [ -n "$SLURM_JOB_NAME" ] && [ -z "$GPUMON_RUN_NAME" ]; then
    echo "export GPUMON_RUN_NAME=$(printf '%s' "$SLURM_JOB_NAME" | tr -c 'A-Za-z0-9._-' '-')"
fi
exit 0
