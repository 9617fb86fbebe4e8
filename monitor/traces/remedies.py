"""What to change, by cause."""

from __future__ import annotations

from monitor.model.finding import Remedy

DATA = Remedy(
    "Let worker processes load ahead, and make loading itself cheaper.",
    "+ DataLoader(…, num_workers=8, persistent_workers=True, prefetch_factor=4)",
)
COPIES = Remedy(
    "Copy from pinned memory without waiting.",
    "+ DataLoader(…, pin_memory=True)\n+ batch = batch.to(device, non_blocking=True)",
)
SYNC = Remedy(
    "Keep values on the device and read them every N steps; replace decisions on device values "
    "(if loss > …, nonzero, masks) by operations on the device.",
    "- total += loss.item()\n+ total += loss.detach()   # and total.item() every 100 steps",
)
LAUNCH = Remedy(
    "Launch fewer and larger kernels: CUDA graphs, fusion, larger batches, fused optimizers.",
    '+ model = torch.compile(model, mode="reduce-overhead")\n+ optimizer = AdamW(…, fused=True)',
)
OUTSIDE = Remedy("Do that work less often, or in another thread or process; make sure the CPU is free.")
OUTSIDE_UNKNOWN = Remedy(
    "Record again with stacks to see which function it is; then do it less often, or beside the loop.",
    "+ profile(…, with_stack=True)",
)
STREAMS = Remedy("Look at what the work waits for: events between streams, other processes on the GPU.")
RECORD = Remedy(
    "Record the host as well.", "+ profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
)
COMMUNICATION = Remedy(
    "Hide it behind the backward pass or send less: tune the bucket size, skip it while accumulating "
    "gradients (no_sync), send bf16.",
    "+ DDP(model, bucket_cap_mb=…, gradient_as_bucket_view=True)",
)
LATE_RANK = Remedy(
    "Find out what this rank does more than the others: more samples or longer ones, a slower card, "
    "work that only it does (logging, checkpoints, validation)."
)
TENSOR_CORES = Remedy(
    "Let matrix operations use tensor cores: mixed precision, or TF32 where the card has it.",
    '+ with torch.autocast("cuda", dtype=torch.float16):\n+ torch.set_float32_matmul_precision("high")',
)
