#!/bin/sh
# Slurm TaskProlog (the job's user): what it prints as `export NAME=value` is set for the task.
# The run is named after the job unless the script names it. The job id is read from SLURM_JOB_ID, without our help.
if [ -n "$SLURM_JOB_NAME" ] && [ -z "$GPUMON_RUN_NAME" ]; then
    echo "export GPUMON_RUN_NAME=$(printf '%s' "$SLURM_JOB_NAME" | tr -c 'A-Za-z0-9._-' '-')"
fi
exit 0
