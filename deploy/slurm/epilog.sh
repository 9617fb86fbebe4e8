#!/bin/sh
# Slurm Epilog (root, when the job has left the node): takes the job's GPUs off the list, and writes one line per
# run of the job to the system log.
# A failing epilog drains the node, so this one never fails, and never waits long.
jobs="${GPUMON_GPU_JOBS:-/run/gpumon-jobs}"
for file in "$jobs"/*; do
    [ -n "$SLURM_JOB_ID" ] && [ -f "$file" ] || continue
    sed -i "/^$SLURM_JOB_ID\$/d" "$file"
    [ -s "$file" ] || rm -f "$file"
done
gpumon="${GPUMON_BIN:-/opt/gpumon/bin/gpumon}"
socket="${GPUMON_SOCKET:-/run/gpumon/gpumon.sock}"
[ -n "$SLURM_JOB_ID" ] && [ -x "$gpumon" ] && [ -S "$socket" ] || exit 0
timeout 10 "$gpumon" runs --json --limit 200 --connect "unix:$socket" 2>/dev/null |
    timeout 10 "${GPUMON_PYTHON:-$(dirname "$gpumon")/python}" -c '
import json, sys
for run in json.load(sys.stdin):
    if str(run.get("slurm_job")) == sys.argv[1]:
        kept = ("run", "state", "steps", "samples_per_s", "gpus", "findings")
        print(json.dumps({key: run.get(key) for key in kept}))
' "$SLURM_JOB_ID" 2>/dev/null |
    while IFS= read -r line; do
        ${GPUMON_LOGGER:-logger -t gpumon-epilog} "job $SLURM_JOB_ID $line"
    done
exit 0
