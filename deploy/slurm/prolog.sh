#!/bin/sh
# Slurm Prolog (root, on every node of a job): creates the ring folder even if the daemon is not there yet, and
# tells the daemon which GPUs the job was given: one file per GPU, one job id per line.
# A failing prolog drains the node, so this one never fails.
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
