#!/bin/sh
# One command for the optimized TOM500 training; further options go to the trainer:
#   trainers/optimize_training.sh --data_dir TOM500
# The trainer sets the same variables itself when they are unset (trainers/tuning/cuda.py).
set -eu
export CUDA_LAUNCH_BLOCKING="${CUDA_LAUNCH_BLOCKING:-0}"
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-max_split_size_mb:128}"
export TORCH_CUDNN_V8_API_ENABLED="${TORCH_CUDNN_V8_API_ENABLED:-1}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
exec "${PYTHON:-python3}" -m trainers.tom500 \
    --batch_size 8 --num_workers 16 --compile_model --validation_interval 20 "$@"
