#!/bin/sh
# Slurm Prolog (root, on every node of a job): the folder for rings is there even where the daemon is not yet,
# and the daemon is told which GPUs the job was given: a file per GPU, a job id a line.
# A prolog that fails drains the node, so this one never does.
dir="${GPUMON_DIR:-/dev/shm/gpumon}"
if [ ! -d "$dir" ]; then
    owner=root
    if id gpumon >/dev/null 2>&1; then
        owner=gpumon
    fi
    mkdir -p "$dir" && chown "$owner:$owner" "$dir" && chmod 3773 "$dir"
fi
jobs="${GPUMON_GPU_JOBS:-/run/gpumon-jobs}"
for gpu in $(echo "$SLURM_JOB_GPUS" | tr ',' ' '); do
    mkdir -p "$jobs" && echo "$SLURM_JOB_ID" >>"$jobs/nvidia$gpu"
done
exit 0
